// Who held memory in two recordings, side by side: who grew?
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "traces/compare.h"
#include "traces/holders.h"

namespace shard {

struct HolderPair {
  Pair<std::string> name{};  ///< the site in few words; empty where one has no such holder
  Pair<std::int64_t> bytes{}, blocks{};
  std::vector<std::string> stack{};  ///< of holders by stack: its frames, the innermost first
};

struct HolderComparison {
  HeldBy by = HeldBy::site;
  std::vector<HolderPair> holders{};  ///< the largest difference first; the differences add up to that of what was held
};

/// Holders are one where file, function and line are; of sites also where file and function are, and one line of it is
/// left over on either side (the file was edited between the runs). Both are put together by the same.
[[nodiscard]] HolderComparison compare_holders(const Trace& a, const Held& in_a, const Trace& b, const Held& in_b);

/// All, as [{"a_site", "b_site", "a_bytes", "b_bytes", "a_blocks", "b_blocks", "stack"}]; a site is null where one has
/// no such holder, and there is a stack of holders by stack.
[[nodiscard]] nlohmann::ordered_json to_json(const HolderComparison& comparison);

/// The `top` largest differences as a table, and the rest's sum. Empty where nothing was held.
[[nodiscard]] std::string to_text(const HolderComparison& comparison, std::size_t top);

}  // namespace shard
