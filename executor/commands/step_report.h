// What a training run says of one step: its line in the log, and of a skipped step who overflowed.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "executor/train/session.h"
#include "sim/model/graph.h"

namespace shard::commands {

/// {step, loss, step_seconds, learning_rate} and, where gradients are controlled, {gradient_norm, loss_scale, skipped}.
/// Steps count from 1. A norm that is not finite is null.
[[nodiscard]] nlohmann::ordered_json step_json(const train::StepResult& step);

/// {evaluated_step, validation_loss, seconds}: behind that many steps.
[[nodiscard]] nlohmann::ordered_json evaluation_json(const train::EvaluationResult& evaluation);

/// {step, scale_before, scale_after, tensor, element, layer, rank}: the first gradient that was not finite. layer is
/// null outside of blocks, rank where every rank's own gradient was finite and their sum was not.
[[nodiscard]] nlohmann::ordered_json skipped_json(const model::Model& model, std::int64_t step,
                                                  const plan::ControlBlock& control);

/// The same in a line.
[[nodiscard]] std::string skipped_text(const model::Model& model, std::int64_t step, const plan::ControlBlock& control);

}  // namespace shard::commands
