// From a differentiated plan to what PyTorch 1.8 would take and give back: each step a function from draft to draft.
#pragma once

#include "sim/compile/draft.h"
#include "sim/like/rules.h"

namespace shard::like {

/// Where in a plan something is printed: after the first `ops` ops of a phase.
struct Mark {
  std::string name;
  Phase phase{};
  std::size_t ops = 0;
  bool starts_again = false;  ///< maxima are those since the last mark, not since the program began
};

/// Expects the passes build, differentiate and recompute: one micro-batch in phase steady_step. Makes its memory that
/// of eager PyTorch:
/// - every backward operator writes a new tensor; contributions to a gradient that exists are a tensor of their own
///   until they are added;
/// - mse_loss holds the squared differences until their mean is taken;
/// - cross_entropy is log_softmax, whose result is saved, and nll_loss, whose gradient is a tensor of its own;
/// - attention is not fused: scores, then probabilities [B, H, S, S], which are saved;
/// - indices (tokens, targets of cross_entropy) have eight bytes.
/// Kernels' own workspaces of our backends are dropped.
[[nodiscard]] plan::Draft autograd(plan::Draft plan);

/// The training script, in phase first_step in place of steady_step: the input goes to the device, forward, then the
/// labels, the loss, backward; outputs and labels stay until the script's variables are bound again, or end. Further
/// micro-steps add to the gradients that are there. An op that reads them all ends the phase.
[[nodiscard]] plan::Draft script(plan::Draft plan);

/// DistributedDataParallel: phase creation (the local model, then the constructor: the broadcast of the module's
/// state, the check of shapes, the gradient buckets), and the reduction of each bucket at the end of backward. A tied
/// weight is twice in the module's state. Marks "after the local model", "after DDP" and "before step".
[[nodiscard]] plan::Draft distribute(plan::Draft plan, const Rules& rules, std::vector<Mark>& marks);

/// The optimizer's step before the op that ends the script: all states are born, in the order in which the optimizer
/// has its parameters, then parameters are updated one by one. In stage 1 on this rank's parameters only, and every
/// parameter is broadcast by its owner, in place. Marks "after step".
[[nodiscard]] plan::Draft optimize(plan::Draft plan, const Rules& rules, std::vector<Mark>& marks);

}  // namespace shard::like
