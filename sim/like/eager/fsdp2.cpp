// torch/distributed/fsdp/_fully_shard: fully_shard() of each block and of the model, PyTorch 2.11.
#include <algorithm>
#include <utility>

#include "sim/like/eager/division.h"
#include "sim/like/eager/sharding.h"

namespace shard::like::eager {
namespace {

/// Streams whose blocks are apart from the program's.
constexpr std::uint8_t kCopyIn = 1, kReduce = 2;

/// Blocks of the kernels that copy a group out of, or into, one buffer: ATen/native/cuda/TensorShape.cu.
constexpr std::int64_t kThreads = 128, kBytesPerBlock = kThreads * 16, kOversubscribed = 2;

class Fsdp2 final : public Sharding {
 public:
  using Sharding::Sharding;

  void create(const model::Model& model, const std::function<void()>& make_buffers) override {
    units_.resize(static_cast<std::size_t>(model.layers) + 1);
    for (std::size_t p = 0; p < model.parameters.size(); ++p) {
      const std::int32_t block = model.parameter_block[p];
      (block < 0 ? root() : units_[static_cast<std::size_t>(block)]).parameters.push_back(p);
      Dims sizes;
      for (const std::int64_t s : model.parameters[p].shape) sizes.push(s);
      Tensor t = r_.without_memory(sizes, options_.compute);
      t.set_parameter(static_cast<std::int32_t>(p));
      r_.parameters().push_back(t);
    }
    shards_.resize(r_.parameters().size());
    shard_gradients_.resize(r_.parameters().size());
    for (Unit& u : units_) shard(u, model, &u == &root() ? make_buffers : std::function<void()>{});
  }

  void enter_model() override {
    for (Unit& u : units_) u.in_backward = false;
    gather(root());
    wait(root(), true);
  }
  void leave_model(const Tensor& loss, const Tensor& logits) override {
    for (const Tensor& output : {loss, logits}) r_.graph().before(output, [this] { before_backward(root()); });
    leave(root());
    previous_gathered_ = {};
  }
  Tensor enter(std::size_t block, const Tensor& x) override {
    Unit& u = units_[block];
    if (u.in_backward) return x;  // run again: what it needs is gathered
    gather(u);
    wait(u, true);
    Tensor entered = x.view(x.sizes(), x.strides());
    r_.graph().record(entered, {r_.graph().edge(x)}, [this, &u](const Tensors& g) -> Tensors {
      after_backward(u);
      return {g[0]};
    });
    return entered;
  }
  void leave(std::size_t block, const Tensor& y) override {
    Unit& u = units_[block];
    if (u.in_backward) return;
    if (options_.reshard_after_forward) drop(u);
    leave(u);
    r_.graph().before(y, [this, &u] { before_backward(u); });
  }
  void end_backward() override {
    after_backward(root());
    order_.clear();
    reduced_from_ = {};
  }

 private:
  struct Unit {
    std::vector<std::size_t> parameters{};
    Tensor gathered{};  ///< what the collective wrote, until it is copied out
    bool whole = false;
    bool in_backward = false;
    std::size_t forward_at = 0;  ///< in order_
  };
  Unit& root() { return units_.back(); }

  /// Rows of a parameter that every rank has, the last rank's padded.
  [[nodiscard]] std::int64_t rows(const Tensor& t) const { return divide_up(t.size(0), options_.ranks); }
  [[nodiscard]] std::int64_t shard_elements(const Tensor& t) const { return rows(t) * (t.elements() / t.size(0)); }
  [[nodiscard]] std::int64_t shard_elements(const Unit& u) const {
    std::int64_t sum = 0;
    for (const std::size_t p : u.parameters) sum += shard_elements(r_.parameters()[p]);
    return sum;
  }

  /// The whole parameters come from the host, shards are cut, the whole ones go.
  void shard(Unit& u, const model::Model& model, const std::function<void()>& make_buffers) {
    Tensors moved;
    r_.tape().begin_op("fully_shard");
    for (const std::size_t p : u.parameters) moved.push_back(r_.empty(r_.parameters()[p].sizes(), options_.resting));
    if (make_buffers) make_buffers();
    for (const std::size_t p : u.parameters) {
      Dims sizes = r_.parameters()[p].sizes();
      sizes[0] = rows(r_.parameters()[p]);
      r_.tape().begin_op(r_.tape().keep(model.parameters[p].name));
      shards_[p] = r_.empty(sizes, options_.resting);
    }
    std::reverse(moved.begin(), moved.end());
    while (!moved.empty()) moved.pop_back();
  }

