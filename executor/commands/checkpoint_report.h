// What is said of checkpoints, as text and JSON: of a folder of them, of what was read again, of one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "executor/state/checkpoint/directory.h"
#include "executor/state/checkpoint/reader.h"
#include "sim/cli/table.h"
#include "traces/base/result.h"

namespace shard::commands {

/// One row each, the newest last.
[[nodiscard]] cli::Table checkpoint_table(const std::vector<checkpoint::Listed>& listed);
[[nodiscard]] nlohmann::ordered_json list_json(const std::filesystem::path& dir,
                                               const std::vector<checkpoint::Listed>& listed);

/// A checkpoint whose bytes were read again.
struct VerifiedCheckpoint {
  checkpoint::Listed listed;
  std::optional<Error> wrong{};  ///< the first fault
  std::int64_t bytes_read = 0;   ///< without the manifest; headers are read twice
};

/// 0 where all are right, 65 where one is not what was saved, else the code of the first that could not be read.
[[nodiscard]] int exit_code_of(const std::vector<VerifiedCheckpoint>& verified);
[[nodiscard]] std::string verified_text(const std::vector<VerifiedCheckpoint>& verified);
[[nodiscard]] nlohmann::ordered_json verified_json(const std::filesystem::path& dir,
                                                   const std::vector<VerifiedCheckpoint>& verified);

/// `tensors`: each by its name, beside the totals.
[[nodiscard]] std::string checkpoint_text(const checkpoint::Reader& reader, bool tensors);
[[nodiscard]] nlohmann::ordered_json checkpoint_json(const checkpoint::Reader& reader, bool tensors);

}  // namespace shard::commands
