// Which tensors a checkpoint of a run has: each parameter under its name, and optimizer state by parameter.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "executor/state/checkpoint/layout.h"
#include "sim/ir/op.h"
#include "sim/model/graph.h"
#include "sim/strategy/strategy.h"

namespace shard::train {

/// In the order of the model's parameters, so that the files are the same whatever strategy a run is trained by:
/// weights are the fp32 values that steps change; parameters that are frozen are as they are stored. The state of
/// parameter NAME is NAME.exp_avg and NAME.exp_avg_sq (F32, as Adam's, where the optimizer has moments) and NAME.step
/// (I32, steps that changed it); that of the loss scaler loss_scaler.scale (F32), .good_steps and .overflows (I32).
struct CheckpointTensors {
  std::vector<checkpoint::TensorSpec> weights;
  std::vector<checkpoint::TensorSpec> state;
  std::vector<std::int32_t> value;                  ///< by parameter: its number, weights before state
  std::array<std::vector<std::int32_t>, 2> moment;  ///< the same of the moments; -1 where there is none
  std::vector<std::int32_t> count;                  ///< -1 of frozen parameters
  std::int32_t scaler = -1;                         ///< the first of its three, -1: losses are not scaled
};

/// `model`: a whole one, or a tensor-parallel rank's part, whose tensors are the whole one's.
[[nodiscard]] CheckpointTensors checkpoint_tensors(const model::Model& model, const plan::Strategy& strategy);

}  // namespace shard::train
