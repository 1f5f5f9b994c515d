// What a framework that puts a model over several ranks does around the model's parts, its backward and its optimizer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sim/like/eager/optimizers.h"
#include "sim/model/graph.h"

namespace shard::like::eager {

enum class Framework : std::uint8_t { none, fsdp1, fsdp2, deepspeed, megatron };

/// What the framework is told.
struct ShardingOptions {
  Framework framework = Framework::none;
  std::int32_t ranks = 1;
  Scalar compute = Scalar::f32;       ///< of gathered parameters, and so of activations and their gradients
  Scalar resting = Scalar::f32;       ///< of shards, and so of the optimizer's states
  Scalar reduced = Scalar::f32;       ///< of gradients while ranks sum them up
  bool reshard_after_forward = true;  ///< else gathered parameters stay until backward
  bool keep_last = false;   ///< but those of the last block, or of the model's end where it is a unit, stay: torchtitan
  bool ends_apart = false;  ///< two units more: the embedding, behind the blocks, and then the model's end
  bool original_parameters = true;     ///< fsdp1: use_orig_params
  bool distributed_optimizer = false;  ///< megatron: masters and states are cut over ranks
  Rule rule = Rule::adamw;             ///< megatron, whose groups have an optimizer each
  Update update = Update::foreach;
  std::int32_t stage = 3;          ///< deepspeed's
  std::int64_t reduce_bucket = 0;  ///< deepspeed: elements that are reduced together
};

/// One rank's side of it. Blocks are numbered from 0; what lies outside of them is the model's own part.
class Sharding {
 public:
  Sharding(Runtime& runtime, const ShardingOptions& options) : r_(runtime), options_(options) {}
  virtual ~Sharding() = default;

  /// Puts parameters, which the runtime lists from then on, and the module's buffers on the GPU.
  virtual void create(const model::Model& model, const std::function<void()>& make_buffers) = 0;

  virtual void enter_model() {}
  /// `loss` and `logits` are what the model returns.
  virtual void leave_model(const Tensor& loss, const Tensor& logits) = 0;
  /// What the block is given in place of x.
  virtual Tensor enter(std::size_t block, const Tensor& x) = 0;
  virtual void leave(std::size_t block, const Tensor& y) = 0;
  /// After the last node of backward, while the loss' gradient is there.
  virtual void end_backward() {}
  /// When it is gone.
  virtual void after_backward() {}
  /// Each made of the one before, the first of the loss; backward begins at the last. None: at the loss.
  virtual Tensors scaled(const Tensor& /*loss*/) { return {}; }
  [[nodiscard]] bool ends_apart() const { return options_.ends_apart; }

  virtual void step(Optimizer& optimizer);
  virtual void zero_grad(Optimizer& optimizer, bool set_to_none);

 protected:
  /// The optimizer's parameters and their gradients in place of the program's, until called again.
  void exchange();

  Runtime& r_;
  ShardingOptions options_;
  Tensors shards_, shard_gradients_;  ///< as the optimizer has them
};

/// None where there is nothing to do.
[[nodiscard]] std::unique_ptr<Sharding> sharding(Runtime& runtime, const ShardingOptions& options);
[[nodiscard]] std::unique_ptr<Sharding> fsdp1(Runtime& runtime, const ShardingOptions& options);
[[nodiscard]] std::unique_ptr<Sharding> fsdp2(Runtime& runtime, const ShardingOptions& options);
/// ZeRO 1 and 2.
[[nodiscard]] std::unique_ptr<Sharding> deepspeed_zero(Runtime& runtime, const ShardingOptions& options);

inline void enter_model(Runtime& r) {
  if (r.sharding != nullptr) r.sharding->enter_model();
}
inline void leave_model(Runtime& r, const Tensor& loss, const Tensor& logits) {
  if (r.sharding != nullptr) r.sharding->leave_model(loss, logits);
}
[[nodiscard]] inline bool ends_apart(const Runtime& r) {
  return r.sharding != nullptr && r.sharding->ends_apart();
}
/// body(x) as the framework runs a block.
template <class Body>
Tensor in_unit(Runtime& r, std::int64_t block, const Tensor& x, const Body& body) {
  if (r.sharding == nullptr) return body(x);
  const auto at = static_cast<std::size_t>(block);
  Tensor y = body(r.sharding->enter(at, x));
  r.sharding->leave(at, y);
  return y;
}

}  // namespace shard::like::eager
