// A table of operators, each with how often it passes over what; kernels of one operator by their names.
#include "sim/price/moved_rules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sim/price/tensors.h"

namespace shard::price {
namespace {

constexpr std::string_view kElementwise = "elementwise", kReduction = "reductions and norms", kLookup = "lookups",
                           kOptimizer = "optimizers", kSorting = "sorting", kCopies = "copies",
                           kCompiled = "compiled kernels";
constexpr double kDoubtOfElements = 0.1, kDoubtOfNorms = 0.25, kDoubtOfLookups = 0.5, kDoubtOfOptimizers = 0.15,
                 kDoubtOfSorting = 0.6, kDoubtOfOthers = 0.5;

std::optional<Moved> elementwise(double bytes) {
  return Moved{.bytes = bytes, .doubt = kDoubtOfElements, .law = kElementwise};
}
std::optional<Moved> reduction(double bytes) {
  return Moved{.bytes = bytes, .reduces = true, .doubt = kDoubtOfNorms, .law = kReduction};
}
/// Waits for the number before it reads the row: no faster than a reduction.
std::optional<Moved> lookup(double bytes) {
  return Moved{.bytes = bytes, .reduces = true, .doubt = kDoubtOfLookups, .law = kLookup};
}

/// Without namespace and underscores before and behind: "add", for "aten::add_".
std::string_view plain_name(std::string_view name) {
  if (const std::size_t at = name.rfind("::"); at != std::string_view::npos) name.remove_prefix(at + 2);
  while (name.starts_with('_')) name.remove_prefix(1);
  while (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

/// What an operator reads and writes that makes each element of its result of one of each tensor.
double loop_bytes(const Operator& op) {
  const std::string_view name = plain_name(op.name);
  const bool in_place = op.name.ends_with('_');
  const double read = input_bytes(op);
  if (is_one_of(name, {"copy", "fill", "zero", "uniform", "normal", "random", "bernoulli", "exponential"}))
    return read;  // the first tensor is written, and not read
  if (in_place && !op.inputs.empty()) return read + bytes(op.inputs.front());
  const bool compares = is_one_of(name, {"eq", "ne", "lt", "gt", "le", "ge", "logical_and", "logical_or", "logical_not",
                                         "isnan", "isinf", "isfinite", "bitwise_and", "bitwise_or", "bitwise_not"});
  return read + broadcast_elements(op) * (compares ? 1 : promoted_bytes(op));
}

/// Tensors that are not dense are read element by element: half of what is fetched is used, in 16 bits.
double strided(const KernelCall& call, double bytes) {
  const bool dense = has_any(call.name, "vectorized_elementwise", "unrolled_elementwise");
  const bool narrow = call.op != nullptr && promoted_bytes(*call.op) <= 2;
  constexpr double kStrided16 = 1.8, kStrided32 = 1.2;
  return dense ? bytes : bytes * (narrow ? kStrided16 : kStrided32);
}

/// A loop of PyTorch's over elements: by its operator's tensors, as far as its own grid reaches.
std::optional<Moved> of_loop(const KernelCall& call, const Loop& loop) {
  const double by_name = loop.elements * std::max(loop.tensors, 1);
  if (call.op == nullptr) return elementwise(by_name * 4);
  const Operator& op = *call.op;
  const double all = broadcast_elements(op), width = std::max(promoted_bytes(op), 1.0);
  // Of kernels that an operator launches beside its own, a fill say, the grid tells.
  const bool is_of_all = loop.elements >= 0.5 * all;
  const bool fills = has_any(call.name, "FillFunctor", "fill_kernel");
  if (fills || !is_of_all) return elementwise(std::min(by_name, all * 4) * width);
  return elementwise(strided(call, loop_bytes(op)));
}

std::optional<Moved> of_norm(const KernelCall& call, std::string_view name) {
  const Operator& op = *call.op;
  const double one = op.inputs.empty() ? 0 : bytes(op.inputs.front());
  const bool backward = has(name, "backward");
  constexpr double kNarrowRows = 1.25;  // rows in 16 bits are short: less is under way at once
  const double rows = one * (!op.inputs.empty() && element_bytes(op.inputs.front().type) == 2 ? kNarrowRows : 1);
  if (has(name, "batch_norm")) {
    if (call.name.starts_with("cudnn")) return reduction((backward ? 5 : 3) * one);
    if (has(call.name, "collect_statistics")) return reduction(one);
    if (has(call.name, "transform_input")) return elementwise(2 * one);
    if (has(call.name, "backward_reduce")) return reduction(2 * one);
    if (has(call.name, "backward_elemt")) return elementwise(3 * one);
    if (has(call.name, "bn_fw")) return reduction(3 * one);
    return reduction((backward ? 5 : 3) * one);
  }
  if (!backward) return reduction(2 * rows);
  // Of the input, then of the weights, which sums over rows: it reads both and writes little.
  const bool of_weights = has_any(call.name, "GammaBeta", "gamma_beta", "GammaBackward", "InternalGradients",
                                  "ComputeBackwardFused", "compute_internal");
  return reduction((of_weights ? 2 : 3) * rows);
}

/// A row that fits into registers or shared memory is read once; another is read for its maximum, its sum and its
/// result. Rows that do not begin at 16 bytes are not read in wide pieces.
std::optional<Moved> of_softmax(const KernelCall& call, std::string_view name) {
  const Operator& op = *call.op;
  if (op.inputs.empty() || op.inputs.front().sizes.empty()) return {};
  const Tensor& first = op.inputs.front();
  const double row = static_cast<double>(first.sizes.back()) * element_bytes(first.type);
  constexpr double kUnaligned = 1.35, kWide = 16;
  const double aligned = std::fmod(row, kWide) == 0 ? 1 : kUnaligned;
  const bool backward = has(name, "backward");
  const bool again = has_any(call.name, "cunn_SoftMaxForward", "cunn_SoftMaxBackward") && !has(call.name, "Smem");
  const double passes = backward ? (again ? 5 : 3) : (again ? 4 : 2);
  return reduction(passes * bytes(first) * aligned);
}

/// Rows of a table by their numbers, and the other way.
std::optional<Moved> of_lookup(const KernelCall& call, std::string_view name) {
  const Operator& op = *call.op;
  if (is_one_of(name, {"embedding", "index_select", "gather", "take", "index", "take_along_dim"})) {
    const Tensor* const table = op.inputs.empty() ? nullptr : &op.inputs.front();
    if (table == nullptr || op.inputs.size() < 2) return {};
    const bool of_rows = name == "embedding" || name == "index_select";
    double wide = of_rows && !table->sizes.empty() ? elements(*table) / static_cast<double>(table->sizes.front()) : 1;
    if (name == "index" && table->sizes.size() > 1) wide = elements(*table) / static_cast<double>(table->sizes.front());
    const double rows = elements(op.inputs.back());
    return lookup(2 * rows * wide * element_bytes(table->type) + bytes(op.inputs.back()));
  }
  if (has(name, "embedding") && has(name, "backward")) {
    const Tensor* const gradient = op.inputs.empty() ? nullptr : &op.inputs.front();
    if (gradient == nullptr) return {};
    if (has_any(call.name, "compute_grad_weight", "embedding_backward", "EmbeddingBackward_kernel"))
      return lookup(2 * bytes(*gradient));
    if (has(call.name, "sum_and_scatter")) return lookup(bytes(*gradient));
    return Moved{.bytes = 4 * argument_bytes(op, 1), .doubt = kDoubtOfSorting, .law = kSorting};
  }
  if (is_one_of(name, {"index_add", "index_put", "index_put_impl", "scatter", "scatter_add", "index_copy"})) {
    const Tensor* const values = op.inputs.empty() ? nullptr : &op.inputs.back();
    return values == nullptr ? std::nullopt : lookup(3 * bytes(*values));
  }
  return {};
}

/// Of an element that a kernel over lists computes with, by the types of its template.
double list_element(std::string_view kernel) {
  if (has_any(kernel, "8BFloat16", "4Half", "BFloat16", "Half")) return 2;
  return has_any(kernel, "FunctorIdL", "Functor<double") ? 8 : 4;
}

/// A kernel over lists of tensors (ATen/native/cuda/MultiTensorApply.cuh): its blocks take a chunk each; lists that it
/// reads and writes stand in its template. Small tensors leave chunks unfilled, so where the operator tells all of them
/// that counts.
std::optional<Moved> of_lists(const KernelCall& call, std::string_view name) {
  constexpr double kChunk = 65536;
  const ListTemplate lists = list_template_of(call.name);
  const double chunks = static_cast<double>(call.grid[0]) * kChunk * list_element(call.name);
  const bool updates = has_any(name, "adam", "sgd", "adagrad", "lamb");
  double passes = lists.read + 1;
  if (has(name, "norm") || has(call.name, "NormFunctor")) passes = lists.read;
  if (has(name, "adam")) passes = 7;  // of four lists that are read three are written
  if (has(name, "sgd")) passes = lists.read > 2 ? 5 : 3;
  double bytes = chunks * passes;
  if (call.op != nullptr && call.op->inputs.size() > 1) {
    const double one = elements_of(*call.op, 0) * list_element(call.name) * call.share;
    if (one > 0) bytes = std::min(bytes, one * passes);
  }
  if (bytes <= 0) return {};
  return Moved{.bytes = bytes,
               .reduces = has(name, "norm"),
               .doubt = kDoubtOfOptimizers,
               .law = updates || has(name, "foreach") ? kOptimizer : kElementwise};
}

bool is_reduction(std::string_view name) {
  return is_one_of(name, {"sum", "mean", "norm", "linalg_vector_norm", "amax", "amin", "max", "min", "argmax", "argmin",
                          "any", "all", "var", "std", "var_mean", "logsumexp", "prod", "nansum", "count_nonzero"});
}
bool is_sorting(std::string_view name) {
  return is_one_of(name, {"sort", "topk", "cumsum", "unique", "unique2", "nonzero", "masked_select", "argsort",
                          "kthvalue", "unique_consecutive", "randperm", "cumprod", "bincount", "histc", "multinomial"});
}
bool is_copy(std::string_view name) {
  return is_one_of(name, {"cat", "stack", "split_with_sizes_copy", "all_gather_copy_in", "chunk_cat", "copy", "clone",
                          "contiguous", "repeat", "roll", "flip", "constant_pad_nd", "slice_scatter"}) ||
         has_any(name, "pad", "unfold", "col2im", "im2col");
}

/// What is copied, by the side of it that is one tensor; of lists alone, whose types nobody tells, by the kernel's.
double copied_bytes(const Operator& op, const KernelCall& call) {
  double most = 0, lists = 0;
  for (const Tensor& tensor : op.inputs) {
    const double each = element_bytes(tensor.type);
    if (each > 0) most = std::max(most, elements(tensor) * each);
    if (each == 0) lists += elements(tensor) * list_element(call.name);
  }
  return most > 0 ? most : lists;
}

std::optional<Moved> of_copy(const KernelCall& call) {
  constexpr double kInPieces = 1.5;  // a kernel that does not copy in wide pieces
  const bool wide = !has(call.name, "CatArrayBatchedCopy") || has_any(call.name, "vectorized", "alignedK");
  const double bytes = 2 * copied_bytes(*call.op, call) * call.share * (wide ? 1 : kInPieces);
  if (bytes <= 0) return {};  // of long lists the profiler does not say the sizes
  return Moved{.bytes = bytes, .doubt = kDoubtOfElements + 0.05, .law = kCopies};
}

/// cuDNN's, from one order of dimensions to another and back: blocks take 1,024 elements each.
std::optional<Moved> of_layout(const KernelCall& call) {
  constexpr double kElements = 1024;
  double all = 0;
  for (const Tensor& tensor : call.op->inputs) all = std::max(all, bytes(tensor));
  const double blocks = static_cast<double>(call.grid[0] * call.grid[1] * call.grid[2]);
  const double each = call.op->inputs.empty() ? 4 : element_bytes(call.op->inputs.front().type);
  return elementwise(2 * std::min(all, blocks * kElements * each));
}

std::optional<Moved> of_pooling(const KernelCall& call, std::string_view name) {
  const Operator& op = *call.op;
  const double read = input_bytes(op);
  // The other side is smaller by the window: a quarter, where that is two by two.
  return reduction(has(name, "backward") ? read * 1.5 : read * 1.25);
}

std::optional<Moved> of_loss(const KernelCall& call) {
  // A row is looked at in one place: a sector of memory each, and its label.
  constexpr double kSector = 32;
  double rows = 1;
  for (const Tensor& tensor : call.op->inputs)
    if (tensor.type == "long int") rows = std::max(rows, elements(tensor));
  return lookup(rows * (kSector + 8));
}

/// PyTorch's own sums (ATen/native/cuda/Reduce.cuh) are nearer to the bandwidth than norms, but a few blocks alone do
/// not reach it (A100, H100: 1,135 of 1,555 and 2,420 of 3,350 GB/s, and some 10 GB/s of a block).
std::optional<Moved> of_sum(const KernelCall& call) {
  constexpr double kBesideNorms = 0.82, kBlocks = 128;
  const double read = input_bytes(*call.op);
  if (!has(call.name, "reduce_kernel")) return reduction(read);
  const double blocks = std::max(1.0, static_cast<double>(call.grid[0] * call.grid[1] * call.grid[2]));
  return reduction(read * (blocks < kBlocks ? kBlocks / blocks : kBesideNorms));
}

/// Of a product whose k was split: the parts of the result, four say, are read and one is written.
std::optional<Moved> of_split_product(const Operator& op) {
  constexpr double kParts = 4, kPartBytes = 4;
  const Tensor *first = nullptr, *second = nullptr;
  for (const Tensor& tensor : op.inputs)
    if (tensor.sizes.size() >= 2) first = std::exchange(second, &tensor);
  if (first == nullptr || first->sizes.back() <= 0) return {};
  const double rows = elements(*first) / static_cast<double>(first->sizes.back());
  return Moved{.bytes = rows * static_cast<double>(second->sizes.back()) * (kParts + 1) * kPartBytes,
               .doubt = kDoubtOfOthers,
               .law = kReduction};
}

/// Whose time is not that of the operator's bytes.
bool computes(std::string_view kernel) {
  return has_any(kernel, "gemm", "Gemm", "GEMM", "cutlass", "xmma", "nvjet", "scudnn", "winograd", "fft", "convolve",
                 "flash", "fmha");
}

/// Whether it is said of any tensor what it is like: profilers may be told not to record shapes.
bool says_shapes(const Operator& op) {
  return std::ranges::any_of(op.inputs, [](const Tensor& tensor) { return !tensor.type.empty(); });
}

/// What an operator of PyTorch moves, whatever its kernels are called.
std::optional<Moved> of_operator(const KernelCall& call) {
  const Operator& op = *call.op;
  const std::string_view name = plain_name(op.name);
  if (has_any(call.name, "multi_tensor_apply", "foreach") || has(name, "foreach") || has(name, "fused_adam") ||
      has(name, "fused_sgd"))
    return of_lists(call, name);
  if (has_any(call.name, "nchwToNhwc", "nhwcToNchw")) return of_layout(call);
  if (has_any(call.name, "splitKreduce", "splitk_reduce")) return of_split_product(op);
  if (has(name, "embedding") || is_one_of(name, {"index_select", "gather", "take", "index", "index_add", "index_put",
                                                 "index_put_impl", "scatter", "scatter_add", "index_copy"})) {
    const std::optional<Loop> loop = loop_of(call);
    if (loop && !has_any(call.name, "index", "gather", "scatter")) return of_loop(call, *loop);
    return of_lookup(call, name);
  }
  if (has_any(name, "layer_norm", "rms_norm", "batch_norm", "group_norm")) {
    const std::optional<Loop> loop = loop_of(call);
    if (loop && has(call.name, "Fill")) return of_loop(call, *loop);
    return of_norm(call, name);
  }
  if (has(name, "softmax")) return of_softmax(call, name);
  if (has(name, "nll_loss")) {
    const std::optional<Loop> loop = loop_of(call);
    return loop ? of_loop(call, *loop) : of_loss(call);
  }
  if (has(name, "pool")) return of_pooling(call, name);
  if (is_sorting(name)) return Moved{.bytes = 2 * input_bytes(op), .doubt = kDoubtOfSorting, .law = kSorting};
  if (is_reduction(name) && !loop_of(call)) return of_sum(call);
  if (const std::optional<Loop> loop = loop_of(call)) return of_loop(call, *loop);
  if (is_copy(name)) return of_copy(call);
  if (name == "native_dropout") return elementwise(2 * input_bytes(op) + broadcast_elements(op));
  if (has(call.name, "reduce_kernel")) return of_sum(call);
  if (op.name.starts_with("aten::") && !computes(call.name))
    return Moved{.bytes = loop_bytes(op) * call.share, .doubt = kDoubtOfOthers, .law = kElementwise};
  return {};
}

}  // namespace

std::optional<Moved> moved_by(const KernelCall& call) {
  // Triton's, which the dry run's hook tells the tensors of: each is read or written once, it is assumed.
  if (call.op != nullptr && call.op->name.starts_with("triton::")) {
    const double bytes = input_bytes(*call.op);
    if (bytes <= 0) return {};
    return Moved{.bytes = bytes, .doubt = kDoubtOfOthers, .law = "Triton kernels"};
  }
  // Inductor's: the operator is the kernel's own record, with its arguments.
  if (has(call.name, "triton_") || (call.op != nullptr && call.op->name.starts_with("triton_"))) {
    if (call.op == nullptr || !call.op->name.starts_with("triton_")) return {};
    const bool reduces = has_any(call.name, "triton_red_", "triton_per_");
    return Moved{.bytes = input_bytes(*call.op), .reduces = reduces, .doubt = 0.3, .law = kCompiled};
  }
  if (call.op != nullptr && has(call.op->name, "::") && says_shapes(*call.op)) return of_operator(call);
  if (has(call.name, "multi_tensor_apply")) return of_lists(call, has(call.name, "Adam") ? "adam" : "");
  KernelCall alone = call;
  if (call.op != nullptr && !says_shapes(*call.op)) alone.op = nullptr;
  if (const std::optional<Loop> loop = loop_of(alone)) return of_loop(alone, *loop);
  return {};
}

}  // namespace shard::price
