// Options of the commands that say who held memory: of which moment, put together by what, and how much of it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/cli/command_line.h"
#include "traces/fragmentation.h"
#include "traces/holders.h"

namespace shard::commands {

/// What these options ask for.
struct HoldersAnswer {
  Held held;
  std::optional<SegmentMap> segments{};  ///< at that moment, where the file tells of segments
};

struct HoldersOptions {
  bool asked = false;                 ///< otherwise only of a trace that knows stacks
  std::optional<std::int64_t> at_ns;  ///< since the trace's begin; none: at the peak
  std::optional<std::int64_t> rank;
  Memory memory = Memory::device;
  HeldBy by = HeldBy::site;
  std::int64_t top = 10;

  void add_to(cli::Command& command);
  /// When, put together by what, and how many: without rank and memory.
  void add_moment_to(cli::Group& group);
  /// Nothing where nobody asked and the trace knows no stacks, or has no such memory. `snapshot` may be null.
  [[nodiscard]] Result<std::optional<HoldersAnswer>> of(const Trace& trace, const Snapshot* snapshot,
                                                        std::int64_t begin_ns) const;
};

/// to_json(Held) with "fragmentation", where segments are known: to_json(Fragmentation).
[[nodiscard]] nlohmann::ordered_json to_json(const Trace& trace, const HoldersAnswer& answer, std::size_t top,
                                             std::int64_t begin_ns);

/// to_text(Held), and what fragmentation costs in words.
[[nodiscard]] std::string to_text(const Trace& trace, const HoldersAnswer& answer, std::size_t top,
                                  std::int64_t begin_ns);

}  // namespace shard::commands
