// DeepSpeed 0.19, ZeRO stage 3, contiguous gradients: runtime/zero/stage3.py and parameter_offload.py.
#include <algorithm>
#include <string>
#include <utility>

#include "sim/like/eager/deepspeed.h"
#include "sim/like/eager/deepspeed_coordinator.h"
#include "sim/like/eager/operators.h"

namespace shard::like::eager {
namespace {

/// Gradients are put together and reduced on a stream of their own (overlap_comm).
constexpr std::uint8_t kReductionStream = 2;

/// One rank's side: a part of every parameter, gathered around the modules that use it.
class DeepSpeedStage3 final : public Sharding {
 public:
  DeepSpeedStage3(Runtime& runtime, const ShardingOptions& options)
      : Sharding(runtime, options), coordinator_(runtime, options) {}

  void create(const model::Model& model, const std::function<void()>& make_buffers) override {
    partition(model, make_buffers);
    coordinator_.begin();
    r_.tape().begin_op("inf_or_nan_tracker");
    if (!steps_on_host()) tracker_ = r_.empty({1}, Scalar::boolean);
    make_sub_groups();
    flatten();
    make_masters();
    make_buckets();
    converted_ = {};
    for (std::size_t p = 0; p < r_.parameters().size(); ++p) coordinator_.gather_and_release(p);
    r_.graph().after_collecting([this](std::size_t p) { put_into_bucket(p); });
  }

  void enter_model() override {
    coordinator_.reset_step();
    coordinator_.fetch(kModel, true);
  }
  void leave_model(const Tensor& loss, const Tensor&) override {
    coordinator_.release(kModel, true);
    r_.graph().before(loss, [this] { coordinator_.fetch(kModel, false); });
  }
  Tensor enter(std::size_t, const Tensor& x) override { return x; }
  void leave(std::size_t, const Tensor&) override {}

  /// A node behind the module's backward lets its parameters go, one before it gathers them.
  Tensor enter_module(const Module& module, const Tensor& x) override {
    coordinator_.fetch(module, true);
    if (!module.positional || !x.needs_gradient() || !r_.gradients_wanted) return x;
    return hooked(x, [this, module] { coordinator_.release(module, false); });
  }
  Tensor leave_module(const Module& module, const Tensor& y) override {
    coordinator_.release(module, true);
    if (!y.needs_gradient() || !r_.gradients_wanted) return y;
    return hooked(y, [this, module] { coordinator_.fetch(module, false); });
  }
  [[nodiscard]] bool hooks_modules() const override { return true; }
  [[nodiscard]] bool replaces_linear() const override { return true; }

  /// The loss over accumulated steps, then times the loss' scale, which is 1.
  Tensors scaled(const Tensor& loss) override {
    Tensors made{div_number(r_, loss)};
    made.push_back(mul_number(r_, made.back()));
    return made;
  }

  void after_backward() override {
    reduce();
    ++micro_step_;
    coordinator_.release_leftovers();
  }

  /// By the step, sub-group by sub-group.
  void clip() override {}
  void step(Optimizer&) override {
    r_.tape().set_module("", -1);
    r_.tape().set_part(Part::optimizer, Category::workspace);
    coordinator_.release_all();
    if (steps_on_host()) return step_on_host();
    const Tensors norms = norms_of_gradients();
    r_.tape().begin_op("step");
    const Tensor combined = combined_norm();
    norm_ = r_.empty({kDouble}, Scalar::boolean);
    for (SubGroup& g : sub_groups_) update(g);
    coordinator_.gather_persistent();
    reported_norm_ = norm_;
  }
  void zero_grad(Optimizer&, bool) override {}

 private:
  static constexpr Module kModel{.name = "model", .positional = false};
  static constexpr std::int64_t kDouble = 8;

  /// Parameters that are updated at once.
  struct SubGroup {
    std::vector<std::size_t> parameters{};
    std::int64_t elements = 0;
    Tensor master{};
    std::unique_ptr<Optimizer> optimizer{};
    Tensor gradient{};  ///< on the host, as are these
    Tensors states{};
  };

  [[nodiscard]] std::int64_t elements(std::size_t p) const { return r_.parameters()[p].elements(); }
  [[nodiscard]] std::int64_t part(std::size_t p) const { return coordinator_.part(p); }
  Tensor named(std::string_view name, Category category, std::int64_t n, Scalar scalar) {
    return r_.named(name, category, {n}, scalar);
  }

