// One buffer of gradients, fp32 masters, and an optimizer over these.
#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/like/eager/megatron.h"

namespace shard::like::eager {
namespace {

/// distributed/param_and_grad_buffer.py.
constexpr std::int64_t kParameterUnit = 64, kBucketUnit = 128;

class MegatronOptimizer final : public Sharding {
 public:
  MegatronOptimizer(Runtime& runtime, const ShardingOptions& options)
      : Sharding(runtime, options),
        optimizers_{Optimizer(runtime, options.rule, options.update),
                    Optimizer(runtime, options.rule, options.update)} {}

  /// Behind the model: DistributedDataParallel's buffers, then the optimizer's masters.
  void create(const model::Model& /*model*/, const std::function<void()>& /*make_buffers*/) override {
    // A gradient is added to the buffer as soon as it is there (distributed_data_parallel.py,
    // _make_backward_post_hook).
    r_.graph().after_collecting([this](std::size_t p) { r_.graph().gradients()[p] = {}; });
    make_ranges();
    r_.tape().set_module("", -1);
    if (distributed()) move_parameters();
    r_.tape().begin_op("gradient buffer");
    gradients_ = r_.empty({elements_}, options_.reduced);
    r_.tape().set_category(gradients_.storage().buffer(), Category::gradient);
    r_.tape().begin_op("overflow");
    overflow_ = r_.empty({1}, Scalar::f32);
    r_.tape().set_category(overflow_.storage().buffer(), Category::workspace);
    for (const bool decayed : {true, false}) make_masters(decayed);
  }

  void leave_model(const Tensor&, const Tensor&) override {}
  Tensor enter(std::size_t, const Tensor& x) override { return x; }
  void leave(std::size_t, const Tensor&) override {}

  void zero_grad(Optimizer&, bool) override {}

  /// Groups one after another: weights, then what has one dimension, which does not decay.
  void step(Optimizer&) override {
    for (std::size_t g = 0; g < 2; ++g) {
      shards_ = masters_[g];
      shard_gradients_.assign(shards_.size(), {});
      exchange();
      optimizers_[g].step();
      exchange();
      shards_.clear();
    }
  }

 private:
  [[nodiscard]] bool distributed() const { return options_.distributed_optimizer; }

  /// Parameters lie in the buffer from the last to the first; the distributed optimizer aligns them.
  void make_ranges() {
    const Tensors& all = r_.parameters();
    begins_.resize(all.size());
    for (std::size_t p = all.size(); p-- > 0;) {
      if (distributed()) elements_ = round_up(elements_, kParameterUnit);
      begins_[p] = elements_;
      elements_ += all[p].elements();
    }
    if (distributed()) elements_ = round_up(elements_, std::lcm<std::int64_t>(options_.ranks, kBucketUnit));
  }
  static std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

  /// Parameters become views of one buffer, which they are copied into one by one.
  void move_parameters() {
    r_.tape().begin_op("parameter buffer");
    const Tensor buffer = r_.empty({elements_}, options_.compute);
    r_.tape().set_category(buffer.storage().buffer(), Category::parameter);
    for (std::size_t p = r_.parameters().size(); p-- > 0;) {
      Tensor view = buffer.view(r_.parameters()[p].sizes(), r_.parameters()[p].strides());
      view.set_parameter(static_cast<std::int32_t>(p));
      r_.parameters()[p] = std::move(view);
    }
  }

  /// optimizer/optimizer.py: detach().clone().float(); of the distributed optimizer what this rank has, the first.
  void make_masters(bool decayed) {
    const std::int64_t end = distributed() ? elements_ / options_.ranks : elements_;
    for (std::size_t p = 0; p < r_.parameters().size(); ++p) {
      const Tensor& parameter = r_.parameters()[p];
      if ((parameter.sizes().rank > 1) != decayed) continue;
      const std::int64_t own = std::min(parameter.elements(), std::max<std::int64_t>(0, end - begins_[p]));
      if (own == 0) continue;
      r_.tape().begin_op("masters");
      const Dims sizes = distributed() ? Dims{own} : parameter.sizes();
      const Tensor copy = r_.empty(sizes, parameter.scalar());
      Tensor master = r_.empty(sizes, Scalar::f32);
      r_.tape().set_category(master.storage().buffer(), Category::master_parameter);
      masters_[decayed ? 0 : 1].push_back(std::move(master));
    }
  }

  std::int64_t elements_ = 0;
  std::vector<std::int64_t> begins_;
  Tensor gradients_, overflow_;
  Tensors masters_[2];
  Optimizer optimizers_[2];
};

}  // namespace

std::unique_ptr<Sharding> megatron_optimizer(Runtime& runtime, const ShardingOptions& options) {
  return std::make_unique<MegatronOptimizer>(runtime, options);
}

}  // namespace shard::like::eager