  /// foreach_all_gather.
  void gather(Unit& u) {
    if (u.whole || u.gathered) return;
    const std::int64_t elements = shard_elements(u);
    r_.tape().begin_op("all-gather");
    r_.tape().on_stream(kCopyIn);
    Tensor cast;
    if (options_.compute != options_.resting) cast = r_.empty({elements}, options_.compute);
    u.gathered = staged({elements * options_.ranks}, options_.compute, Category::communication);
    cast = {};
    r_.tape().on_stream(0);
  }

  /// wait_for_unshard: in forward the buffer lives on until the next one is copied out.
  void wait(Unit& u, bool forward) {
    if (!u.gathered) return;
    r_.tape().begin_op("copy out");
    std::vector<std::int64_t> bytes;
    for (const std::size_t p : u.parameters) {
      const Tensor& t = r_.parameters()[p];
      const std::int64_t own = shard_elements(t) * bytes_of(options_.compute);
      bytes.push_back(own);
      const BufferId memory = r_.tape().take(Bytes{own * options_.ranks});
      r_.tape().set_category(memory, Category::gathered);
      r_.tape().set_name(memory, "gathered ", shards_[p].storage().buffer(), "");
      t.storage().refill(memory);
    }
    take_table(split_table(bytes));
    u.whole = true;
    if (forward)
      previous_gathered_ = std::move(u.gathered);
    else
      u.gathered = {};
  }

  void drop(Unit& u) {
    for (const std::size_t p : u.parameters) r_.parameters()[p].storage().drop();
    u.whole = false;
  }
  void leave(Unit& u) {
    u.forward_at = order_.size();
    order_.push_back(&u);
  }

  void before_backward(Unit& u) {
    if (u.in_backward) return;
    u.in_backward = true;
    gather(u);
    wait(u, false);
    if (u.forward_at > 0) gather(*order_[u.forward_at - 1]);
  }

  /// post_backward and foreach_reduce.
  void after_backward(Unit& u) {
    Tensors whole;
    for (const std::size_t p : u.parameters)
      if (Tensor& g = r_.graph().gradients()[p]) whole.push_back(std::exchange(g, {}));
    drop(u);
    reduced_from_ = {};
    const std::int64_t elements = shard_elements(u);
    r_.tape().begin_op("reduce-scatter");
    Tensor from = staged({elements * options_.ranks}, options_.reduced, Category::communication);
    take_table(concatenation_table(u));
    const Tensor last = whole.back();  // a local name of the function
    while (!whole.empty()) whole.pop_back();
    r_.tape().on_stream(kReduce);
    Tensor sum = staged({elements}, options_.reduced, Category::gradient);
    if (options_.reduced != options_.resting) sum = staged({elements}, options_.resting, Category::gradient);
    r_.tape().on_stream(0);
    for (const std::size_t p : u.parameters)
      if (!shard_gradients_[p]) shard_gradients_[p] = sum.view(shards_[p].sizes(), shards_[p].strides());
    reduced_from_ = std::move(from);
  }

  Tensor staged(const Dims& sizes, Scalar scalar, Category category) {
    Tensor t = r_.empty(sizes, scalar);
    r_.tape().set_category(t.storage().buffer(), category);
    return t;
  }

  /// Addresses, sizes and which block works on what, copied to the GPU before the kernel runs.
  void take_table(std::int64_t entries) { r_.tape().give_back(r_.tape().take(Bytes{entries * 8})); }
  [[nodiscard]] std::int64_t split_table(const std::vector<std::int64_t>& bytes) const {
    std::int64_t blocks = 0, rounds = 1, launched = 0;
    for (const std::int64_t b : bytes) blocks += divide_up(b, kBytesPerBlock);
    const std::int64_t most =
        r_.machine().multiprocessors * r_.machine().threads_per_multiprocessor / kThreads * kOversubscribed;
    if (blocks > most) rounds = divide_up(blocks, most);
    for (const std::int64_t b : bytes) launched += divide_up(b, kBytesPerBlock * rounds);
    return launched + 4 * static_cast<std::int64_t>(bytes.size()) + 1;
  }
  [[nodiscard]] std::int64_t concatenation_table(const Unit& u) const {
    std::int64_t blocks = 0;
    for (const std::size_t p : u.parameters)
      blocks += divide_up(shard_elements(r_.parameters()[p]) * bytes_of(options_.reduced), kBytesPerBlock);
    return blocks + 6 * static_cast<std::int64_t>(u.parameters.size()) + 2;
  }

  std::vector<Unit> units_;   ///< the blocks, then the model's own
  std::vector<Unit*> order_;  ///< in which forward left them
  Tensor previous_gathered_;  ///< the buffer before, copied out
  Tensor reduced_from_;       ///< what the last reduce-scatter reads
};

}  // namespace

std::unique_ptr<Sharding> fsdp2(Runtime& runtime, const ShardingOptions& options) {
  return std::make_unique<Fsdp2>(runtime, options);
}

}  // namespace shard::like::eager
