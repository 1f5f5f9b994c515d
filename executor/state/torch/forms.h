// The forms of checkpoints, each read by a file of its own. For open.cpp and tests.
#pragma once

#include <filesystem>

#include "executor/state/torch/state.h"
#include "traces/base/result.h"
#include "traces/import/byte_source.h"

namespace shard::torch {

/// DCP: torch/distributed/checkpoint/metadata.py and filesystem.py of PyTorch. `folder` has .metadata.
[[nodiscard]] Result<TrainingState> open_distributed(const std::filesystem::path& folder);
/// What a .metadata says; `folder` is where its files lie. Takes state.path for errors.
[[nodiscard]] Result<void> read_metadata(import::ByteSource& source, const std::filesystem::path& folder,
                                         TrainingState& state);

/// DeepSpeed of stages 0 to 3 without tensor or pipeline parallelism. `folder` has the *_states.pt. Rules as
/// deepspeed/utils/zero_to_fp32.py and runtime/zero/stage_1_and_2.py, stage3.py have them.
[[nodiscard]] Result<TrainingState> open_deepspeed(const std::filesystem::path& folder);

/// A file of torch.save whose content is a state_dict(), or has one under a usual name: weights alone.
[[nodiscard]] Result<TrainingState> open_saved_file(const std::filesystem::path& file);
/// Files of one index, pytorch_model.bin.index.json.
[[nodiscard]] Result<TrainingState> open_saved_index(const std::filesystem::path& index);
/// Of one archive, for tests and fuzzing.
[[nodiscard]] Result<void> add_saved(const std::shared_ptr<Archive>& archive, TrainingState& state);

}  // namespace shard::torch
