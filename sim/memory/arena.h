// The ledger of one arena: which buffers are live where, and how high it ever got. Holds no bytes itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "traces/base/ids.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard {

/// Every arena offset is a multiple of this: a cache line, and the widest vector.
inline constexpr std::int64_t kArenaAlignment = 64;

using CategoryBytes = std::array<Bytes, kCategoryCount>;  ///< indexed by Category

/// Books of one memory's arena, [0, unbounded), kept alike by the simulator and by an executor. In plan order.
/// Single-threaded. A live buffer of zero bytes is legal and overlaps nothing.
class ArenaLedger {
 public:
  explicit ArenaLedger(Memory memory, std::int64_t alignment = kArenaAlignment)
      : memory_(memory), alignment_(alignment) {}
  ArenaLedger(ArenaLedger&&) = default;
  ArenaLedger& operator=(ArenaLedger&&) = default;
  // Entries point into ranges_.
  ArenaLedger(const ArenaLedger&) = delete;
  ArenaLedger& operator=(const ArenaLedger&) = delete;
  ~ArenaLedger() = default;

  /// `buffer` now owns [offset, offset + bytes). Errc::internal, and nothing changes, when it is live already, when the
  /// offset is negative or not aligned, or when the bytes meet a live buffer's (both are named).
  Result<void> acquire(BufferId buffer, Bytes offset, Bytes bytes, Category category);
  /// Errc::internal when `buffer` is not live.
  Result<void> release(BufferId buffer);

  [[nodiscard]] Bytes live() const { return live_; }
  [[nodiscard]] const CategoryBytes& live_by_category() const { return live_by_category_; }
  /// The highest live() since the start or reset_peaks().
  [[nodiscard]] Bytes live_peak() const { return live_peak_; }
  /// Sums to live_peak(); of the first moment that reached it.
  [[nodiscard]] const CategoryBytes& by_category_at_peak() const { return by_category_at_peak_; }
  /// The highest offset ever in use since the start or reset_peaks(), rounded up to the alignment: a `*_peak_bytes`.
  [[nodiscard]] Bytes extent() const { return extent_; }
  [[nodiscard]] std::size_t live_count() const { return live_count_; }
  [[nodiscard]] bool is_live(BufferId buffer) const {
    const auto b = static_cast<std::size_t>(buffer.value);
    return b < buffers_.size() && buffers_[b].live;
  }
  [[nodiscard]] Memory memory() const { return memory_; }

  /// Peaks fall to what is live now: each phase has its own.
  void reset_peaks();

 private:
  struct Range {
    std::int64_t end = 0;
    BufferId buffer;
  };
  using Ranges = std::map<std::int64_t, Range>;
  struct Entry {
    Bytes bytes{0};
    Category category = Category::parameter;
    bool live = false;
    Ranges::iterator range;  // of a live buffer of one byte or more
  };

  /// Right below `above`.
  Ranges::iterator insert(Ranges::iterator above, std::int64_t begin, Range range);
  [[nodiscard]] Error broken(std::string what) const;
  [[nodiscard]] static std::string describe(BufferId buffer, std::int64_t begin, std::int64_t end);

  Memory memory_;
  std::int64_t alignment_;
  std::vector<Entry> buffers_;  // by BufferId, as far as any was live
  std::size_t live_count_ = 0;
  Ranges ranges_;                          // live buffers of one byte or more, by first offset
  std::vector<Ranges::node_type> unused_;  // what buffers that are gone left to those to come
  Bytes live_{0}, live_peak_{0}, extent_{0};
  CategoryBytes live_by_category_{}, by_category_at_peak_{};
};

}  // namespace shard
