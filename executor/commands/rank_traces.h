// The traces that the ranks of one run write before they are merged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/result.h"

namespace shard::commands {

/// Named after the trace and the run, in the trace's folder: NAME.RUN.rankN, RUN being 16 hexadecimal digits that no
/// other run has. Where the trace goes to a device or a pipe they are in the folder for temporary files.
class RankTraces {
 public:
  /// The variable by which the process that starts the ranks tells them the prefix, so that it can clean up after them.
  static constexpr const char* kVariable = "SHARDSCOPE_RANK_TRACES";

  RankTraces() = default;  ///< of a run without a trace: no files
  explicit RankTraces(std::string prefix) : prefix_(std::move(prefix)) {}

  /// New names for the ranks of a run that writes `trace` (empty: none).
  [[nodiscard]] static RankTraces choose(const std::string& trace);
  /// What kVariable holds, else new names.
  [[nodiscard]] static RankTraces given_or_chosen(const std::string& trace);

  [[nodiscard]] bool any() const { return !prefix_.empty(); }
  [[nodiscard]] const std::string& prefix() const { return prefix_; }
  [[nodiscard]] std::filesystem::path of(std::int32_t rank) const;

  /// Registers those of all ranks in temporary_files.
  void adopt(std::int32_t world_size) const;
  /// Removes those of all ranks.
  void remove(std::int32_t world_size) const;

  /// Makes one trace of them. Fails as merge_traces() does, and with Errc::io where one broke off.
  [[nodiscard]] Result<void> merge(std::int32_t world_size, const std::string& trace) const;

 private:
  std::string prefix_;
};

}  // namespace shard::commands
