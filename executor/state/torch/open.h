// Checkpoints of PyTorch's libraries, whichever form they have.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "executor/state/torch/state.h"
#include "traces/base/result.h"

namespace shard::torch {

/// "a PyTorch Distributed Checkpoint" for what the file or folder looks like; nothing where it is none of these forms.
/// Nothing is read.
[[nodiscard]] std::optional<std::string> form_of(const std::filesystem::path& path);

/// Reads what is in a checkpoint, and no tensor's bytes: a DCP folder (.metadata), a DeepSpeed folder (latest, or
/// *_states.pt), pytorch_model.bin or its index in a folder, a file of torch.save. Errors: no_input; malformed;
/// contradiction where it is of a form that is not read, with its name and what helps.
[[nodiscard]] Result<TrainingState> open(const std::filesystem::path& path);

}  // namespace shard::torch
