// torch/distributed/fsdp/_fully_shard: fully_shard() of each block and of the model, PyTorch 2.11.
#include <algorithm>
#include <utility>

#include "sim/like/eager/fsdp.h"
#include "traces/base/division.h"

namespace shard::like::eager {
namespace {

/// Streams whose blocks are apart from the program's.
constexpr std::uint8_t kCopyIn = 1, kReduce = 2;

/// Blocks of the kernels that copy a group out of, or into, one buffer: ATen/native/cuda/TensorShape.cu.
constexpr std::int64_t kThreads = 128, kBytesPerBlock = kThreads * 16, kOversubscribed = 2;

class Fsdp2 final : public Fsdp {
 public:
  using Fsdp::Fsdp;

  void create(const model::Model& model, const std::function<void()>& make_buffers) override {
    make_units(model);
    shards_.resize(r_.parameters().size());
    shard_gradients_.resize(r_.parameters().size());
    written_.resize(units_.size());
    for (Unit& u : units_) shard(u, model, &u == &root() ? make_buffers : std::function<void()>{});
  }
  void end_backward() override {
    Fsdp::end_backward();
    reduced_from_ = {};
    sent_.clear();
  }

  /// Norms are of shards: DTensor sums their squares over ranks.
  void clip() override {
    if (offloads()) return;  // all of it on the host, whose group sums norms over ranks
    exchange();
    clip_gradients(r_, [this](const Tensor& norms) {
      const Tensor squares = r_.clone(norms), sent = r_.clone(norms);
      return r_.clone(sent);
    });
    exchange();
  }

 private:
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
      if (!offloads()) continue;
      shards_[p] = on_host(sizes, options_.resting, false);
      if (options_.pin_memory) shards_[p] = on_host(sizes, options_.resting, true);
    }
    std::reverse(moved.begin(), moved.end());
    while (!moved.empty()) moved.pop_back();
  }

  /// foreach_all_gather.
  void gather(Unit& u) override {
    if (u.gathered) return;
    u.gathered = true;
    const std::int64_t elements = shard_elements(u);
    r_.tape().begin_op("all-gather");
    r_.tape().on_stream(kCopyIn);
    Tensors inputs;
    if (offloads())
      for (const std::size_t p : u.parameters) inputs.push_back(from_host(shard_elements(r_.parameters()[p])));
    else if (options_.compute != options_.resting)
      inputs.push_back(r_.empty({elements}, options_.compute));
    written_[index(u)] = staged({elements * options_.ranks}, options_.compute, Category::communication);
    inputs.clear();
    r_.tape().on_stream(0);
  }
  /// FSDPParam.all_gather_inputs: a shard is cast on the GPU.
  Tensor from_host(std::int64_t elements) {
    Tensor moved = r_.empty({elements}, options_.resting);
    return options_.compute == options_.resting ? moved : r_.empty({elements}, options_.compute);
  }

  /// wait_for_unshard: in forward the buffer lives on until the next one is copied out.
  void wait(Unit& u, bool forward) override {
    Tensor& written = written_[index(u)];
    if (!written) return;
    r_.tape().begin_op("copy out");
    std::vector<std::int64_t> bytes;
    for (const std::size_t p : u.parameters) {
      const Tensor& t = r_.parameters()[p];
      const std::int64_t own = shard_elements(t) * bytes_of(options_.compute);
      bytes.push_back(own);
      const BufferId memory = r_.tape().take(Bytes{own * options_.ranks});
      r_.tape().set_category(memory, Category::gathered);
      r_.tape().set_name(memory, "", shards_[p].storage().buffer(), "");
      t.storage().refill(memory);
    }
    take_table(split_table(bytes));
    if (forward) previous_ = std::move(written);
    written = {};
  }

  void drop(Unit& u) override {
    for (const std::size_t p : u.parameters) r_.parameters()[p].storage().drop();
    u.gathered = false;
  }
  void end_forward() override { previous_ = {}; }

  /// post_backward and foreach_reduce.
  void reduce(Unit& u) override {
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
    if (options_.replicated) sent_.push_back(sum);
    if (options_.reduced != options_.resting) sum = staged({elements}, options_.resting, Category::gradient);
    r_.tape().on_stream(0);
    for (const std::size_t p : u.parameters) {
      const bool first = !shard_gradients_[p];
      if (offloads()) {  // to be added it is waited for, and not pinned
        Tensor copied = on_host(shards_[p].sizes(), options_.resting, options_.pin_memory && first);
        r_.tape().set_category(copied.storage().buffer(), Category::gradient);
        if (first) shard_gradients_[p] = std::move(copied);
      } else if (first) {
        shard_gradients_[p] = sum.view(shards_[p].sizes(), shards_[p].strides());
      }
    }
    sum = {};
    reduced_from_ = std::move(from);
  }

  Tensor staged(const Dims& sizes, Scalar scalar, Category category) {
    Tensor t = r_.empty(sizes, scalar);
    r_.tape().set_category(t.storage().buffer(), category);
    return t;
  }

  /// Addresses, sizes and which block works on what, copied to the GPU before the kernel runs.
  void take_table(std::int64_t entries) {
    if (offloads()) const Tensor staging = on_host({entries * 2}, Scalar::f32, true);
    r_.tape().give_back(r_.tape().take(Bytes{entries * 8}));
  }
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

  Tensors written_;      ///< by unit: what the collective wrote, until it is copied out
  Tensor previous_;      ///< the one before in forward, copied out
  Tensors sent_;         ///< to the groups that hold the same, until backward ends
  Tensor reduced_from_;  ///< what the last reduce-scatter reads
};

}  // namespace

std::unique_ptr<Sharding> fsdp2(Runtime& runtime, const ShardingOptions& options) {
  return std::make_unique<Fsdp2>(runtime, options);
}

}  // namespace shard::like::eager
