// What a framework that puts a model over several ranks does around the model's parts, its backward and its optimizer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "sim/like/eager/optimizers.h"
#include "sim/model/graph.h"

namespace shard::like::eager {

enum class Framework : std::uint8_t {
  none,
  ddp,
  fsdp1,
  fsdp2,
  deepspeed,
  megatron,
  other,  ///< whose maker and checks stand in its row of the table alone
};

/// A torch.nn.Module as hooks around its call see it.
struct Module {
  std::string_view name{};
  std::int32_t first = -1;  ///< its own parameters: the first, and how many
  std::int32_t count = 0;
  bool positional = true;  ///< its input is no keyword argument, which hooks would not be given
  [[nodiscard]] std::vector<std::size_t> parameters() const {
    std::vector<std::size_t> all;
    for (std::int32_t i = 0; i < count; ++i) all.push_back(static_cast<std::size_t>(first + i));
    return all;
  }
  friend bool operator==(const Module&, const Module&) = default;
};

/// What rests in the host's memory, where the optimizer then steps.
enum class Offload : std::uint8_t {
  none,
  optimizer,  ///< its states, and reduced gradients
  all,        ///< sharded parameters, too
};

/// What DeepSpeed's stage 3 is told; numbers are of elements.
struct Zero3Options {
  std::int64_t prefetch_bucket = 50'000'000;
  std::int64_t persistence_threshold = 100'000;
  std::int64_t max_live = 1'000'000'000;
  std::int64_t max_reuse_distance = 1'000'000'000;
  std::int64_t sub_group = 1'000'000'000;
  bool within_init = true;  ///< deepspeed.zero.Init: modules are cut as they are made, else the whole model first

  friend bool operator==(const Zero3Options&, const Zero3Options&) = default;
};

class Sharding;
struct ShardingOptions;
/// Makes a framework's side of a run, which borrows the runtime.
using MakeSharding = std::unique_ptr<Sharding> (*)(Runtime& runtime, const ShardingOptions& options);

/// What the framework is told.
struct ShardingOptions {
  Framework framework = Framework::none;
  MakeSharding make = nullptr;        ///< null: nothing is around the program
  std::int32_t ranks = 1;             ///< over which one copy of the model is cut
  bool replicated = false;            ///< there are several copies
  Scalar compute = Scalar::f32;       ///< of gathered parameters, and so of activations and their gradients
  Scalar resting = Scalar::f32;       ///< of shards, and so of the optimizer's states
  Scalar reduced = Scalar::f32;       ///< of gradients while ranks sum them up
  bool reshard_after_forward = true;  ///< else gathered parameters stay until backward
  bool keep_last = false;             ///< but those of the last block stay: torchtitan
  bool ends_apart = false;  ///< two units more, numbered behind the blocks: the embedding, and what lies behind them,
                            ///< which stays gathered and has the embedding, too, where they are tied
  bool original_parameters = true;  ///< fsdp1: use_orig_params
  bool prefetch = true;             ///< backward gathers the unit before while one runs; fsdp1: BACKWARD_PRE
  Offload offload = Offload::none;
  bool pin_memory = true;              ///< of what is offloaded, parameters and gradients
  bool distributed_optimizer = false;  ///< megatron: masters and states are cut over ranks
  Rule rule = Rule::adamw;             ///< megatron, whose groups have an optimizer each
  Update update = Update::foreach;
  bool clip = false;               ///< deepspeed: gradient_clipping
  std::int64_t micro_steps = 1;    ///< deepspeed: gradient_accumulation_steps
  std::int32_t stage = 3;          ///< deepspeed's
  std::int64_t reduce_bucket = 0;  ///< deepspeed: elements that are reduced together
  Zero3Options zero3{};
  bool pin_parameters = false;  ///< deepspeed's stage 3: of parts of parameters, of which pin_memory is not then
  std::int32_t rank = 0;        ///< deepspeed with offload_optimizer: whose side it is
};

/// One rank's side of it. Blocks are numbered from 0; what lies outside of them is the model's own part.
class Sharding {
 public:
  Sharding(Runtime& runtime, const ShardingOptions& options) : r_(runtime), options_(options) {}
  virtual ~Sharding() = default;

