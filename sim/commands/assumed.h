// What an answer rests on, said before it: which model, precision, batch and machine were taken, and who chose each.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/cli/command_line.h"
#include "sim/cli/output.h"
#include "sim/like/frameworks/framework.h"
#include "sim/model/config.h"
#include "sim/model/graph.h"
#include "sim/strategy/strategy.h"
#include "traces/base/numbers.h"

namespace shard::commands {

/// What was taken. Who chose it is the command's to tell: an option that was given, or its default.
struct Assumed {
  std::string model;  ///< its name, or the file of a list of parameters
  std::int64_t parameter_elements = 0;
  std::string precision;
  std::string precision_remark{};       ///< for people: what else is stored, ", parameters rest in fp32 ..."
  std::optional<Dtype> config_dtype{};  ///< what the model's config.json says it is stored as
  double dropout = 0;
  std::vector<model::ConfiguredDropout> config_dropouts{};  ///< what the model's config.json says
  std::int32_t world_size = 1;
  bool has_batch = true;  ///< a list of parameters has none
  bool counts_tokens = true;
  std::int64_t sequence = 0;
  std::int64_t micro_batch = 1;
  std::int64_t global_batch = 1;
  std::optional<std::string> cluster{};    ///< none: no machine has a part in the answer
  std::optional<Bytes> device_capacity{};  ///< none: no limit
  std::optional<Bytes> host_capacity{};    ///< of a host; none: no limit, or no host's memory has a part
  std::string memory_of{like::kOwnName};   ///< or the framework that is emulated, NAME@VERSION
  std::string memory_origin = "default";   ///< who chose that
  bool precision_of_config = false;        ///< precision is what the model's config.json says
};

/// A model trained by a strategy on a cluster, of whose devices `device_capacity` may be used. What its config.json
/// says is left open.
[[nodiscard]] Assumed assumed(const model::Model& model, const plan::Strategy& strategy, const std::string& cluster,
                              std::optional<Bytes> device_capacity);

/// to_text() where people read it: before the result, or on stderr where stdout holds nothing but a table for other
/// programs. Nothing for JSON, which has it inside.
void print_assumed(cli::Format format, const cli::Command& command, const Assumed& assumed,
                   ShowBytes show = show_bytes);

/// A line each for model, precision, dropout where there is any, batch, machine and whose memory it is, every value
/// with "(given)", "(default)", "(derived)" or the line of a file behind it.
[[nodiscard]] std::string to_text(const cli::Command& command, const Assumed& assumed, ShowBytes show = show_bytes);

/// {"model", "parameter_elements", "precision", "dropout", "sequence", "micro_batch", "global_batch", "world_size",
/// "cluster", "device_capacity_bytes", "host_capacity_bytes", "memory_of"}, each {"value", "origin"}: "command line",
/// "FILE:LINE", "default" or "derived". What has no part in the answer has the value null. precision and dropout have
/// "config_value" too where the model's config.json names another one and nobody chose.
[[nodiscard]] nlohmann::ordered_json to_json(const cli::Command& command, const Assumed& assumed);

}  // namespace shard::commands
