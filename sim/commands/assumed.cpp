// Values and their origins, as lines and as JSON.
#include "sim/commands/assumed.h"

#include <algorithm>
#include <initializer_list>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "traces/base/numbers.h"
#include "traces/base/printable.h"

namespace shard::commands {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDefault = "default";
constexpr const char* kDerived = "derived";
constexpr const char* kConfig = "the model's config.json";

/// Where the first of `options` that was given came from, else `otherwise`.
std::string origin(const cli::Command& command, std::initializer_list<const char*> options, const char* otherwise) {
  for (const char* option : options)
    if (command.has(option) && command.given(option)) return command.origin(option).where;
  return otherwise;
}

/// Where every value came from.
struct Origins {
  std::string model, precision, dropout, sequence, micro_batch, global_batch, world_size, cluster, device_capacity,
      memory_of;
};

Origins origins_of(const cli::Command& command, const Assumed& a) {
  return {.model = origin(command, {"model", "parameters"}, kDefault),
          // An emulated framework may have a precision of its own.
          .precision = origin(command, {"precision"},
                              a.precision_of_config           ? kConfig
                              : a.memory_of != like::kOwnName ? kDerived
                                                              : kDefault),
          .dropout = origin(command, {"dropout"}, kDefault),
          .sequence = origin(command, {"sequence"}, kDefault),
          .micro_batch = origin(command, {"micro-batch"}, kDefault),
          .global_batch = origin(command, {"global-batch"}, kDerived),
          // A launcher's ranks are nobody's option.
          .world_size = origin(command, {"world-size"}, a.world_size == 1 ? kDefault : kDerived),
          .cluster = origin(command, {"cluster"}, kDefault),
          .device_capacity = origin(command, {"device-capacity"}, kDerived),
          .memory_of = a.memory_origin};
}

std::string mark(const std::string& origin) {
  return " (" + (origin == "command line" ? "given" : origin) + ")";
}

const char* precision_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16: return "bf16";
    case Dtype::f16: return "fp16";
    case Dtype::f32:
    case Dtype::i32:
    case Dtype::i64: break;
  }
  return "fp32";
}

/// The config.json's own precision where another one is taken without having been asked for.
std::optional<std::string> unheeded(const Assumed& a, const Origins& from) {
  if (!a.config_dtype || from.precision != kDefault || precision_of(*a.config_dtype) == a.precision)
    return std::nullopt;
  return precision_of(*a.config_dtype);
}

/// The config.json's own dropouts where another one is taken without having been asked for.
std::vector<model::ConfiguredDropout> unheeded_dropouts(const Assumed& a, const Origins& from) {
  std::vector<model::ConfiguredDropout> others;
  if (from.dropout != kDefault) return others;
  std::ranges::copy_if(a.config_dropouts, std::back_inserter(others),
                       [&](const model::ConfiguredDropout& said) { return said.value != a.dropout; });
  return others;
}

/// Nothing of models that drop nothing.
std::string dropout_line(const Assumed& a, const Origins& from) {
  const auto others = unheeded_dropouts(a, from);
  if (a.dropout == 0 && others.empty()) return "";
  std::string text = "dropout   " + show_number(a.dropout) + mark(from.dropout);
  std::string said;
  for (const model::ConfiguredDropout& other : others)
    said += (said.empty() ? "" : ", ") + show_number(other.value) + " (" + other.keys + ")";
  if (!said.empty())
    text += "; its config.json says " + said + ": --dropout " + show_number(others.front().value) + " to follow it";
  return text + "\n";
}

std::string batch_line(const Assumed& a, const Origins& from) {
  const std::string what = a.counts_tokens ? "sequence" : "sample";
  std::string text = with_commas(a.micro_batch) + " " + what + (a.micro_batch == 1 ? "" : "s") +
                     " per rank and micro-step" + mark(from.micro_batch) + ", " + with_commas(a.global_batch) +
                     " per step" + mark(from.global_batch);
  if (a.counts_tokens) text += ", " + with_commas(a.sequence) + " tokens each" + mark(from.sequence);
  return text;
}

