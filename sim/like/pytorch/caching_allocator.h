// A pure model of PyTorch's CUDA caching allocator: same rules, same addresses, no device.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard {

/// A byte address in an imaginary or recorded device address space.
using Address = std::uint64_t;
/// The queue that a block belongs to, as a number (PyTorch: the cudaStream_t); blocks never change streams.
using AllocatorStream = std::uint64_t;

/// Which of a stream's two pools a block lives in.
enum class Pool : std::uint8_t { small, large };

[[nodiscard]] constexpr const char* to_string(Pool pool) {
  switch (pool) {
    case Pool::small: return "small";
    case Pool::large: return "large";
  }
  return "?";
}

/// Sizes that the rules turn on. Source: c10/cuda/CUDACachingAllocator.cpp, kMinBlockSize and its neighbours; the same
/// values from PyTorch 1.8 to now. Behind them what PYTORCH_CUDA_ALLOC_CONF sets (allocator_conf.h reads it). Not
/// modelled: private pools (CUDA graphs).
struct CachingAllocatorOptions {
  Bytes min_block{512};           ///< every request is rounded up to a multiple of this
  Bytes small_limit{1 << 20};     ///< rounded requests up to here come from the small pool
  Bytes small_segment{2 << 20};   ///< segment size of the small pool
  Bytes large_segment{20 << 20};  ///< segment size for large requests below `exact_from`
  Bytes exact_from{10 << 20};     ///< from here on a segment is the request rounded up to `exact_multiple`
  Bytes exact_multiple{2 << 20};
  Bytes large_split_remainder{1 << 20};  ///< a large block is split when more than this would be left

  /// max_split_size_mb: larger blocks are neither split nor given to smaller requests. None: no limit.
  std::optional<Bytes> max_split;
  /// max_non_split_rounding_mb: a request of `max_split` or more takes no cached block that is larger by this.
  Bytes max_non_split_rounding{20 << 20};
  /// roundup_power2_divisions: by the request's power of two from 1 MiB on, into how many steps it is divided; 0 and 1:
  /// requests are rounded to `min_block` as ever.
  std::array<std::int64_t, 16> power2_divisions{};
  /// expandable_segments: address space for all of the device, by stream and pool, into which pages are mapped.
  bool expandable = false;
  Bytes expandable_space{std::int64_t{1} << 40};  ///< of each (PyTorch: 9/8 of the device's memory)
  /// torch.cuda.set_per_process_memory_fraction: reserved bytes stay below.
  std::optional<Bytes> allowed;
  /// garbage_collection_threshold: with `allowed` only, unsplit blocks that were long unused are given back before a
  /// new segment is taken while more than this share of it is reserved. 0: off.
  double collect_from = 0;

  friend bool operator==(const CachingAllocatorOptions&, const CachingAllocatorOptions&) = default;
};

/// The rules of "pytorch" or "pytorch@VERSION" (1.8 or later). Fails with Errc::usage for anything else.
[[nodiscard]] Result<CachingAllocatorOptions> caching_allocator_options(std::string_view name);

/// Where segments come from: a recording's addresses, or a simulated device's. Stands for cudaMalloc and cudaFree.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  /// The address of `bytes` new bytes, disjoint from all segments in use, or nothing when the device is full.
  virtual std::optional<Address> take(Bytes bytes, AllocatorStream stream, Pool pool) = 0;
  virtual void give_back(Address address, Bytes bytes) = 0;
  /// Pages for an expandable segment (cuMemCreate), all or none; false when the device is full.
  virtual bool take_pages(Bytes bytes) = 0;
  virtual void give_back_pages(Bytes bytes) = 0;
  /// Said behind these two: where the pages lie. For who writes it down.
  virtual void mapped(Address /*address*/, Bytes /*bytes*/, AllocatorStream /*stream*/) {}
  virtual void unmapped(Address /*address*/, Bytes /*bytes*/, AllocatorStream /*stream*/) {}
};

/// A device that hands out ever-growing, 2 MiB aligned addresses until `capacity` bytes are in use.
class SimulatedDevice final : public SegmentSource {
 public:
  /// Without a capacity nothing is ever refused.
  explicit SimulatedDevice(std::optional<Bytes> capacity = std::nullopt) : capacity_(capacity) {}
  std::optional<Address> take(Bytes bytes, AllocatorStream stream, Pool pool) override;
  void give_back(Address address, Bytes bytes) override;
  bool take_pages(Bytes bytes) override;
  void give_back_pages(Bytes bytes) override { in_use_ -= bytes; }