  Tensor hooked(const Tensor& x, std::function<void()> hook) {
    Tensor same = x.view(x.sizes(), x.strides());
    r_.graph().record(same, {r_.graph().edge(x)}, [hook = std::move(hook)](const Tensors& g) -> Tensors {
      hook();
      return {g[0]};
    });
    return same;
  }

  /// Parts are copied out of parameters, one by one: of a module once it is made, or of a whole model on the GPU.
  void partition(const model::Model& model, const std::function<void()>& make_buffers) {
    Tensors& all = r_.parameters();
    std::string_view module;
    for (const auto& p : model.parameters) {
      const std::string_view made = std::string_view(p.name).substr(0, p.name.rfind('.'));
      if (options_.zero3.within_init && made != std::exchange(module, made)) cut_what_is_there();
      make_buffers();
      Dims sizes;
      for (const std::int64_t s : p.shape) sizes.push(s);
      r_.tape().begin_op(r_.tape().keep(p.name));
      all.push_back(r_.empty(sizes, options_.compute));
      all.back().set_parameter(static_cast<std::int32_t>(all.size()) - 1);
    }
    if (options_.zero3.within_init) cut_what_is_there();
    make_buffers();
    for (const Tensor& parameter : all)
      if (parameter.storage().has_memory()) print(parameter);
    cut_what_is_there();
  }

  /// Parameters that are whole become this rank's part of them.
  void cut_what_is_there() {
    for (std::size_t p = parts_.size(); p < r_.parameters().size(); ++p) {
      parts_.push_back(offloads() ? pinned_copy(r_, "partition", Category::parameter, part(p), options_.compute,
                                                options_.pin_parameters)
                                  : named("partition", Category::parameter, part(p), options_.compute));
      r_.parameters()[p].storage().drop();
    }
  }

  /// torch/_tensor_str.py: stage3.py makes text of the optimizer's groups, to print it or not. Of what has more than
  /// 1,000 elements it takes three at either end of the last dimensions; a kernel looks for what is not finite.
  void print(const Tensor& parameter) {
    constexpr std::int64_t kMost = 1000, kEdges = 6;
    r_.tape().begin_op("_tensor_str");
    std::int64_t shown = parameter.elements();
    Tensor summary;
    if (shown > kMost) {
      const std::int64_t rows = parameter.sizes().rank > 1 ? std::min(parameter.size(0), kEdges) : 1;
      shown = rows * std::min(parameter.sizes().back(0), kEdges);
      Tensors parts;
      if (parameter.sizes().rank > 1)
        for (std::int64_t i = 0; i < rows; ++i) parts.push_back(r_.empty({shown / rows}, options_.compute));
      summary = r_.empty({shown}, options_.compute);
    }
    const Tensor equal = r_.empty({shown}, Scalar::boolean), absolute = r_.empty({shown}, options_.compute);
    const Tensor bounded = r_.empty({shown}, Scalar::boolean), finite = r_.empty({shown}, Scalar::boolean);
  }

  void make_sub_groups() {
    std::int64_t total = 0;
    for (std::size_t p = 0; p < r_.parameters().size(); ++p) {
      if (sub_groups_.empty() || sub_groups_.back().elements >= options_.zero3.sub_group) sub_groups_.emplace_back();
      sub_groups_.back().parameters.push_back(p);
      sub_groups_.back().elements += part(p);
      total += part(p);
    }
    total_ = total;
  }

  /// A collective of one element, whose tensor stays until the next.
  void barrier() {
    r_.tape().begin_op("barrier");
    barrier_ = r_.empty({1}, Scalar::boolean);
    const Tensor sum = r_.empty({}, Scalar::f32);
  }

  /// defragment(): by way of the host, with the cache emptied. What stays on the host is pinned, whatever is said.
  void flatten() {
    barrier();
    if (offloads()) {
      flat_ = host_vector(r_, "flat parameters", Category::parameter, total_, options_.compute, true);
      parts_.clear();
      return;
    }
    const Tensor all = host_vector(r_, "defragment", Category::workspace, total_, options_.compute);
    parts_.clear();
    r_.tape().empty_cache();
    flat_ = named("flat parameters", Category::parameter, total_, options_.compute);
  }

