// What a training run says of one step.
#include "executor/commands/step_report.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "traces/base/numbers.h"

namespace shard::commands {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

Json step_json(const train::StepResult& step) {
  Json j{{"step", step.step + 1},
         {"loss", step.loss},
         {"step_seconds", step.seconds},
         {"learning_rate", step.learning_rate}};
  if (!step.control) return j;
  j["gradient_norm"] = std::isfinite(step.control->norm) ? Json(step.control->norm) : Json(nullptr);
  j["loss_scale"] = step.control->scale_before;
  j["skipped"] = step.control->skip != 0;
  return j;
}

Json evaluation_json(const train::EvaluationResult& e) {
  return {{"evaluated_step", e.step}, {"validation_loss", e.loss}, {"seconds", e.seconds}};
}

Json skipped_json(const model::Model& model, std::int64_t step, const plan::ControlBlock& c) {
  const auto tensor = static_cast<std::size_t>(c.tensor);
  const std::int32_t layer = model.parameter_block[tensor];
  return {{"step", step + 1},
          {"scale_before", c.scale_before},
          {"scale_after", c.scale_after},
          {"tensor", model.parameters[tensor].name},
          {"element", c.element},
          {"layer", layer >= 0 ? Json(layer) : Json(nullptr)},
          {"rank", c.rank >= 0 ? Json(c.rank) : Json(nullptr)}};
}

std::string skipped_text(const model::Model& model, std::int64_t step, const plan::ControlBlock& c) {
  const auto tensor = static_cast<std::size_t>(c.tensor);
  const std::int32_t layer = model.parameter_block[tensor];
  return "step " + std::to_string(step + 1) + " skipped: the gradient of " + model.parameters[tensor].name +
         (layer >= 0 ? " (layer " + std::to_string(layer) + ")" : "") + " overflowed first, " +
         (c.rank >= 0 ? "on rank " + std::to_string(c.rank) : "in the sum over ranks") + "; loss scale " +
         show_number(static_cast<double>(c.scale_before)) +
         (c.scale_after == c.scale_before ? " stays" : " -> " + show_number(static_cast<double>(c.scale_after))) + '\n';
}

}  // namespace shard::commands
