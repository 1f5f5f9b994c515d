// A training state of PyTorch's libraries, written as a checkpoint of this project.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "executor/state/torch/state.h"
#include "traces/base/result.h"

namespace shard::torch {

struct Conversion {
  std::filesystem::path folder;  ///< of checkpoints: one is added to it
  std::int64_t step = 0;
  std::string config;                               ///< config.json's text; empty: none
  std::function<void(double fraction)> progress{};  ///< of the elements
};

/// Weights and moments as F32, counts as I32; a tensor at a time, 1 MiB of it in memory. Draft's promises hold: the
/// checkpoint is there whole or not at all. Its path. Errors: those of reading; malformed: an element that is not
/// there; cannot_create, io.
[[nodiscard]] Result<std::filesystem::path> convert(TrainingState& state, const Conversion& conversion);

}  // namespace shard::torch
