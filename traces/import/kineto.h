// What PyTorch's profiler says in Chrome's format beside spans: allocations as instants, steps as annotations.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <vector>

#include "traces/import/builder.h"

namespace shard::import {

[[nodiscard]] bool is_gpu_category(std::string_view category);
[[nodiscard]] bool is_kineto_category(std::string_view category);

/// A `[memory]` instant.
struct KinetoMemory {
  std::int64_t time_ns = 0, bytes = 0;
  std::uint64_t address = 0;
  std::optional<std::int64_t> allocated{}, reserved{};
  std::int32_t process = 0;
  Memory memory = Memory::device;
};

/// Gives the builder what they allocate and free, in the order of time, by process in place of rank. What was allocated
/// before the recording is one buffer that stays.
void place_memories(std::deque<KinetoMemory>& memories, Builder& builder);

/// "ProfilerStep#": a step of training.
struct StepRange {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int32_t step = 0;
  std::int32_t process = 0;
  Rank rank{};
};

/// Spans and memory events take the step of their rank that they begin in.
void number_steps(std::vector<StepRange>& steps, Trace& trace);

/// Says in the header what Unix time it was: times count from baseTimeNanoseconds (in wall_ns) where the file has one;
/// else, and in files that have one and do not keep to it, they are Unix time themselves. A file whose times are
/// neither says nothing.
void tell_clock(Trace& trace);

}  // namespace shard::import