 private:
  std::optional<Bytes> capacity_;
  Bytes in_use_{0};
  Address next_ = Address{1} << 32;  // any non-zero start: only the order of addresses matters
};

/// Names one allocated block of one CachingAllocator until it is freed; a later block never has the same name.
struct BlockId {
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;  ///< 0: no block
  friend constexpr auto operator<=>(BlockId, BlockId) = default;
};

/// A quantity now, and its highest value since the last reset_peak().
struct PeakBytes {
  Bytes current{0};
  Bytes peak{0};
};

/// Counted in whole blocks, as torch.cuda does: `allocated.peak` is max_memory_allocated(), `reserved.peak` is
/// max_memory_reserved(). `active` also holds blocks whose free waits for another stream.
struct AllocatorStatistics {
  PeakBytes allocated, active, reserved;
  std::int64_t allocation_count = 0;  ///< allocate() calls that succeeded
  std::int64_t segment_count = 0;     ///< segments taken from the source, or pieces mapped, given back ones included
};

enum class BlockState : std::uint8_t { free, allocated, pending_free };

/// A copy of one block, or of one segment with its blocks in address order.
struct BlockView {
  Address address = 0;
  Bytes bytes{0};      ///< real size
  Bytes requested{0};  ///< 0 for free blocks
  BlockState state = BlockState::free;
};
struct SegmentView {
  Address address = 0;
  Bytes bytes{0};
  AllocatorStream stream = 0;
  Pool pool = Pool::small;
  bool expandable = false;
  std::vector<BlockView> blocks;
};

/// A live block of an adopted segment.
struct AdoptedBlock {
  Address address = 0;
  Bytes bytes{0};
};

/// The allocator. Drive it with any acquire / release sequence: allocate() on acquire, free() on release.
///
/// A request is rounded up, looked for in its stream's pool (the smallest free block that holds it, the lowest address
/// among equals), else served from a new segment; a block much too large is split and its rest stays free; a freed
/// block merges with its free neighbours of the same segment. Segments go back only by empty_cache(), by garbage
/// collection, or when the source refuses a new one: then with `max_split` as many large blocks go back as the request
/// needs, then every wholly free segment, and the source is asked once more behind each.
/// Single-threaded. Time per call: logarithmic in the number of free blocks.
class CachingAllocator {
 public:
  /// Borrows `source`, which must outlive the allocator.
  explicit CachingAllocator(SegmentSource& source, CachingAllocatorOptions options = {});

  /// `requested` >= 0 bytes (0 takes the smallest block; PyTorch itself never asks for 0).
  /// Fails with Errc::does_not_fit when the source refuses twice; the cache is then empty, all else unchanged.
  [[nodiscard]] Result<BlockId> allocate(Bytes requested, AllocatorStream stream = 0);

  /// Gives an allocated or pending block back to its pool. Errc::internal if `block` is not one of these.
  Result<void> free(BlockId block);
  /// The first half of a free that waits for another stream (record_stream): the block no longer counts as allocated
  /// but stays taken until free(). Errc::internal if `block` is not allocated.
  Result<void> request_free(BlockId block);

  /// Gives all wholly free segments, and all free pages of expandable ones, back to the source; returns their bytes
  /// (torch.cuda.empty_cache).
  Bytes empty_cache();
  /// Gives one segment back; false, and nothing happens, unless a segment begins at `address` and is wholly free.
  bool release_segment(Address address);

  /// Starts from a state that already exists: one segment and its live blocks, in any order; what lies between is
  /// free. Returns the blocks' ids in the order given. Statistics count the segment as reserved and its blocks as
  /// allocated. Errc::malformed if blocks overlap or leave the segment, or the segment meets one already there.
  [[nodiscard]] Result<std::vector<BlockId>> adopt(Address address, Bytes bytes, AllocatorStream stream, Pool pool,
                                                   std::span<const AdoptedBlock> live);

