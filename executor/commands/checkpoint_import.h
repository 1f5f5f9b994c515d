// `shardscope checkpoint import`: other libraries' checkpoints become ones that runs go on from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "executor/state/torch/state.h"
#include "traces/base/result.h"

namespace shard::commands {

struct ImportRequest {
  std::string from;                    ///< what torch::open() reads
  std::string into;                    ///< a folder of checkpoints
  std::optional<std::int64_t> step{};  ///< nothing: as the checkpoint says, 0 where it does not
};

struct Imported {
  torch::TrainingState state;
  std::filesystem::path path;  ///< of the checkpoint that was made
  std::int64_t step = 0;
};

/// Reads it and writes the checkpoint, with config.json beside it where one lies in the folder or around it. Progress
/// goes to stderr. Errors: those of torch::open() and torch::convert().
[[nodiscard]] Result<Imported> import_checkpoint(const ImportRequest& request);
[[nodiscard]] std::string imported_text(const Imported& imported);
[[nodiscard]] nlohmann::ordered_json imported_json(const Imported& imported);

/// What is in one, of `checkpoint show`. `tensors`: each by its name.
[[nodiscard]] std::string foreign_text(const torch::TrainingState& state, bool tensors);
[[nodiscard]] nlohmann::ordered_json foreign_json(const torch::TrainingState& state, bool tensors);

}  // namespace shard::commands
