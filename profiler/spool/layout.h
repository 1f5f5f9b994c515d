// The file that events of one process lie in while it runs: a page of counters, then blocks that threads fill.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "profiler/spool/event.h"

namespace shard::profiler {

inline constexpr std::array<char, 8> kSpoolMagic{'S', 'S', 'P', 'O', 'O', 'L', '1', '\n'};
inline constexpr std::size_t kSpoolHeaderBytes = 4096;
inline constexpr std::size_t kBlockBytes = std::size_t{256} << 10;
inline constexpr std::size_t kEventsPerBlock = kBlockBytes / sizeof(Event) - 1;
inline constexpr std::uint32_t kMostBlocks = 1u << 20;

/// At offset 0. Everything from `paused` on changes while the process runs, by atomic operations.
struct SpoolHeader {
  std::array<char, 8> magic = kSpoolMagic;
  std::uint32_t block_bytes = kBlockBytes;
  std::int32_t process = 0;
  std::int64_t clock_ns = 0;      ///< the steady clock at one moment ...
  std::int64_t wall_ns = 0;       ///< ... and Unix time at the same one
  std::int32_t rank = -1;         ///< of a distributed program, as its launcher told it
  std::uint32_t paused = 0;       ///< not 0: whoever profiles wants nothing recorded for now
  std::uint32_t limit = 0;        ///< blocks that may be used
  std::uint32_t fresh = 0;        ///< blocks that have been used
  std::uint64_t turn = 0;         ///< of looking for a block that may be used again
  std::uint64_t order = 0;        ///< blocks handed out, those used again counted again
  std::uint64_t dropped = 0;      ///< events that found no room
  std::uint64_t overwritten = 0;  ///< events whose block was used again
  std::uint64_t names_lost = 0;   ///< texts that could not be written
};
static_assert(sizeof(SpoolHeader) <= kSpoolHeaderBytes);

enum class BlockState : std::uint32_t { never = 0, filling = 1, free = 2 };

/// In the place of a block's first event.
struct BlockHeader {
  std::uint32_t state = 0;  ///< BlockState
  std::uint32_t thread = 0;
  std::uint64_t order = 0;  ///< 1 for the first block handed out
  std::uint64_t count = 0;  ///< events that are whole
  std::array<std::uint64_t, 5> unused{};
};
static_assert(sizeof(BlockHeader) == sizeof(Event));

}  // namespace shard::profiler
