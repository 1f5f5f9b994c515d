// The blocks of one memory: each from the event that acquired it to the one that released it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "traces/reader.h"
#include "viewer/index/memory.h"

namespace shard::view {

/// Of blocks and events: there is none.
inline constexpr std::uint32_t kNone = 0xffff'ffff;

/// Live at the moments [begin, end) of its series.
struct Block {
  std::uint32_t acquired = 0;      ///< index into trace.memory
  std::uint32_t released = kNone;  ///< likewise; kNone: not within the recording
  std::size_t begin = 0, end = 0;
  std::int64_t bytes = 0;

  friend bool operator==(const Block&, const Block&) = default;
};

/// Of a trace where a release gives back what was acquired last under its buffer: allocators' recordings. Releases of
/// what was never acquired are of no block.
class BlockList {
 public:
  BlockList() = default;
  BlockList(const MemoryTable& table, const MemorySeries& series);

  [[nodiscard]] const std::vector<Block>& all() const { return blocks_; }  ///< by begin
  /// The block that the event leading to a moment (> 0) acquired or released, or kNone.
  [[nodiscard]] std::uint32_t at(std::size_t moment) const { return of_event_[moment - 1]; }
  /// The block that an event (index into trace.memory) acquired, or kNone.
  [[nodiscard]] std::uint32_t acquired_by(std::uint32_t event) const;

 private:
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> of_event_;
};

}  // namespace shard::view
