// torch/nn/parallel/distributed.py and torch/csrc/distributed/c10d/reducer.cpp: DistributedDataParallel, PyTorch 2.11.
#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <utility>

#include "sim/like/eager/ddp_buckets.h"
#include "sim/like/eager/sharding.h"

namespace shard::like::eager {
namespace {

constexpr std::array kBucketLimits{Bytes{1 << 20}, Bytes{25 << 20}};  ///< the first, and those behind it
constexpr std::array kBroadcastLimit{Bytes{250 << 20}};
constexpr std::array kNoLimit{Bytes{std::numeric_limits<std::int64_t>::max()}};

/// Gradients stay the parameters' own: they are copied into buckets, summed there and copied back, which takes nothing.
/// In the first backward all are one bucket; the next forward makes buckets in the order in which they came.
class Ddp final : public Sharding {
 public:
  using Sharding::Sharding;

  [[nodiscard]] bool wraps_placed_module() const override { return true; }

  void create(const model::Model&, const std::function<void()>&) override {
    verify_shapes();
    Tensors states = r_.parameters();
    states.insert(states.end(), r_.buffers().begin(), r_.buffers().end());
    broadcast(states);
    std::vector<std::size_t> all(r_.parameters().size());
    for (std::size_t p = 0; p < all.size(); ++p) all[p] = p;
    make_buckets(all, kNoLimit);
    r_.graph().after_collecting([this](std::size_t p) {
      if (!rebuilt_) arrived_.push_back(p);
    });
  }

  void enter_model() override {
    r_.tape().set_module("", -1);
    if (!arrived_.empty() && !std::exchange(rebuilt_, true)) rebuild();
    broadcast(r_.buffers());
  }
  void leave_model(const Tensor&, const Tensor&) override {}
  Tensor enter(std::size_t, const Tensor& x) override { return x; }
  void leave(std::size_t, const Tensor&) override {}

 private:
  /// Sizes and strides of all parameters, behind those of every rank's count of them.
  void verify_shapes() {
    r_.tape().begin_op("_verify_param_shape_across_processes");
    std::int64_t dimensions = 0;
    for (const Tensor& p : r_.parameters()) dimensions += static_cast<std::int64_t>(p.sizes().rank);
    const Tensor count = r_.empty({1}, Scalar::i64), sent = r_.empty({1}, Scalar::i64),
                 own = r_.empty({1}, Scalar::i64);
    { const Tensor gathered = r_.empty({options_.ranks}, Scalar::i64); }
    const Tensor shapes = r_.empty({2 * dimensions}, Scalar::i64);
  }

  /// compute_bucket_assignment_by_size: of each type apart.
  [[nodiscard]] static std::vector<std::vector<std::size_t>> assigned(const Tensors& tensors,
                                                                      std::span<const Bytes> limits) {
    std::vector<std::vector<std::size_t>> buckets;
    for (const Scalar scalar : {Scalar::f32, Scalar::f16, Scalar::bf16, Scalar::i64, Scalar::boolean}) {
      std::vector<std::size_t> alike;
      std::vector<Bytes> bytes;
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (tensors[i].scalar() != scalar) continue;
        alike.push_back(i);
        bytes.push_back(tensors[i].bytes());
      }
      for (const std::vector<std::size_t>& bucket : assign_buckets(bytes, limits)) {
        buckets.emplace_back();
        for (const std::size_t at : bucket) buckets.back().push_back(alike[at]);
      }
    }
    std::sort(buckets.begin(), buckets.end());
    return buckets;
  }

  [[nodiscard]] Tensor flat(const Tensors& tensors, const std::vector<std::size_t>& bucket) {
    std::int64_t elements = 0;
    for (const std::size_t at : bucket) elements += tensors[at].elements();
    Tensor made = r_.empty({elements}, tensors[bucket.front()].scalar());
    r_.tape().set_category(made.storage().buffer(), Category::communication);
    return made;
  }

  /// _broadcast_coalesced: two buckets at once at most; a single tensor where it is.
  void broadcast(const Tensors& tensors) {
    r_.tape().begin_op("_broadcast_coalesced");
    constexpr std::size_t kAtOnce = 2;
    std::deque<Tensor> in_flight;
    for (const std::vector<std::size_t>& bucket : assigned(tensors, kBroadcastLimit)) {
      if (in_flight.size() == kAtOnce) in_flight.pop_front();
      in_flight.push_back(bucket.size() > 1 ? flat(tensors, bucket) : tensors[bucket.front()]);
    }
    while (!in_flight.empty()) in_flight.pop_front();
  }

  void make_buckets(const std::vector<std::size_t>& order, std::span<const Bytes> limits) {
    r_.tape().begin_op("buckets of gradients");
    Tensors ordered;
    for (const std::size_t p : order) ordered.push_back(r_.parameters()[p]);
    buckets_.clear();
    for (const std::vector<std::size_t>& bucket : assigned(ordered, limits)) buckets_.push_back(flat(ordered, bucket));
  }

  /// Reducer::rebuild_buckets(): ranks agree on it first.
  void rebuild() {
    constexpr std::int64_t kInt = 4;
    r_.tape().begin_op("sync_bucket_indices");
    Tensors ordered;
    for (const std::size_t p : arrived_) ordered.push_back(r_.parameters()[p]);
    {
      const auto count = static_cast<std::int64_t>(ordered.size());
      const auto made = static_cast<std::int64_t>(assigned(ordered, kBucketLimits).size());
      const Tensor indices = r_.empty({(count + 1) * kInt}, Scalar::boolean);
      const Tensor sizes = r_.empty({made * kInt}, Scalar::boolean);
    }
    make_buckets(arrived_, kBucketLimits);
  }

  std::vector<std::size_t> arrived_;  ///< parameters in the order in which the first backward had their gradients
  bool rebuilt_ = false;
  Tensors buckets_;
};

}  // namespace

std::unique_ptr<Sharding> ddp(Runtime& runtime, const ShardingOptions& options) {
  return std::make_unique<Ddp>(runtime, options);
}

}  // namespace shard::like::eager
