// Differences that are planted in the memory events of a trace, each of which has to be named by its op and size.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "traces/memory_by_op.h"
#include "traces/reader.h"

namespace shard::test {

inline std::string name_of(const Trace& trace, OpId op) {
  for (std::size_t i = 0; i < trace.spans.size(); ++i)
    if (trace.spans.op[i] == op) return std::string(trace.name_of(trace.spans.name[i]));
  return "op " + std::to_string(op.value);
}

struct Planted {
  std::string op;          ///< where the difference begins
  std::int64_t bytes = 0;  ///< other - first there
};

/// A random memory's events, and a random one of them that takes a buffer in a step and is given back in that step.
struct Buffer {
  std::vector<std::uint32_t> events;
  std::size_t taken = 0, given = 0;  ///< positions in `events`
};
inline std::optional<Buffer> any_buffer(const Trace& trace, std::mt19937& random) {
  const auto lists = memory_events(trace);
  std::vector<Buffer> found;
  for (const auto& [key, events] : lists) {
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (trace.memory.delta_bytes[events[i]] <= 0) continue;
      for (std::size_t j = i + 1; j < events.size() && trace.memory.step[events[j]] == trace.memory.step[events[i]] &&
                                  trace.memory.phase[events[j]] == trace.memory.phase[events[i]];
           ++j) {
        if (trace.memory.buffer[events[j]] != trace.memory.buffer[events[i]]) continue;
        found.push_back({events, i, j});
        break;
      }
    }
  }
  if (found.empty()) return std::nullopt;
  return found[std::uniform_int_distribution<std::size_t>(0, found.size() - 1)(random)];
}

/// Exchanges two events of one list, all columns but their place.
inline void move_event(Trace& trace, const std::vector<std::uint32_t>& events, std::size_t from, std::size_t to) {
  std::vector<MemoryEvent> rows;
  for (const std::uint32_t event : events) rows.push_back(trace.memory[event]);
  const MemoryEvent moved = rows[from];
  rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(from));
  rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(to), moved);
  for (std::size_t i = 0; i < events.size(); ++i) {
    const std::uint32_t at = events[i];
    trace.memory.buffer[at] = rows[i].buffer;
    trace.memory.offset_bytes[at] = rows[i].offset_bytes;
    trace.memory.delta_bytes[at] = rows[i].delta_bytes;
    trace.memory.category[at] = rows[i].category;
    trace.memory.op[at] = rows[i].op;
    trace.memory.unit[at] = rows[i].unit;
  }
}

inline void expect_named(const Trace& first, const Trace& other, const Planted& planted, std::int64_t largest) {
  const LargestMemoryDifference found = largest_memory_difference(first, other);
  ASSERT_TRUE(found.compared);
  EXPECT_EQ(found.begin.op, planted.op);
  EXPECT_EQ(found.begin_bytes, planted.bytes);
  EXPECT_EQ(found.bytes, largest);
}

inline void expect_equal_whatever_the_number_of_steps(const Trace& three, const Trace& five) {
  const LargestMemoryDifference found = largest_memory_difference(three, five);
  EXPECT_TRUE(found.compared);
  EXPECT_EQ(found.bytes, 0);
}

inline void expect_a_larger_buffer_named(const Trace& first, std::mt19937& random) {
  const auto buffer = any_buffer(first, random);
  if (!buffer) return;
  Trace other = first;
  const std::uint32_t taken = buffer->events[buffer->taken], given = buffer->events[buffer->given];
  other.memory.delta_bytes[taken] += 256;
  other.memory.delta_bytes[given] -= 256;
  expect_named(first, other, {name_of(first, first.memory.op[taken]), 256}, 256);
}

/// By the op that should free it.
inline void expect_a_buffer_freed_late_named(const Trace& first, std::mt19937& random) {
  const auto buffer = any_buffer(first, random);
  if (!buffer) return;
  const auto& events = buffer->events;
  const std::uint32_t given = events[buffer->given];
  // Behind the next event of another op of the same step, which is the one that frees it then.
  std::size_t later = buffer->given + 1;
  while (later < events.size() && first.memory.op[events[later]] == first.memory.op[given]) ++later;
  if (later == events.size() || first.memory.step[events[later]] != first.memory.step[given] ||
      first.memory.phase[events[later]] != first.memory.phase[given])
    return;
  Trace other = first;
  other.memory.op[given] = first.memory.op[events[later]];
  move_event(other, events, buffer->given, later);
  const std::int64_t bytes = -first.memory.delta_bytes[given];
  expect_named(first, other, {name_of(first, first.memory.op[given]), bytes}, bytes);
}

inline void expect_a_moved_op_named(const Trace& first, std::mt19937& random) {
  const auto buffer = any_buffer(first, random);
  if (!buffer) return;
  const auto& events = buffer->events;
  const std::uint32_t taken = events[buffer->taken];
  const OpId op = first.memory.op[taken];
  // The one event of an op that takes this buffer moves back behind two events of others.
  const auto of_op = [&](std::size_t i) {
    return i < events.size() && first.memory.op[events[i]] == op &&
           first.memory.step[events[i]] == first.memory.step[taken] &&
           first.memory.phase[events[i]] == first.memory.phase[taken];
  };
  if (of_op(buffer->taken + 1) || (buffer->taken > 0 && of_op(buffer->taken - 1))) return;
  const std::size_t later = buffer->taken + 2;
  if (later >= events.size() || later >= buffer->given) return;
  for (std::size_t i = buffer->taken + 1; i <= later; ++i)
    if (first.memory.step[events[i]] != first.memory.step[taken] ||
        first.memory.phase[events[i]] != first.memory.phase[taken])
      return;
  Trace other = first;
  move_event(other, events, buffer->taken, later);
  const std::int64_t bytes = first.memory.delta_bytes[taken];
  expect_named(first, other, {name_of(first, op), -bytes}, bytes);
}

/// One of each kind, where the trace has a buffer for it. What they are held against may be another run of the plan.
inline void expect_planted_differences_named(const Trace& first, std::mt19937& random) {
  expect_a_larger_buffer_named(first, random);
  expect_a_buffer_freed_late_named(first, random);
  expect_a_moved_op_named(first, random);
}

}  // namespace shard::test
