// torch.optim's steps: what states are born, and what an update holds meanwhile.
#pragma once

#include <functional>

#include "sim/like/eager/runtime.h"

namespace shard::like::eager {

enum class Update : std::uint8_t { foreach, fused, for_loop };
enum class Rule : std::uint8_t { sgd, adam, adamw };

/// Adam and AdamW with PyTorch's defaults (no amsgrad, not capturable); SGD without momentum. Weight decay of Adam is
/// 0.
class Optimizer {
 public:
  Optimizer(Runtime& runtime, Rule rule, Update update) : r_(runtime), rule_(rule), update_(update) {}

  void step();
  /// set_to_none: gradients are freed, in the order of the parameters; else nothing is.
  void zero_grad(bool set_to_none);

 private:
  void make_states();

  Runtime& r_;
  Rule rule_;
  Update update_;
  std::vector<Tensors> states_;  ///< by parameter
  Tensor denominator_;           ///< a local name of the loop, which lives on
};

/// torch.nn.utils.clip_grad_norm_, foreach; its threshold is not told, the norm is not kept. `sum_norms` is what
/// happens to the gradients' norms, stacked, before one is made of them.
void clip_gradients(Runtime& runtime, const std::function<Tensor(const Tensor& norms)>& sum_norms = {});

}  // namespace shard::like::eager