  /// create() finds parameters and buffers on the GPU, as the program put them there.
  [[nodiscard]] virtual bool wraps_placed_module() const { return false; }
  /// Puts parameters, which the runtime lists from then on, and the module's buffers on the GPU: make_buffers() makes
  /// those that lie before, or behind, parameters that are listed.
  virtual void create(const model::Model& model, const std::function<void()>& make_buffers) = 0;

  virtual void enter_model() {}
  /// `loss` and `logits` are what the model returns.
  virtual void leave_model(const Tensor& loss, const Tensor& logits) = 0;
  /// What the block is given in place of x.
  virtual Tensor enter(std::size_t block, const Tensor& x) = 0;
  virtual void leave(std::size_t block, const Tensor& y) = 0;
  /// Around the call of a module: what it is given in place of x, and what its caller is given in place of y.
  virtual Tensor enter_module(const Module&, const Tensor& x) { return x; }
  virtual Tensor leave_module(const Module&, const Tensor& y) { return y; }
  /// Whether these do anything.
  [[nodiscard]] virtual bool hooks_modules() const { return false; }
  /// Whether torch.nn.functional.linear is replaced by a function that keeps the weight as it is (zero/linear.py).
  [[nodiscard]] virtual bool replaces_linear() const { return false; }
  /// After the last node of backward, while the loss' gradient is there.
  virtual void end_backward() {}
  /// When it is gone.
  virtual void after_backward() {}
  /// Each made of the one before, the first of the loss; backward begins at the last. None: at the loss.
  virtual Tensors scaled(const Tensor& /*loss*/) { return {}; }
  [[nodiscard]] bool ends_apart() const { return options_.ends_apart; }

  /// Gradients are clipped by their norm.
  virtual void clip();
  virtual void step(Optimizer& optimizer);
  virtual void zero_grad(Optimizer& optimizer, bool set_to_none);

 protected:
  /// The optimizer's parameters and their gradients in place of the program's, until called again.
  void exchange();
  [[nodiscard]] bool offloads() const { return options_.offload == Offload::all; }
  [[nodiscard]] bool steps_on_host() const { return options_.offload != Offload::none; }
  /// In the host's memory.
  [[nodiscard]] Tensor on_host(const Dims& sizes, Scalar scalar, bool pinned);

  Runtime& r_;
  ShardingOptions options_;
  Tensors shards_, shard_gradients_;  ///< as the optimizer has them
};

inline void enter_model(Runtime& r) {
  if (r.sharding != nullptr) r.sharding->enter_model();
}
inline void leave_model(Runtime& r, const Tensor& loss, const Tensor& logits) {
  if (r.sharding != nullptr) r.sharding->leave_model(loss, logits);
}
/// body(x) as the framework has a module called.
template <class Body>
Tensor in_module(Runtime& r, const Module& module, const Tensor& x, const Body& body) {
  if (r.sharding == nullptr) return body(x);
  return r.sharding->leave_module(module, body(r.sharding->enter_module(module, x)));
}
/// Of a module with parameters that begin at this one.
[[nodiscard]] inline Module module_of(std::string_view name, const Tensor& first, std::int32_t count = 1) {
  return {.name = name, .first = first.parameter(), .count = count};
}
/// Whether the model registers the parameter after those of its blocks.
[[nodiscard]] inline bool is_behind_blocks(const model::Model& model, std::size_t parameter) {
  const auto first = model.parameter_block.begin();
  return std::any_of(first, first + static_cast<std::ptrdiff_t>(parameter), [](std::int32_t b) { return b >= 0; });
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
