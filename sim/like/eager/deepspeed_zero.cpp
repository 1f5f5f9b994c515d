// DeepSpeed 0.19, ZeRO stages 1 and 2, contiguous gradients: runtime/zero/stage_1_and_2.py and runtime/engine.py.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "sim/like/eager/deepspeed.h"
#include "sim/like/eager/operators.h"
#include "sim/like/eager/sharding.h"
#include "traces/base/division.h"

namespace shard::like::eager {
namespace {

/// One rank's side: parameters in one flat buffer, of whose equal parts it updates one, which is the first where the
/// optimizer is not offloaded.
class DeepSpeedZero final : public Sharding {
 public:
  using Sharding::Sharding;

  void create(const model::Model& model, const std::function<void()>& make_buffers) override {
    for (std::size_t p = 0; p < model.parameters.size(); ++p) {
      Dims sizes;
      for (const std::int64_t s : model.parameters[p].shape) sizes.push(s);
      r_.tape().begin_op(r_.tape().keep(model.parameters[p].name));
      r_.parameters().push_back(r_.empty(sizes, options_.compute));
    }
    make_buffers();
    flatten();
    make_masters();
    r_.graph().after_collecting([this](std::size_t p) { has_gradient(p); });
  }

  Tensor enter(std::size_t, const Tensor& x) override { return x; }
  void leave(std::size_t, const Tensor&) override {}
  void leave_model(const Tensor&, const Tensor&) override {}

  /// The loss over accumulated steps, then times the loss' scale, which is 1.
  Tensors scaled(const Tensor& loss) override {
    Tensors made{div_number(r_, loss)};
    made.push_back(mul_number(r_, made.back()));
    return made;
  }

  /// reduce_gradients() of stage 1, behind a step's last backward; independent_gradient_partition_epilogue().
  void after_backward() override {
    const bool boundary = ++micro_step_ % options_.micro_steps == 0;
    if (options_.stage == 1) {
      if (!boundary) return;  // gradients and bucket stay
      for (std::size_t p = 0; p < r_.parameters().size(); ++p) put_into_bucket(p);
    }
    reduce_bucket();
    if (summed_)
      reduced_ = {};  // added to what is there
    else
      summed_ = std::move(reduced_);
    if (boundary) reduced_ = std::move(summed_);
    bucket_ = {};
    for (Tensor& gradient : r_.graph().gradients()) gradient = {};
  }

  /// By the step, behind the gradients' norm.
  void clip() override {}
  void step(Optimizer& optimizer) override {
    r_.tape().set_module("", -1);
    r_.tape().set_part(Part::optimizer, Category::workspace);
    if (steps_on_host()) return step_on_host();
    const Tensor norm = norm_of_gradients();
    flatten_gradients();
    if (options_.clip) unscale_and_clip();
    Sharding::step(optimizer);
    shard_gradients_[0] = {};
    reported_norm_ = unscaled_norm_;
  }
  void zero_grad(Optimizer&, bool) override {}

 private:
  /// Flat parameters are padded to this many elements a rank, so that parts begin at multiples of 4 bytes.
  static constexpr std::int64_t kAlignment = 2;

  [[nodiscard]] std::int64_t elements(std::size_t p) const { return r_.parameters()[p].elements(); }
  /// Of the parameter's elements those in this rank's part.
  [[nodiscard]] std::int64_t own(std::size_t p) const {
    const std::int64_t begin = part_ * options_.rank, end = begin + part_;
    return std::min(starts_[p] + elements(p), end) - std::max(starts_[p], begin);
  }
  [[nodiscard]] bool is_boundary() const { return (micro_step_ + 1) % options_.micro_steps == 0; }

  void flatten() {
    Tensors& parameters = r_.parameters();
    for (const Tensor& t : parameters) {
      starts_.push_back(total_);
      total_ += t.elements();
    }
    part_ = divide_up(total_, kAlignment * options_.ranks) * kAlignment;
    r_.tape().begin_op("flat parameters");
    Tensor padding;
    if (part_ * options_.ranks > total_) padding = r_.empty({part_ * options_.ranks - total_}, options_.compute);
    const Tensor flat = r_.empty({part_ * options_.ranks}, options_.compute);
    r_.tape().set_category(flat.storage().buffer(), Category::parameter);
    padding = {};
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const Dims sizes = parameters[p].sizes(), strides = parameters[p].strides();
      parameters[p] = {};
      parameters[p] = flat.view(sizes, strides);
      parameters[p].set_parameter(static_cast<std::int32_t>(p));
      if (own(p) <= 0) continue;
      in_part_.push_back(p);
      whole_in_part_ += elements(p);
    }
  }

  void make_masters() {
    if (steps_on_host()) return make_masters_on_host();
    r_.tape().begin_op("masters");
    Tensor masters = r_.empty({part_}, options_.compute);
    if (options_.resting != options_.compute) masters = r_.empty({part_}, options_.resting);
    r_.tape().set_category(masters.storage().buffer(), Category::master_parameter);
    shards_ = {masters};
    shard_gradients_.resize(1);
    r_.tape().begin_op("initialize_optimizer_states");
    const Tensor zeros = r_.empty({part_}, options_.resting);
  }

