// What `shardscope verify` found.
#include "executor/commands/verify_report.h"

#include <nlohmann/json.hpp>

#include "sim/cli/output.h"
#include "sim/engine/report.h"
#include "traces/base/numbers.h"

namespace shard::commands {
namespace {

using Json = nlohmann::ordered_json;

const model::Model& model_of(const VerifyReport& report) {
  return *report.prepared->planned.model;
}

const std::string& parameter_name(const VerifyReport& report, std::int32_t param) {
  return model_of(report).parameters[static_cast<std::size_t>(param)].name;
}

Json first_json(const VerifyReport& report) {
  if (!report.agreement.first) return nullptr;
  const train::FirstDifference& first = *report.agreement.first;
  Json j{{"step", first.step}, {"tensor", nullptr}, {"what", "loss"}, {"rank", first.rank}, {"element", nullptr}};
  if (first.tensor) {
    j["tensor"] = parameter_name(report, first.tensor->param);
    j["what"] = to_string(first.tensor->kind);
    j["element"] = first.element;
  }
  j["reference_value"] = first.expected;
  j["value"] = first.found;
  j["differing_parameters"] = first.parameters;
  return j;
}

/// What a difference in this says of the step that made it, whose beginning was equal.
std::string meaning(train::StateKind kind) {
  switch (kind) {
    case train::StateKind::first_moment: return "its gradient in this step differs";
    case train::StateKind::second_moment: return "its gradient does not: the step itself differs";
    case train::StateKind::master: return "where it has moments they are equal: the step itself differs";
    case train::StateKind::value:
      return "where it has moments and a master they are equal: the step, or a refresh after it";
  }
  return {};
}

std::string first_text(const VerifyReport& report) {
  const train::FirstDifference& first = *report.agreement.first;
  const std::string values = shortest(static_cast<float>(first.expected)) + " in stage 0, " +
                             shortest(static_cast<float>(first.found)) + " here\n";
  std::string text = "DIFFERS   at step " + std::to_string(first.step) + ": ";
  if (!first.tensor) return text + "the loss, on rank " + std::to_string(first.rank) + ": " + values;
  std::string kind = to_string(first.tensor->kind);
  if (const std::size_t gap = kind.find('_'); gap != std::string::npos) kind[gap] = ' ';
  text +=
      kind + " of " + parameter_name(report, first.tensor->param) + ", on rank " + std::to_string(first.rank) + '\n';
  text += "          element " + with_commas(first.element) + ": " + values;
  text += "          " + meaning(first.tensor->kind) + '\n';
  text += "          " + with_commas(first.parameters) + " of " +
          with_commas(static_cast<std::int64_t>(model_of(report).parameters.size())) +
          " parameters differ behind this step; named is the first in the model's order\n";
  return text;
}

}  // namespace

std::string reference_text(const plan::Strategy& reference) {
  const std::string ranks = reference.world_size == 1 ? "one rank" : std::to_string(reference.world_size) + " ranks";
  const char* const why = reference.tensor_parallel > 1 ? " that share the model"
                          : reference.world_size > 1    ? ", as many as there are, for gradients are predivided"
                                                        : "";
  return "stage 0 on " + ranks + why;
}

Json to_json(const cli::Command& command, const VerifyReport& report) {
  const train::Agreement& found = report.agreement;
  const plan::Strategy& s = report.prepared->planned.strategy;
  Json j = cli::json_document("verify");
  j["schema_version"] = engine::kSchemaVersion;
  j["assumed"] = to_json(command, assumed_of(report.prepared->planned, report.prepared->prediction));
  j["model"] = model_of(report).name;
  j["strategy"] = engine::to_json(s);
  j["reference_strategy"] = engine::to_json(report.reference->planned.strategy);
  j["data"] = report.prepared->data;
  j["step_count"] = report.steps;
  j["bits_promised"] = report.promised;
  j["bit_identical"] = !found.first.has_value();
  j["first_difference"] = first_json(report);
  j["largest_difference"] = nullptr;
  if (found.largest)
    j["largest_difference"] = {{"relative", found.largest->relative},
                               {"tensor", parameter_name(report, found.largest->param)}};
  j["reference_losses"] = found.reference_losses;
  j["losses"] = found.losses;
  j["reference_state_sha256"] = found.reference_sha256;
  j["state_sha256"] = found.sha256;
  return j;
}

std::string to_text(const VerifyReport& report) {
  const train::Agreement& found = report.agreement;
  std::string text;
  if (found.first)
    text += first_text(report);
  else
    text += "bit-identical: every value, moment and loss of " + std::to_string(report.steps) +
            (report.steps == 1 ? " step" : " steps") + ", on every rank\n";
  if (found.first && found.largest)
    text += "apart     at the end by " + show_number(found.largest->relative) +
            " of the largest element of a parameter, of " + parameter_name(report, found.largest->param) + '\n';
  text += "state     sha256 " + found.sha256 + '\n';
  if (found.first) text += "stage 0   sha256 " + found.reference_sha256 + '\n';
  return text;
}

}  // namespace shard::commands
