// How long a training step of somebody's framework takes, from laws of kernels and collectives, and how sure that is.
#pragma once

#include <string>
#include <vector>

#include "sim/cluster/cluster.h"
#include "sim/cost/laws/whole_step.h"
#include "sim/step/training_step.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::step {

/// A share of the step, on the rank that is slowest.
struct StepPart {
  std::string name;  ///< "products", "exposed communication"
  Seconds time;
};

struct StepTime {
  Seconds seconds;               ///< the middle
  Seconds low, high;             ///< between which four of five runs are expected
  std::vector<StepPart> parts;   ///< together `seconds`
  double tokens_per_second = 0;  ///< of one GPU, at `seconds`
  double flops_per_second = 0;   ///< of the model, on one GPU
  double model_flops_share = 0;  ///< MFU: 6 flops a parameter and token and attention's, of the peak in 16 bits

  /// The same work in another time, such as `low` or `high`.
  [[nodiscard]] double tokens_per_second_in(Seconds time) const {
    return tokens_per_second * seconds.count() / time.count();
  }
};

/// A step in the steady state. Blocks one after another; beside each the gathers of the next and the reductions of the
/// last; what is longer decides, also the host's launches. The first gather and the last reduction have nothing beside
/// them. Products that run beside an exchange take an eighth longer. The slowest of n ranks: 1 + 0.03 sqrt(2 ln n).
/// A pipeline's step is that of its last stage, which has the loss, and (p - 1) / chunks times the blocks of another.
/// Errors: contradiction where the cluster has no laws of kernels, or one host only and the run needs more.
[[nodiscard]] Result<StepTime> step_time(const TrainingStep& step, const cluster::Cluster& cluster);

/// Whether kernels are so small that launching them takes longer than running them: fewer than 2^23 elements in a
/// micro- step's hidden states. What a framework's host takes is not measured, so that such a step's time says little.
[[nodiscard]] bool launch_bound(const TrainingStep& step);

/// How far a step's time may be off, relative: `low` = (1 - x) and `high` = (1 + x) of it, or more above than below.
struct Doubt {
  double below = 0, above = 0;
};
[[nodiscard]] Doubt doubt_of(const TrainingStep& step, const cluster::Cluster& cluster);

}  // namespace shard::step