  /// Parts are copied by way of 16 bits on the host; what a name still holds goes with the constructor's end.
  void make_masters_on_host() {
    const bool pinned = options_.pin_memory;
    r_.tape().begin_op("masters");
    {
      const Tensor clone = r_.empty({part_}, options_.compute);
      const Tensor narrow = host_vector(r_, "masters", Category::workspace, part_, options_.compute);
      on_host_.push_back(pinned_copy(r_, "masters", Category::master_parameter, part_, options_.resting, pinned));
    }
    Tensor narrow = host_vector(r_, "temp_buffer_bit16", Category::workspace, part_, options_.compute);
    if (pinned) {
      on_host_.push_back(host_vector(r_, "temp_pinned", Category::workspace, part_, options_.compute, true));
    } else {
      on_host_.push_back(std::exchange(narrow, {}));
    }
    std::int64_t largest = 0;
    for (std::size_t p = 0; p < r_.parameters().size(); ++p) largest = std::max(largest, elements(p));
    on_host_.push_back(
        pinned_copy(r_, "temp_grad_buffer_for_cpu_offload", Category::workspace, largest, options_.compute, pinned));
    r_.tape().begin_op("temp_grad_buffer_for_gpu_offload");
    staging_ = r_.empty({largest}, options_.compute);
    on_host_.push_back(
        pinned_copy(r_, "initialize_optimizer_states", Category::gradient, part_, options_.resting, pinned));
  }

  void has_gradient(std::size_t p) {
    if (!bucket_) {
      r_.tape().begin_op("setup_buckets");
      bucket_ = r_.empty({options_.reduce_bucket}, options_.compute);
      r_.tape().set_category(bucket_.storage().buffer(), Category::communication);
    }
    if (options_.stage == 2) put_into_bucket(p);
  }

  /// reduce_independent_p_g_buckets_and_remove_grads(). What is larger than the bucket stays where it is.
  void put_into_bucket(std::size_t p) {
    Tensor& gradient = r_.graph().gradients()[p];
    if (!gradient) return;
    if (in_bucket_ + elements(p) > options_.reduce_bucket) reduce_bucket();
    if (elements(p) > options_.reduce_bucket && steps_on_host()) gradient = r_.clone(gradient);
    if (elements(p) <= options_.reduce_bucket) gradient = bucket_.view(gradient.sizes(), gradient.strides());
    in_bucket_ += elements(p);
    waiting_.push_back(p);
  }

  /// Lengths of what goes to one rank each, in the bucket's order: average_tensor().
  [[nodiscard]] std::vector<std::int64_t> slices() const {
    std::vector<std::int64_t> lengths;
    std::int64_t last = -1;
    for (const std::size_t p : waiting_) {
      const std::int64_t end = starts_[p] + elements(p);
      for (std::int64_t at = starts_[p]; at < end;) {
        const std::int64_t rank = at / part_, until = std::min(end, (rank + 1) * part_);
        if (rank != last) lengths.push_back(0);
        lengths.back() += until - at;
        last = rank;
        at = until;
      }
    }
    return lengths;
  }

  /// Slices are put together and summed over ranks, more than a bucket's elements at once at most by the last slice;
  /// a single one where it is.
  void sum_slices() {
    std::int64_t together = 0, count = 0;
    const auto sum = [&] {
      if (count > 1) r_.tape().give_back(r_.tape().take(Bytes{together * bytes_of(options_.compute)}));
      together = count = 0;
    };
    for (const std::int64_t length : slices()) {
      together += length;
      ++count;
      if (together > options_.reduce_bucket) sum();
    }
    sum();
  }

  /// reduce_ipg_grads(), copy_grads_in_partition().
  void reduce_bucket() {
    r_.tape().begin_op("reduce_ipg_grads");
    sum_slices();
    for (const std::size_t p : waiting_) {
      Tensor& gradient = r_.graph().gradients()[p];
      if (own(p) > 0 && steps_on_host()) {
        copy_to_host(p);
        if (!is_boundary()) continue;  // until the epilogue
      } else if (own(p) > 0) {
        if (!reduced_) {
          reduced_ = r_.empty({whole_in_part_}, options_.compute);
          r_.tape().set_category(reduced_.storage().buffer(), Category::gradient);
        }
      }
      gradient = {};
    }
    waiting_.clear();
    in_bucket_ = 0;
  }

  /// Over micro-steps of stage 2 whole gradients are added up there; of the sum the rank's part is copied, in fp32.
  void copy_to_host(std::size_t p) {
    if (options_.stage == 2 && options_.micro_steps > 1 && !accumulated_[p])
      accumulated_[p] = pinned_copy(r_, "accumulated_grads_in_cpu", Category::gradient, elements(p), options_.compute,
                                    options_.pin_memory);
    if (!is_boundary()) return;
    r_.tape().begin_op("set_norm_for_param_grad_in_gpu");
    norms_.push_back(wide_norm(r_, own(p)));
    if (options_.compute == options_.resting) return;
    r_.tape().begin_op("async_inplace_copy_grad_to_fp32_buffer_from_gpu");
    const Tensor wide = r_.empty({own(p)}, options_.resting);
  }

