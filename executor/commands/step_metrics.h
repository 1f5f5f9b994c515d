// Figures of one training step beside its loss: rates, the share of the machine's arithmetic, memory in use.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "executor/commands/prepared.h"
#include "executor/commands/tensorboard.h"
#include "executor/train/session.h"
#include "sim/cluster/cluster.h"

namespace shard::commands {

/// Of rank 0.
class StepMetrics {
 public:
  StepMetrics(const Prepared& prepared, const cluster::Cluster& cluster);

  /// What step_json() says, and tokens_per_second of all ranks, mfu (arithmetic of the model, forward and backward, over
  /// what the cluster's description gives a rank in products of the precision) and resident_bytes of this process; null
  /// where that is not known.
  [[nodiscard]] nlohmann::ordered_json json(const train::StepResult& step) const;
  /// The same by TensorBoard's tags: train/loss, train/mfu, ..., memory/resident_bytes. What is null has none.
  [[nodiscard]] static std::vector<Scalar> scalars(const nlohmann::ordered_json& step);

 private:
  double tokens_;
  double flops_;
  double peak_;  ///< flops a second; 0: not known
};

}  // namespace shard::commands