  [[nodiscard]] Address address(BlockId block) const { return blocks_[slot_of(block)].address; }
  /// The real size, which statistics count: at least the rounded request.
  [[nodiscard]] Bytes bytes(BlockId block) const { return blocks_[slot_of(block)].bytes; }
  [[nodiscard]] const AllocatorStatistics& statistics() const { return statistics_; }
  /// Of the largest piece of the segments that no block takes; 0 where there is none.
  [[nodiscard]] Bytes largest_free() const;
  /// Peaks fall to the current values (torch.cuda.reset_peak_memory_stats).
  void reset_peak();
  /// All segments in address order, of expandable ones each range that is mapped.
  [[nodiscard]] std::vector<SegmentView> snapshot() const;

  [[nodiscard]] Bytes rounded(Bytes requested) const;
  [[nodiscard]] Pool pool_of(Bytes rounded_bytes) const;
  [[nodiscard]] Bytes segment_bytes(Bytes rounded_bytes) const;

 private:
  using Slot = std::uint32_t;
  static constexpr Slot kNone = UINT32_MAX;
  struct Block {
    Address address = 0;
    Bytes bytes{0}, requested{0};
    AllocatorStream stream = 0;
    Slot previous = kNone, next = kNone;  // neighbours within the segment
    std::uint32_t generation = 1;
    Pool pool = Pool::small;
    BlockState state = BlockState::free;
    bool in_use = false;  // the slot holds a block
    bool expandable = false;
    bool mapped = true;             // false: address space of an expandable segment, without memory
    std::int64_t looks_before = 0;  // looks for a free block until this one became free
  };
  // Best fit is the first free block at or after (rounded request, 0).
  using FreeBlocks = std::set<std::pair<std::pair<std::int64_t, Address>, Slot>>;

  Slot slot_of(BlockId block) const;
  bool names(BlockId block) const;
  Slot new_block(const Block& contents);
  void drop_block(Slot slot);
  FreeBlocks& free_blocks(const Block& block) { return free_[{block.stream, block.pool}]; }
  void insert_free(Slot slot);
  void erase_free(Slot slot);
  std::optional<Slot> take_cached(Bytes bytes, AllocatorStream stream, Pool pool);
  std::optional<Slot> take_segment(Bytes bytes, AllocatorStream stream, Pool pool);
  void split(Slot slot, Bytes bytes);
  void absorb_next(Slot slot);
  bool wholly_free(Slot first) const;
  bool is_split(const Block& block) const { return block.previous != kNone || block.next != kNone; }
  bool allows(Bytes more) const {
    return !options_.allowed || statistics_.reserved.current + more <= *options_.allowed;
  }
  Bytes divided(Bytes requested) const;
  std::optional<Slot> new_segment(Bytes bytes, AllocatorStream stream, Pool pool);
  bool release_large(Bytes bytes, AllocatorStream stream, Pool pool);
  void collect_garbage();

  // Expandable segments (expandable_segments.cpp). Unmapped blocks lie in unmapped_, not in free_.
  using Unmapped = std::set<std::pair<Address, Slot>>;
  [[nodiscard]] Bytes piece(Pool pool) const {
    return pool == Pool::small ? options_.small_segment : options_.large_segment;
  }
  Slot find_space(Bytes bytes, AllocatorStream stream, Pool pool);
  Slot new_space(AllocatorStream stream, Pool pool);
  std::optional<Slot> take_expandable(Bytes bytes, AllocatorStream stream, Pool pool);
  std::optional<Slot> map_pages(Slot slot, Bytes bytes);
  void unmap_pages(Slot slot);
  Slot merge_mapped_alike(Slot slot);
  Slot cut(Slot slot, Bytes bytes);
  void unmap_free_pages();
  [[nodiscard]] Bytes growth_of(Slot slot) const;

  SegmentSource& source_;
  CachingAllocatorOptions options_;
  AllocatorStatistics statistics_;
  std::vector<Block> blocks_;
  std::vector<Slot> unused_;
  std::map<std::pair<AllocatorStream, Pool>, FreeBlocks> free_;
  std::map<Address, Slot> segments_;  // first block of each segment
  std::map<std::pair<AllocatorStream, Pool>, Unmapped> unmapped_;
  Address next_space_ = Address{20 << 20} << 28;  // of expandable segments, above what devices hand out
  std::int64_t looks_ = 0;                        // for a free large block, counted for garbage collection
};

}  // namespace shard
