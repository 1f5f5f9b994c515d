// The conformance suite of the Communicator contract: every implementation runs every case at several world sizes.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "executor/comm/communicator.h"

namespace shard::test {

/// What one rank found wrong.
using Findings = std::vector<std::string>;

/// For every case.
inline constexpr Bytes kArena{24 * 1024 * 1024};

struct ConformanceCase {
  std::string name;
  /// Runs on every rank at once, with an arena of kArena bytes, or of arena(), whose content is arbitrary; adds what is
  /// wrong.
  std::function<void(Communicator& comm, std::span<std::byte> arena, Findings& findings)> run;
  bool has_long_buffers = false;

  /// What this case needs, where each has an arena of its own.
  [[nodiscard]] Bytes arena() const { return has_long_buffers ? kArena : Bytes{3 * 1024 * 1024}; }
};

/// All of them.
[[nodiscard]] const std::vector<ConformanceCase>& conformance_cases();
/// Those of element types and groups, a part of all.
[[nodiscard]] const std::vector<ConformanceCase>& group_cases();

}  // namespace shard::test
