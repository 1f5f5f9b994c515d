// `simulate --program FILE`: a program that was kept, asked again on another device or under other settings.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/cli/command_line.h"
#include "sim/cli/output.h"
#include "sim/commands/allocator_options.h"
#include "sim/like/program/program.h"
#include "sim/like/replay.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::commands {

/// What is asked, with what was given of it.
struct ProgramQuestion {
  std::string path;
  std::string cluster;
  std::optional<Bytes> device_capacity, host_capacity;
  AllocatorFlags allocator;  ///< without settings: those that the program ran under
  std::string trace;         ///< a snapshot of what is predicted is written there; empty: none
  bool exact = false;        ///< sizes to the byte
};

/// Prints what the program takes. The exit code: 3 where it does not fit.
[[nodiscard]] int simulate_program(const cli::Command& command, const ProgramQuestion& question, cli::Format format);

/// Writes `program` down for that; null: another framework's memory is not what was asked for.
[[nodiscard]] Result<void> save_program(const cli::Command& command, const like::Program* program,
                                        const AllocatorFlags& allocator, const std::string& path);

/// A framework's memory as CSV (its moments) or Markdown (its blocks).
void print_tables(const like::MemoryAnswer& answer, cli::Format format);

}  // namespace shard::commands
