// What the blocks of a memory are told apart by, few enough for a picture: the sites that asked for most, or
// categories.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/reader.h"
#include "viewer/index/blocks.h"
#include "viewer/index/memory.h"

namespace shard::view {

enum class MemoryBy : std::uint8_t {
  site,      ///< the innermost line of the user's own code
  stack,     ///< the whole stack
  category,  ///< what it is for, as far as that is known
};

inline constexpr std::size_t kMostSites = 10;
/// Sites, all others together, and what has no stack.
inline constexpr std::size_t kMostClasses = kMostSites + 2;
static_assert(kMostClasses >= kCategoryCount);

struct MemoryClass {
  std::string
      name;  ///< "train.py:31 step", "train.py:31 step ← train.py:8 main", "other sites", "no stack", "optimizer state"
  std::size_t color =
      0;  ///< by site: its place among the classes, kMostSites others, kMostSites + 1 none; else the category
  std::int64_t peak_bytes = 0;  ///< at the series' peak
  std::int64_t sites = 1;       ///< how many are in it
};

/// Of every class, at one moment.
struct ClassStack {
  std::array<std::int64_t, kMostClasses> bytes{};
  std::array<std::int32_t, kMostClasses> blocks{};

  friend bool operator==(const ClassStack&, const ClassStack&) = default;
};

/// The classes of one series, and what is live of each at any moment. Events of no block count for nothing.
class MemoryClasses {
 public:
  MemoryClasses() = default;
  /// `site_of_stack`: sites(trace).
  MemoryClasses(const Trace& trace, const MemorySeries& series, const BlockList& blocks,
                const std::vector<FrameId>& site_of_stack, MemoryBy by);

  /// As they are stacked, from the ground up: what is always there first, what comes and goes on top of it.
  [[nodiscard]] const std::vector<MemoryClass>& all() const { return classes_; }
  /// Of a block, a place in all().
  [[nodiscard]] std::size_t of(std::uint32_t block) const { return of_block_[block]; }
  [[nodiscard]] ClassStack at(const BlockList& blocks, std::size_t moment) const;
  /// Places in all(): what held most at the peak first, all other sites last.
  [[nodiscard]] std::vector<std::size_t> by_peak() const;

 private:
  void choose_sites(const Trace& trace, const MemorySeries& series, const BlockList& blocks,
                    const std::vector<FrameId>& site_of_stack, MemoryBy by);
  void choose_categories(const Trace& trace, const MemorySeries& series, const BlockList& blocks);
  void order_by_steadiness(const MemorySeries& series, const BlockList& blocks);
  void index_stacks(const MemorySeries& series, const BlockList& blocks);
  void apply(const BlockList& blocks, std::size_t moment, ClassStack& stack) const;

  std::vector<MemoryClass> classes_;
  std::vector<std::uint8_t> of_block_;
  std::vector<ClassStack> stacks_;  ///< before each stretch of 16 events
};

}  // namespace shard::view
