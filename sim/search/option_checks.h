// Checks that the chunk searches share; each names the option at fault.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/model/parameters.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard {

[[nodiscard]] inline std::optional<Error> check_world_size(std::int64_t world_size) {
  if (world_size >= 1 && world_size <= (std::int64_t{1} << 31)) return std::nullopt;
  return Error{Errc::contradiction, "--world-size is " + std::to_string(world_size) + ", not from 1 to 2^31", "",
               "--world-size 1"};
}

/// value within [least, kMaxTotalElems]; the upper bound keeps every sum of a search within int64.
[[nodiscard]] inline std::optional<Error> check_elems(const char* option, Elems value, std::int64_t least) {
  if (value.count() >= least && value <= kMaxTotalElems) return std::nullopt;
  return Error{Errc::contradiction,
               std::string(option) + " is " + std::to_string(value.count()) + " elements, not from " +
                   std::to_string(least) + " to 2^60",
               "", std::string(option) + " " + std::to_string(value.count() < least ? least : kMaxTotalElems.count())};
}

}  // namespace shard
