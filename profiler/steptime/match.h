// Which durations of a recording stand in for which laws of a step.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "profiler/steptime/recorded.h"
#include "profiler/steptime/step_calls.h"
#include "traces/base/result.h"

namespace shard::steptime {

/// What a piece of work was found by; the first that holds counts.
enum class FoundBy : std::uint8_t {
  operators,  ///< operator and tensors: what its kernels took together, shared out as the laws would have it
  launch,     ///< kernel's name, grid and block; a copy's or a fill's bytes
  name,       ///< kernel's name alone, and which one of a step it is
  sizes,      ///< operator and its tensors' sizes, of NVTX ranges: what of it was not found by launch
  place,      ///< place between kernels that were found
};
inline constexpr std::size_t kWaysToFind = 5;
[[nodiscard]] const char* to_string(FoundBy by);

/// A piece of the step that computes, copies or fills, in the order in which it was given.
struct Wanted {
  const Call* call = nullptr;
  std::int64_t stream = 0;
  double by_law = 0;  ///< seconds
};

struct Found {
  double seconds = 0, doubt = 0;
  FoundBy by = FoundBy::operators;
};

/// One for each that is wanted; none: its law stays.
[[nodiscard]] std::vector<std::optional<Found>> match(const std::vector<Wanted>& wanted, const WorkList& work,
                                                      const import::KinetoProgram& operators, const Recorded& recorded);

/// Of a step of which nothing was found: what was looked for, and what the recording has.
[[nodiscard]] Error nothing_found(const std::vector<Wanted>& wanted, const WorkList& work, const Recorded& recorded);

/// "kernels", "products", "copies", ... as people call them.
[[nodiscard]] std::string_view kind_name(Work kind);

}  // namespace shard::steptime