  /// Scalars alone are on the device.
  void step_on_host() {
    r_.tape().begin_op("has_overflow");
    { const Tensor flag = r_.empty({1}, Scalar::boolean); }
    r_.tape().begin_op("complete_grad_norm_calculation_for_cpu_offload");
    { const Tensor norm = r_.empty({1}, Scalar::f32); }
    if (states_.empty()) states_ = states_on_host(r_, options_.rule, part_, options_.resting);
    norms_.clear();
  }

  Tensor norm_of_gradients() {
    r_.tape().begin_op("get_grad_norm_direct");
    Tensors norms;
    for (const std::size_t p : in_part_) norms.push_back(wide_norm(r_, own(p)));
    Tensor total = r_.empty({}, Scalar::f32);
    norms.clear();
    unscaled_norm_ = r_.empty({}, Scalar::f32);
    return total;
  }

  /// Scalars: the norm, made into a factor.
  void unscale_and_clip() {
    r_.tape().begin_op("unscale_and_clip_grads");
    Tensor factor;
    for (int i = 0; i < 5; ++i) factor = r_.empty({}, Scalar::f32);  // unscaled, shifted, divided, clamped, scaled
    const Tensor inverse = r_.empty({}, Scalar::f32), multiplied = r_.empty({}, Scalar::f32);
  }

  void flatten_gradients() {
    r_.tape().begin_op("flat gradients");
    const bool padded = options_.ranks == 1 && part_ > total_;
    Tensor padding;
    if (padded) padding = r_.empty({part_ - total_}, options_.compute);
    Tensor flat = reduced_.view({part_}, {1});
    if (in_part_.size() > 1 || padded) flat = r_.empty({part_}, options_.compute);
    if (options_.resting != options_.compute) flat = r_.empty({part_}, options_.resting);
    r_.tape().set_category(flat.storage().buffer(), Category::gradient);
    shard_gradients_[0] = std::move(flat);
    reduced_ = {};
  }

  std::vector<std::int64_t> starts_{};  ///< by parameter: in the flat buffer
  std::int64_t total_ = 0, part_ = 0;   ///< elements of all, and of a rank's part
  std::vector<std::size_t> in_part_{};  ///< parameters that have elements in this rank's part
  std::int64_t whole_in_part_ = 0;      ///< all of their elements
  Tensor bucket_;
  std::int64_t in_bucket_ = 0;
  std::vector<std::size_t> waiting_{};  ///< parameters whose gradients are in it
  Tensor reduced_;                      ///< gradients of in_part_, whole
  Tensor summed_;                       ///< the same over micro-steps of stage 2, until the last
  std::int64_t micro_step_ = 0;
  Tensors on_host_{}, states_{};  ///< where the optimizer is offloaded
  Tensor staging_;                ///< for what is added up there
  std::map<std::size_t, Tensor> accumulated_{};
  Tensors norms_{};       ///< of gradients that were copied there
  Tensor unscaled_norm_;  ///< of the last step
  Tensor reported_norm_;  ///< the same, by the engine, until the next step ends
};

}  // namespace

Tensor wide_norm(Runtime& r, std::int64_t elements) {
  constexpr std::int64_t kDouble = 8, kCounted = 4;
  const Tensor wide = r.empty({elements * kDouble}, Scalar::boolean);
  Tensor norm = r.empty({kDouble}, Scalar::boolean);
  const ReductionBuffers hidden = reduction_buffers({elements}, {1}, 1, r.machine());
  if (hidden.partial.count() == 0) return norm;
  const Tensor partial = r.empty({hidden.partial.count() / kCounted * kDouble}, Scalar::boolean);
  const Tensor semaphores = r.empty({hidden.semaphores.count()}, Scalar::boolean);
  return norm;
}

Tensor host_vector(Runtime& r, std::string_view name, Category category, std::int64_t elements, Scalar scalar,
                   bool pinned) {
  const Memory before = r.tape().in_memory(pinned ? Memory::pinned : Memory::host);
  Tensor vector = r.named(name, category, {elements}, scalar);
  r.tape().in_memory(before);
  return vector;
}

Tensor pinned_copy(Runtime& r, std::string_view name, Category category, std::int64_t elements, Scalar scalar,
                   bool pinned) {
  Tensor pageable = host_vector(r, name, category, elements, scalar);
  return pinned ? host_vector(r, name, category, elements, scalar, true) : pageable;
}

Tensors states_on_host(Runtime& r, Rule rule, std::int64_t elements, Scalar scalar) {
  Tensors states;
  if (rule == Rule::sgd) return states;
  for (const char* name : {"exp_avg", "exp_avg_sq"})
    states.push_back(host_vector(r, name, Category::optimizer_state, elements, scalar));
  return states;
}

std::unique_ptr<Sharding> deepspeed(Runtime& runtime, const ShardingOptions& options) {
  if (options.stage == 3) return deepspeed_stage3(runtime, options);
  return std::make_unique<DeepSpeedZero>(runtime, options);
}

}  // namespace shard::like::eager