std::string machine_line(const Assumed& a, const Origins& from, ShowBytes show) {
  // Whoever asks about a model without a machine gets a CPU's time.
  const std::string chosen =
      from.cluster == kDefault ? " (default, a CPU: --cluster names your GPUs)" : mark(from.cluster);
  return printable_line(*a.cluster) + chosen + ", " +
         (a.device_capacity ? show(*a.device_capacity) + " per device" + mark(from.device_capacity)
                            : std::string("no memory limit")) +
         "; ";
}

}  // namespace

Assumed assumed(const model::Model& model, const plan::Strategy& s, const std::string& cluster,
                std::optional<Bytes> device_capacity) {
  return {.model = model.name,
          .parameter_elements = model.parameter_elements(),
          .precision = plan::to_string(s.precision),
          .dropout = s.dropout,
          .world_size = s.world_size,
          .counts_tokens = model.family != model::Family::mlp,
          .sequence = s.sequence,
          .micro_batch = s.micro_batch,
          .global_batch = s.global_batch,
          .cluster = cluster,
          .device_capacity = device_capacity};
}

void print_assumed(cli::Format format, const cli::Command& command, const Assumed& a, ShowBytes show) {
  if (format == cli::Format::json) return;
  cli::print(format == cli::Format::table ? std::cout : std::cerr, to_text(command, a, show) + '\n');
}

std::string to_text(const cli::Command& command, const Assumed& a, ShowBytes show) {
  const Origins from = origins_of(command, a);
  std::string text = "model     " + printable_line(a.model) + mark(from.model) + ", " +
                     with_commas(a.parameter_elements) + (a.parameter_elements == 1 ? " parameter\n" : " parameters\n");
  text += "precision " + a.precision + mark(from.precision) + a.precision_remark;
  if (const auto other = unheeded(a, from))
    text += "; its config.json says " + *other + ": --precision " + *other + " to follow it";
  text += "\n" + dropout_line(a, from);
  if (a.has_batch) text += "batch     " + batch_line(a, from) + "\n";
  text += "machine   " + (a.cluster ? machine_line(a, from, show) : "") + with_commas(a.world_size) +
          (a.world_size == 1 ? " rank" : " ranks") + mark(from.world_size) + "\n";
  if (a.cluster)
    text += "memory    of " + (a.memory_of == like::kOwnName ? "Shardscope's own executor" : a.memory_of) +
            mark(from.memory_of) + "\n";
  return text;
}

Json to_json(const cli::Command& command, const Assumed& a) {
  const Origins from = origins_of(command, a);
  const auto each = [](Json value, const std::string& origin) { return Json{{"value", value}, {"origin", origin}}; };
  const auto batch = [&](bool there, std::int64_t value, const std::string& origin) {
    return each(there ? Json(value) : Json(nullptr), origin);
  };
  Json precision = each(a.precision, from.precision);
  if (const auto other = unheeded(a, from)) precision["config_value"] = *other;
  Json dropout = each(a.dropout, from.dropout);
  if (const auto others = unheeded_dropouts(a, from); !others.empty()) dropout["config_value"] = others.front().value;
  return {{"model", each(a.model, from.model)},
          {"parameter_elements", each(a.parameter_elements, kDerived)},
          {"precision", precision},
          {"dropout", dropout},
          {"sequence", batch(a.has_batch && a.counts_tokens, a.sequence, from.sequence)},
          {"micro_batch", batch(a.has_batch, a.micro_batch, from.micro_batch)},
          {"global_batch", batch(a.has_batch, a.global_batch, from.global_batch)},
          {"world_size", each(a.world_size, from.world_size)},
          {"cluster", each(a.cluster ? Json(*a.cluster) : Json(nullptr), from.cluster)},
          {"device_capacity_bytes",
           each(a.device_capacity ? Json(a.device_capacity->count()) : Json(nullptr),
                a.device_capacity ? from.device_capacity : origin(command, {"cluster"}, kDefault))},
          {"host_capacity_bytes", each(a.host_capacity ? Json(a.host_capacity->count()) : Json(nullptr),
                                       origin(command, {"host-capacity"}, a.host_capacity ? kDerived : kDefault))},
          {"memory_of", each(a.cluster ? Json(a.memory_of) : Json(nullptr), from.memory_of)}};
}

}  // namespace shard::commands
