// What a span is doing, as one of a few colours: told from its stream and its part; from its name where it says no
// part.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "traces/event.h"

namespace shard::view {

enum class SpanClass : std::uint8_t {
  forward,
  backward,
  recompute,
  optimizer,
  gather,         ///< all-gathers: parameters on their way to where they are used
  reduce,         ///< reduce-scatters, all-reduces: gradients on their way to their owners
  communication,  ///< any other: broadcasts, sends
  copy,           ///< between memories
  host,           ///< data, preparation, anything of the host
  other,          ///< none of these, or not told by the name
};
inline constexpr int kSpanClassCount = 10;

[[nodiscard]] const char* to_string(SpanClass value);

/// Nanoseconds, or counts, per class.
using ByClass = std::array<std::int64_t, kSpanClassCount>;

/// The stream decides between kinds that it can hold, the part within. Not for Part::unknown.
[[nodiscard]] SpanClass class_of(const Track& track, Part part);

/// For spans that say no part, those of other tools and of files before format 1.2: what the name alone says, in words
/// of our ops, of NCCL and of the CUDA runtime. `other` where it says nothing.
[[nodiscard]] SpanClass class_of_name(std::string_view name);

/// Likewise: the stream decides between kinds that it can hold (a "reduce" on a compute stream is a kernel); the name
/// within.
[[nodiscard]] SpanClass class_of(const Track& track, SpanClass by_name);

}  // namespace shard::view