  void make_masters() {
    if (steps_on_host()) return make_masters_on_host();
    std::int64_t largest = 0;
    Tensor converted;  // a local name of the loop
    for (SubGroup& g : sub_groups_) {
      largest = std::max(largest, g.elements);
      g.optimizer = std::make_unique<Optimizer>(r_, options_.rule, options_.update);
      if (options_.compute != options_.resting)
        converted = named("masters", Category::master_parameter, g.elements, options_.resting);
      g.master = named("masters", Category::master_parameter, g.elements, options_.resting);
    }
    converted = {};
    barrier();
    named("initialize_optimizer_states", Category::workspace, largest, options_.resting);
    barrier();
  }

  /// Masters are never pinned; gradients in fp32 are, where that is said.
  void make_masters_on_host() {
    std::int64_t largest = 0;
    for (SubGroup& g : sub_groups_) {
      largest = std::max(largest, g.elements);
      if (options_.compute != options_.resting || !offloads())
        converted_ = host_vector(r_, "converted", Category::workspace, g.elements, options_.resting);
      g.master = host_vector(r_, "masters", Category::master_parameter, g.elements, options_.resting);
    }
    barrier();
    const Tensor buffer =
        host_vector(r_, "initialize_optimizer_states", Category::workspace, largest, options_.resting);
    for (SubGroup& g : sub_groups_)
      g.gradient = pinned_copy(r_, "subgroup_gradient_buffer", Category::gradient, g.elements, options_.resting,
                               options_.pin_memory);
    barrier();
  }

  void make_buckets() {
    bucket_ = named("ipg_buckets", Category::communication, options_.reduce_bucket, options_.compute);
    if (steps_on_host()) {
      gradients_ = pinned_copy(r_, "grad_partitions_flat_buffer", Category::gradient, total_, options_.compute,
                               options_.pin_memory);
      return;
    }
    gradients_ = named("grad_partitions_flat_buffer", Category::gradient, total_, options_.compute);
  }

  /// reduce_independent_p_g_buckets_and_remove_grads(). What is larger than the bucket stays where it is.
  void put_into_bucket(std::size_t p) {
    if (in_bucket_ > 0 && in_bucket_ + elements(p) > options_.reduce_bucket) reduce();
    Tensor& gradient = r_.graph().gradients()[p];
    if (in_bucket_ + elements(p) <= options_.reduce_bucket)
      gradient = bucket_.view(gradient.sizes(), gradient.strides());
    waiting_.push_back(p);
    in_bucket_ += elements(p);
  }

  /// __reduce_and_partition_ipg_grads(): parts by rank, padded, are put together, unless it is one that ranks divide.
  void reduce() {
    if (waiting_.empty()) return;
    r_.tape().begin_op("reduce_scatter_coalesced");
    std::sort(waiting_.begin(), waiting_.end());
    r_.tape().on_stream(kReductionStream);
    {
      Tensors padding;
      Tensor together;
      if (waiting_.size() > 1 || elements(waiting_.front()) % options_.ranks != 0) {
        std::int64_t sum = 0;
        for (std::int64_t rank = 0; rank < options_.ranks; ++rank)
          for (const std::size_t p : waiting_) {
            const std::int64_t own = std::clamp<std::int64_t>(elements(p) - rank * part(p), 0, part(p));
            if (own < part(p)) padding.push_back(r_.empty({part(p) - own}, options_.compute));
            sum += part(p);
          }
        together = r_.empty({sum}, options_.compute);
        padding.clear();
      }
      for (const std::size_t p : waiting_) take_over(p);
      copied_ = {};
    }
    r_.tape().on_stream(0);
    waiting_.clear();
    in_bucket_ = 0;
  }

  /// partition_grads(): into the flat buffer. Of one on the host there is a copy until the next parameter's.
  void take_over(std::size_t p) {
    const std::int64_t own = std::clamp<std::int64_t>(elements(p) - options_.rank * part(p), 0, part(p));
    if (steps_on_host() && own > 0) {
      copied_ = {};
      copied_ = r_.empty({own}, options_.compute);
      if (is_boundary()) offload_gradient(own);
    }
    r_.graph().gradients()[p] = {};
  }

