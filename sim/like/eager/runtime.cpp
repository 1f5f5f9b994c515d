// What ATen's CUDA kernels allocate.
#include "sim/like/eager/runtime.h"

#include <algorithm>
#include <utility>

#include "sim/like/eager/sharding.h"

namespace shard::like::eager {
namespace {

/// Which of two dimensions lies further in: TensorIterator::reorder_dimensions().
int should_swap(std::span<const Dims> strides, const Dims& sizes, std::size_t a, std::size_t b) {
  for (const Dims& s : strides) {
    if (s[a] == 0 || s[b] == 0) continue;
    if (s[a] != s[b]) return s[a] < s[b] ? -1 : 1;
    if (sizes[a] > sizes[b]) return 1;
  }
  return 0;
}

/// Strides as an operand of a larger result sees them: 0 where it is spread.
Dims spread_strides(const Tensor& x, const Dims& sizes) {
  Dims strides = sizes;
  for (std::size_t i = 0; i < sizes.rank; ++i) {
    const std::size_t from_end = sizes.rank - 1 - i;
    const bool there = from_end < x.sizes().rank;
    const bool spread = !there || (x.sizes().back(from_end) == 1 && sizes[i] != 1);
    strides[i] = spread ? 0 : x.strides().back(from_end);
  }
  return strides;
}

Dims result_strides(std::span<const Tensor> operands, const Dims& sizes) {
  bool alike = true;
  for (const Tensor& x : operands)
    alike = alike && x.sizes() == sizes && x.strides() == operands[0].strides() && is_dense(sizes, x.strides());
  if (alike) return operands[0].strides();
  std::vector<Dims> strides;
  strides.reserve(operands.size());
  for (const Tensor& x : operands) strides.push_back(spread_strides(x, sizes));
  std::array<std::size_t, Dims::kMost> order{};
  for (std::size_t i = 0; i < sizes.rank; ++i) order[i] = sizes.rank - 1 - i;
  for (std::size_t i = 1; i < sizes.rank; ++i) {
    std::size_t at = i;
    for (std::size_t j = i; j-- > 0;) {
      const int compared = should_swap(strides, sizes, order[j], order[at]);
      if (compared < 0) break;
      if (compared > 0) {
        std::swap(order[j], order[at]);
        at = j;
      }
    }
  }
  Dims result = sizes;
  std::int64_t next = 1;
  for (std::size_t k = 0; k < sizes.rank; ++k) {
    result[order[k]] = next;
    next *= sizes[order[k]];
  }
  return result;
}

/// cuBLAS takes a matrix as it lies when its rows or its columns do not overlap and one of them is dense.
bool fits_cublas(const Tensor& x) {
  const std::int64_t row = x.strides().back(1), column = x.strides().back(0);
  const std::int64_t rows = x.sizes().back(1), columns = x.sizes().back(0);
  return (row == 1 && column >= std::max<std::int64_t>(1, rows)) ||
         (column == 1 && row >= std::max<std::int64_t>(1, columns));
}

/// pytorch-memory.md section 3: aten/src/ATen/cuda/CublasHandlePool.cpp, parseChosenWorkspaceSize().
constexpr Bytes kWorkspace{8'519'680};
constexpr Bytes kHopperWorkspace{33'554'432};
constexpr Bytes kLtWorkspace{1'048'576};

}  // namespace

Tensor transposed(const Tensor& x, std::size_t a, std::size_t b) {
  Dims sizes = x.sizes(), strides = x.strides();
  std::swap(sizes[a], sizes[b]);
  std::swap(strides[a], strides[b]);
  return x.view(sizes, strides);
}

Tensor expanded(const Tensor& x, const Dims& sizes) {
  return x.view(sizes, spread_strides(x, sizes));
}

Tensor Runtime::empty(const Dims& sizes, Scalar scalar) {
  return empty(sizes, contiguous_strides(sizes), scalar);
}

Tensor Runtime::empty(const Dims& sizes, const Dims& strides, Scalar scalar) {
  return {tape_, tape_.take(Bytes{sizes.product() * bytes_of(scalar)}), sizes, strides, scalar};
}

Tensor Runtime::named(std::string_view name, Category category, const Dims& sizes, Scalar scalar) {
  tape_.begin_op(tape_.keep(name));
  Tensor t = empty(sizes, scalar);
  tape_.set_category(t.storage().buffer(), category);
  return t;
}

Tensor Runtime::without_memory(const Dims& sizes, Scalar scalar) {
  return {tape_, BufferId{}, sizes, contiguous_strides(sizes), scalar};
}

Tensor Runtime::elementwise(std::span<const Tensor> operands, Scalar scalar) {
  Dims sizes = operands[0].sizes();
  for (const Tensor& x : operands) sizes = broadcast(sizes, x.sizes());
  return empty(sizes, result_strides(operands, sizes), scalar);
}

Tensor Runtime::reduce(const Tensor& x, std::uint32_t dimensions, Scalar scalar) {
  Dims sizes = x.sizes();
  for (std::size_t i = 0; i < sizes.rank; ++i)
    if ((dimensions >> i & 1U) != 0) sizes[i] = 1;
  Tensor result = empty(sizes, scalar);
  const ReductionBuffers hidden = reduction_buffers(x.sizes(), x.strides(), dimensions, machine_);
  if (hidden.partial > Bytes{0}) {
    const BufferId partial = tape_.take(hidden.partial), semaphores = tape_.take(hidden.semaphores);
    tape_.give_back(semaphores);
    tape_.give_back(partial);
  }
  return result;
}

Tensor Runtime::clone(const Tensor& x, Scalar scalar) {
  return empty(x.sizes(), is_dense(x.sizes(), x.strides()) ? x.strides() : dense_strides(x.sizes(), x.strides()),
               scalar);
}

Tensor Runtime::contiguous(const Tensor& x) {
  return x.is_contiguous() ? x : empty(x.sizes(), x.scalar());
}

Tensor Runtime::reshape(const Tensor& x, const Dims& sizes) {
  if (const auto strides = view_strides(x.sizes(), x.strides(), sizes)) return x.view(sizes, *strides);
  const Tensor copy = empty(x.sizes(), x.scalar());
  return copy.view(sizes, contiguous_strides(sizes));
}

void Runtime::use_workspace() {
  const bool hopper = machine_.compute_capability == 90;
  Tensor& workspace = workspace_[in_backward_ ? 1 : 0];
  if (workspace) return;
  if (tape_.muted()) return;
  workspace = empty({(hopper ? kHopperWorkspace : kWorkspace).count()}, Scalar::boolean);
  tape_.set_category(workspace.storage().buffer(), Category::workspace);
  tape_.set_name(workspace.storage().buffer(), in_backward_ ? "cuBLAS, autograd's thread" : "cuBLAS");
}

Tensor Runtime::mm(const Tensor& a, const Tensor& b) {
  Tensor result = empty({a.sizes()[0], b.sizes()[1]}, a.scalar());
  const Tensor left = fits_cublas(a) ? a : contiguous(a);
  const Tensor right = fits_cublas(b) ? b : contiguous(b);
  use_workspace();
  return result;
}

Tensor Runtime::bmm(const Tensor& a, const Tensor& b) {
  Tensor result = empty({a.sizes()[0], a.sizes()[1], b.sizes()[2]}, a.scalar());
  const Tensor left = fits_cublas(a) ? a : contiguous(a);
  const Tensor right = fits_cublas(b) ? b : contiguous(b);
  use_workspace();
  return result;
}

Tensor Runtime::addmm(const Tensor& a, const Tensor& b) {
  Tensor result = empty({a.sizes()[0], b.sizes()[1]}, a.scalar());
  use_workspace();
  if (kKeepsLtWorkspace.holds(version_)) {
    Tensor& workspace = lt_workspace_[in_backward_ ? 1 : 0];
    if (workspace || tape_.muted()) return result;
    workspace = empty({kLtWorkspace.count()}, Scalar::boolean);
    tape_.set_category(workspace.storage().buffer(), Category::workspace);
    tape_.set_name(workspace.storage().buffer(), in_backward_ ? "cuBLASLt, autograd's thread" : "cuBLASLt");
  } else {
    tape_.give_back(tape_.take(kLtWorkspace));
  }
  return result;
}

Tensor Runtime::sum_to(const Tensor& gradient, const Dims& sizes) {
  tape_.begin_op("sum");
  const std::size_t leading = gradient.sizes().rank - sizes.rank;
  std::uint32_t reduced = 0;
  for (std::size_t i = 0; i < gradient.sizes().rank; ++i)
    if (i < leading || (sizes[i - leading] == 1 && gradient.sizes()[i] != 1)) reduced |= 1U << i;
  const Tensor sum = reduce(gradient, reduced, gradient.scalar());
  return leading > 0 ? sum.view(sizes, contiguous_strides(sizes)) : sum;
}

void Runtime::backward(const Tensor& loss) {
  tape_.set_module("", -1);
  tape_.begin_op("the loss' gradient");
  tape_.set_part(Part::backward, Category::workspace);
  const Tensors scaled = sharding != nullptr ? sharding->scaled(loss) : Tensors{};
  {
    const Tensor root = empty(loss.sizes(), loss.scalar());
    gradients_wanted = false;
    in_backward_ = true;
    graph_.run(scaled.empty() ? loss : scaled.back(), root, parameters_, *this);
    if (sharding != nullptr) sharding->end_backward();
  }
  if (sharding != nullptr) sharding->after_backward();
  in_backward_ = false;
  gradients_wanted = true;
}

Tensor Runtime::checkpoint(const Tensor& x, std::function<Tensor(const Tensor&)> part) {
  auto kept = std::make_shared<Checkpoint>();
  kept->again = [this, x, part, scalar = autocast] {
    tape_.set_part(Part::recompute, Category::activation);
    gradients_wanted = true;
    begin_autocast(scalar);
    (void)part(x);
    end_autocast();
    gradients_wanted = false;
    tape_.set_part(Part::backward, Category::workspace);
  };
  graph_.begin_checkpoint(std::move(kept));
  Tensor y = part(x);
  graph_.end_checkpoint();
  return y;
}

Tensor Runtime::checkpoint_selectively(const Tensor& x, std::function<Tensor(const Tensor&)> part,
                                       bool keeps_attention) {
  auto results = std::make_shared<KeptResults>();
  results->attention = keeps_attention;
  return checkpoint(x, [this, results, part = std::move(part)](const Tensor& input) {
    keeping_ = results.get();
    keeping_->products = 0;
    Tensor y = part(input);
    keeping_ = nullptr;
    return y;
  });
}

Tensors Runtime::kept_attention(const std::function<Tensors()>& make) {
  return keeping_ != nullptr && keeping_->attention ? kept_results(make) : make();
}

Tensors Runtime::kept_results(const std::function<Tensors()>& make) {
  if (graph_.in_second_run()) {
    Tensors kept = std::move(keeping_->results.front());
    keeping_->results.pop_front();
    return kept;
  }
  Tensors made = make();
  Tensors kept;
  for (const Tensor& t : made) kept.push_back(t.view(t.sizes(), t.strides()));
  keeping_->results.push_back(std::move(kept));
  return made;
}

Tensor Runtime::kept_product(const std::function<Tensor()>& make) {
  if (keeping_ == nullptr || ++keeping_->products % 2 == 0) return make();
  return kept_results([&] { return Tensors{make()}; })[0];
}

}  // namespace shard::like::eager
