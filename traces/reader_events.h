// Decodes the frames of spans and of memory events, which are most of a file, on several threads (internal to the
// reader).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "traces/reader.h"
#include "traces/reader_frames.h"

namespace shard::sst {

/// A frame of events: what earlier frames say of it, where its rows go, and what became of it.
struct EventFrame {
  const Frame* frame = nullptr;
  const char* why = nullptr;       ///< not null: why it cannot be used; set before decoding, it is not decoded
  std::size_t row = 0;             ///< of its table, the first
  std::int64_t known_names = 0;    ///< names that earlier frames define (T8)
  std::int64_t known_stacks = 0;   ///< stacks likewise
  Rank rank{};                     ///< of memory events, as their track says
  Memory memory = Memory::device;  ///< likewise
  std::uint64_t live_before = 0;   ///< memory events: the running total that the frame claims ...
  std::uint64_t live_change = 0;   ///< ... and what its events add to it, both modulo 2^64
};

/// Decodes all frames (spans and memory events mixed, rows in order) into tables that it makes large enough.
void decode_events(std::span<const std::byte> file, std::vector<EventFrame>& frames, Trace& trace);

/// Takes the rows of frames that cannot be used out of both tables.
void drop_unusable(const std::vector<EventFrame>& frames, Trace& trace);

}  // namespace shard::sst
