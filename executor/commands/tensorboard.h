// Event files as TensorBoard reads them: scalars by step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "traces/base/output_file.h"
#include "traces/base/result.h"

namespace shard::commands {

struct Scalar {
  std::string_view tag;  ///< "train/loss"
  double value = 0;      ///< stored as a float
};

/// One file of a folder that may have others: TensorBoard shows them as one run, the newer file's steps behind the
/// older's. Not synchronised.
class EventFile {
 public:
  /// Makes the folder where it is absent, and events.out.tfevents.SECONDS.HOST.PROCESS in it. Errors: cannot_create.
  [[nodiscard]] static Result<EventFile> create(const std::filesystem::path& folder);

  /// One event, for those who follow the file at once. `step` counts from 1. A failure is reported by finish().
  void write(std::int64_t step, std::span<const Scalar> scalars);
  /// Errors: those of OutputFile.
  [[nodiscard]] Result<void> finish() { return file_.finish(); }

 private:
  explicit EventFile(OutputFile file) : file_(std::move(file)) {}
  void record(std::string_view event);

  OutputFile file_;
};

}  // namespace shard::commands