  /// _offload_grad_partition_at_boundary(): the norm, 250 million elements at a time, and a copy in fp32.
  void offload_gradient(std::int64_t own) {
    constexpr std::int64_t kMostAtOnce = 250'000'000;
    r_.tape().begin_op("_constant_buffered_norm2");
    {
      const Tensor norm = wide_norm(r_, std::min(own, kMostAtOnce));
      norms_.push_back(r_.empty({kDouble}, Scalar::boolean));
    }
    if (options_.compute == options_.resting) return;
    r_.tape().begin_op("_offload_grad_partition_at_boundary");
    const Tensor wide = r_.empty({own}, options_.resting);
  }
  [[nodiscard]] bool is_boundary() const { return (micro_step_ + 1) % options_.micro_steps == 0; }

  /// Scalars alone are on the device, then parameters.
  void step_on_host() {
    r_.tape().begin_op("complete_grad_norm_calculation_for_cpu_offload");
    { const Tensor norm = r_.empty({1}, Scalar::f32); }
    for (SubGroup& g : sub_groups_) {
      if (g.states.empty()) g.states = states_on_host(r_, options_.rule, g.elements, options_.resting);
      if (options_.compute != options_.resting)
        const Tensor narrow = host_vector(r_, "copy", Category::workspace, g.elements, options_.compute);
    }
    norms_.clear();
    coordinator_.gather_persistent();
  }

  /// By sub-group.
  Tensors norms_of_gradients() {
    r_.tape().begin_op("get_grad_norm_direct");
    Tensors totals;
    for (const SubGroup& g : sub_groups_) {
      Tensors norms;
      for (const std::size_t p : g.parameters) norms.push_back(wide_norm(r_, part(p)));
      const auto count = static_cast<std::int64_t>(g.parameters.size());
      Tensor stacked = r_.empty({count * kDouble}, Scalar::boolean);
      Tensor squares = r_.empty({count * kDouble}, Scalar::boolean);
      stacked = {};
      const Tensor sum = r_.empty({kDouble}, Scalar::boolean);
      squares = {};
      totals.push_back(r_.empty({kDouble}, Scalar::boolean));
    }
    return totals;
  }

  /// combine_grad_norm_groups().
  Tensor combined_norm() {
    const auto groups = static_cast<std::int64_t>(sub_groups_.size());
    const Tensor stacked = r_.empty({groups * kDouble}, Scalar::boolean);
    const Tensor flags = r_.empty({groups}, Scalar::boolean), invalid = r_.empty({groups}, Scalar::boolean);
    return r_.empty({kDouble}, Scalar::boolean);
  }

  /// unscale_and_clip_grads(): a handful of scalars, whether gradients are clipped or not.
  void unscale_and_clip() {
    r_.tape().begin_op("unscale_and_clip_grads");
    Tensors scalars;
    for (int i = 0; i < 4; ++i) scalars.push_back(r_.empty({kDouble}, Scalar::boolean));
  }

  void update(SubGroup& g) {
    {
      r_.tape().begin_op("flat gradients");
      Tensor flat = gradients_.view({g.elements}, {1});
      if (g.parameters.size() > 1) flat = r_.empty({g.elements}, options_.compute);
      if (options_.resting != options_.compute) flat = r_.empty({g.elements}, options_.resting);
      r_.tape().set_category(flat.storage().buffer(), Category::gradient);
      shard_gradients_ = {flat};
    }
    unscale_and_clip();
    shards_ = {g.master};
    Sharding::step(*g.optimizer);
    shards_.clear();
    r_.tape().begin_op("release sub group");
    shard_gradients_.clear();
  }

  ParameterCoordinator coordinator_;
  Tensors parts_;  ///< by parameter, until they are put into one buffer
  Tensor tracker_, barrier_;
  std::vector<SubGroup> sub_groups_;
  std::int64_t total_ = 0;  ///< elements of all parts
  Tensor flat_;             ///< parts of all parameters
  Tensor bucket_;
  Tensor gradients_;                  ///< parts, reduced
  std::vector<std::size_t> waiting_;  ///< parameters whose gradients are in the bucket
  std::int64_t in_bucket_ = 0;
  std::int64_t micro_step_ = 0;
  Tensor converted_;      ///< a local name of the constructor's
  Tensor copied_;         ///< a gradient's part, back from the host
  Tensors norms_{};       ///< of gradients that were copied to the host
  Tensor norm_;           ///< of the last step
  Tensor reported_norm_;  ///< the same, by the engine, until the next step ends
};

}  // namespace

std::unique_ptr<Sharding> deepspeed_stage3(Runtime& runtime, const ShardingOptions& options) {
  return std::make_unique<DeepSpeedStage3>(runtime, options);
}

}  // namespace shard::like::eager
