// Rounding, best fit, splitting, merging and segments of the caching allocator model.
#include "sim/like/pytorch/caching_allocator.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <charconv>
#include <string>

namespace shard {

namespace {

void grow(PeakBytes& quantity, Bytes bytes) {
  quantity.current += bytes;
  quantity.peak = std::max(quantity.peak, quantity.current);
}

Error internal(std::string what) {
  return Error{Errc::internal, std::move(what), "caching allocator", "report this as a fault of the program"};
}

}  // namespace

Result<CachingAllocatorOptions> caching_allocator_options(std::string_view name) {
  constexpr std::string_view kName = "pytorch";
  const auto refuse = [&](std::string why) {
    return Error{Errc::usage, "allocator '" + std::string(name) + "' " + std::move(why), "",
                 "pytorch, or pytorch@VERSION from 1.8 on"};
  };
  if (name.substr(0, kName.size()) != kName) return refuse("is unknown");
  std::string_view version = name.substr(kName.size());
  if (version.empty()) return CachingAllocatorOptions{};
  if (version.front() != '@') return refuse("is unknown");
  version.remove_prefix(1);
  int major = 0;
  int minor = 0;
  const char* const end = version.data() + version.size();
  std::from_chars_result parsed = std::from_chars(version.data(), end, major);
  if (parsed.ec == std::errc{} && parsed.ptr != end && *parsed.ptr == '.') {
    parsed = std::from_chars(parsed.ptr + 1, end, minor);
  }
  if (parsed.ec != std::errc{} || (parsed.ptr != end && *parsed.ptr != '.')) return refuse("has no readable version");
  if (std::pair{major, minor} < std::pair{1, 8}) return refuse("is older than the rules known here");
  return CachingAllocatorOptions{};
}

std::optional<Address> SimulatedDevice::take(Bytes bytes, AllocatorStream, Pool) {
  constexpr std::int64_t kAlignment = 2 << 20;
  if (capacity_ && in_use_ + bytes > *capacity_) return std::nullopt;
  in_use_ += bytes;
  const Address address = next_;
  next_ += static_cast<Address>(round_up(bytes, kAlignment).count());
  return address;
}

void SimulatedDevice::give_back(Address, Bytes bytes) {
  in_use_ -= bytes;
}

bool SimulatedDevice::take_pages(Bytes bytes) {
  if (capacity_ && in_use_ + bytes > *capacity_) return false;
  in_use_ += bytes;
  return true;
}

CachingAllocator::CachingAllocator(SegmentSource& source, CachingAllocatorOptions options)
    : source_(source), options_(options) {}

Bytes CachingAllocator::rounded(Bytes requested) const {
  if (const Bytes steps = divided(requested); steps > Bytes{0}) return steps;
  return std::max(options_.min_block, round_up(requested, options_.min_block.count()));
}

// The request rounded up to a step of its power of two; 0 where it is not divided (roundup_power2_next_division).
Bytes CachingAllocator::divided(Bytes requested) const {
  constexpr int kFirst = 20;  // of 1 MiB
  if (requested <= Bytes{0}) return Bytes{0};
  const auto size = static_cast<std::uint64_t>(requested.count());
  const int power = static_cast<int>(std::bit_width(size)) - 1;
  const int last = static_cast<int>(options_.power2_divisions.size()) - 1;
  const auto divisions = static_cast<std::uint64_t>(
      options_.power2_divisions[static_cast<std::size_t>(std::clamp(power - kFirst, 0, last))]);
  if (divisions <= 1 || size <= static_cast<std::uint64_t>(options_.min_block.count()) * divisions) return Bytes{0};
  const std::uint64_t step = (std::uint64_t{1} << power) >> (std::bit_width(divisions) - 1);
  return Bytes{static_cast<std::int64_t>((size + step - 1) / step * step)};
}

Pool CachingAllocator::pool_of(Bytes rounded_bytes) const {
  return rounded_bytes <= options_.small_limit ? Pool::small : Pool::large;
}

Bytes CachingAllocator::segment_bytes(Bytes rounded_bytes) const {
  if (rounded_bytes <= options_.small_limit) return options_.small_segment;
  if (rounded_bytes < options_.exact_from) return options_.large_segment;
  return round_up(rounded_bytes, options_.exact_multiple.count());
}

Result<BlockId> CachingAllocator::allocate(Bytes requested, AllocatorStream stream) {
  assert(requested >= Bytes{0});
  const Bytes bytes = rounded(requested);
  const Pool pool = pool_of(bytes);
  std::optional<Slot> slot = take_cached(bytes, stream, pool);
  if (!slot) collect_garbage();
  if (!slot) slot = take_segment(bytes, stream, pool);
  if (!slot && release_large(bytes, stream, pool)) slot = take_segment(bytes, stream, pool);
  if (!slot) {
    empty_cache();
    slot = take_segment(bytes, stream, pool);
  }
  if (!slot) {
    return Error{Errc::does_not_fit,
                 "a segment of " + std::to_string(segment_bytes(bytes).count()) + " bytes does not fit beside " +
                     std::to_string(statistics_.reserved.current.count()) + " reserved bytes",
                 "caching allocator", "a device with more memory, or a smaller micro-batch"};
  }
  split(*slot, bytes);
  Block& block = blocks_[*slot];
  block.state = BlockState::allocated;
  block.requested = requested;
  grow(statistics_.allocated, block.bytes);
  grow(statistics_.active, block.bytes);
  ++statistics_.allocation_count;
  return BlockId{*slot, block.generation};
}

Result<void> CachingAllocator::request_free(BlockId id) {
  if (!names(id) || blocks_[id.slot].state != BlockState::allocated) {
    return internal("a free is requested for a block that is not allocated");
  }
  Block& block = blocks_[id.slot];
  block.state = BlockState::pending_free;
  statistics_.allocated.current -= block.bytes;
  return {};
}

Result<void> CachingAllocator::free(BlockId id) {
  if (!names(id)) return internal("a block is freed that is not allocated");
  Slot slot = id.slot;
  Block& block = blocks_[slot];
  if (block.state == BlockState::allocated) statistics_.allocated.current -= block.bytes;
  statistics_.active.current -= block.bytes;
  block.state = BlockState::free;
  block.requested = Bytes{0};
  ++block.generation;  // the name ends here, whatever becomes of the slot
  insert_free(merge_mapped_alike(slot));
  return {};
}

// try_merge_blocks: with what is free, and mapped or not like it. Nothing of the result is in a set of free blocks.
CachingAllocator::Slot CachingAllocator::merge_mapped_alike(Slot slot) {
  const auto alike = [&](Slot other) {
    return other != kNone && blocks_[other].state == BlockState::free && blocks_[other].mapped == blocks_[slot].mapped;
  };
  if (alike(blocks_[slot].next)) {
    erase_free(blocks_[slot].next);
    absorb_next(slot);
  }
  if (const Slot previous = blocks_[slot].previous; alike(previous)) {
    erase_free(previous);
    absorb_next(previous);
    return previous;
  }
  return slot;
}

Bytes CachingAllocator::empty_cache() {
  std::vector<Address> empty;
  for (const auto& [address, first] : segments_) {
    if (wholly_free(first)) empty.push_back(address);
  }
  const Bytes before = statistics_.reserved.current;
  for (const Address address : empty) release_segment(address);
  unmap_free_pages();
  return before - statistics_.reserved.current;
}

// release_available_cached_blocks: one block that is large enough, else several, the largest first.
bool CachingAllocator::release_large(Bytes bytes, AllocatorStream stream, Pool pool) {
  if (!options_.max_split) return false;
  const Bytes wanted = std::max(bytes, *options_.max_split);
  FreeBlocks& free = free_[{stream, pool}];
  // Expandable blocks lie in one segment with others; only whole segments can go back here.
  const auto release = [&](FreeBlocks::iterator at) {
    const Block& block = blocks_[at->second];
    return !block.expandable && release_segment(block.address);
  };
  if (const auto one = free.lower_bound({{wanted.count(), 0}, 0}); one != free.end()) return release(one);
  Bytes released{0};
  while (released < wanted && !free.empty()) {
    const auto largest = std::prev(free.end());
    const Bytes size = blocks_[largest->second].bytes;
    if (size < *options_.max_split || !release(largest)) break;
    released += size;
  }
  return released >= wanted;
}

// garbage_collect_cached_blocks: large unsplit blocks, those first that were passed over more often than on average.
void CachingAllocator::collect_garbage() {
  if (!options_.allowed || options_.collect_from <= 0) return;
  const auto limit =
      Bytes{static_cast<std::int64_t>(options_.collect_from * static_cast<double>(options_.allowed->count()))};
  if (statistics_.reserved.current <= limit) return;
  const Bytes target = statistics_.reserved.current - limit;
  Bytes reclaimed{0};
  for (bool freed = true; freed && reclaimed < target;) {
    freed = false;
    std::vector<Slot> candidates;
    double age = 0;
    for (const auto& [key, blocks] : free_)
      if (key.second == Pool::large)
        for (const auto& entry : blocks)
          if (const Block& block = blocks_[entry.second]; !is_split(block) && !block.expandable) {
            candidates.push_back(entry.second);
            age += static_cast<double>(looks_ - block.looks_before);
          }
    const double average = candidates.empty() ? 0 : age / static_cast<double>(candidates.size());
    for (const Slot slot : candidates) {
      if (static_cast<double>(looks_ - blocks_[slot].looks_before) < average) continue;
      reclaimed += blocks_[slot].bytes;
      freed = release_segment(blocks_[slot].address) || freed;
    }
  }
}

bool CachingAllocator::release_segment(Address address) {
  const auto segment = segments_.find(address);
  if (segment == segments_.end() || !wholly_free(segment->second)) return false;
  const Slot slot = segment->second;
  const Bytes bytes = blocks_[slot].bytes;
  erase_free(slot);
  drop_block(slot);
  segments_.erase(segment);
  statistics_.reserved.current -= bytes;
  source_.give_back(address, bytes);
  return true;
}

Result<std::vector<BlockId>> CachingAllocator::adopt(Address address, Bytes bytes, AllocatorStream stream, Pool pool,
                                                     std::span<const AdoptedBlock> live) {
  const auto malformed = [](std::string what, Address where) {
    return Error{Errc::malformed, std::move(what), "address " + std::to_string(where), ""};
  };
  const auto size = [](Bytes amount) { return static_cast<Address>(amount.count()); };
  if (bytes <= Bytes{0}) return malformed("a segment has no bytes", address);
  const Address end = address + size(bytes);
  const auto above = segments_.lower_bound(address);
  if (above != segments_.end() && above->first < end) return malformed("two segments overlap", above->first);
  if (above != segments_.begin()) {
    Address below_end = 0;
    for (Slot slot = std::prev(above)->second; slot != kNone; slot = blocks_[slot].next) {
      below_end = blocks_[slot].address + size(blocks_[slot].bytes);
    }
    if (below_end > address) return malformed("two segments overlap", address);
  }
  std::vector<std::size_t> order(live.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return live[a].address < live[b].address; });
  Address cursor = address;
  for (const std::size_t i : order) {
    const AdoptedBlock& block = live[i];
    if (block.bytes <= Bytes{0}) return malformed("a block has no bytes", block.address);
    if (block.address < address || block.address >= end || size(block.bytes) > end - block.address) {
      return malformed("a block leaves its segment", block.address);
    }
    if (block.address < cursor) return malformed("two blocks overlap", block.address);
    cursor = block.address + size(block.bytes);
  }

  std::vector<BlockId> ids(live.size());
  Slot last = kNone;
  const auto append = [&](Address from, Bytes length, BlockState state) {
    Block contents;
    contents.address = from;
    contents.bytes = length;
    contents.stream = stream;
    contents.pool = pool;
    contents.state = state;
    contents.requested = state == BlockState::free ? Bytes{0} : length;
    contents.previous = last;
    const Slot slot = new_block(contents);
    if (last == kNone) {
      segments_.emplace(address, slot);
    } else {
      blocks_[last].next = slot;
    }
    if (state == BlockState::free) insert_free(slot);
    return last = slot;
  };
  const auto gap = [](Address from, Address to) { return Bytes{static_cast<std::int64_t>(to - from)}; };
  cursor = address;
  for (const std::size_t i : order) {
    if (cursor < live[i].address) append(cursor, gap(cursor, live[i].address), BlockState::free);
    const Slot slot = append(live[i].address, live[i].bytes, BlockState::allocated);
    ids[i] = BlockId{slot, blocks_[slot].generation};
    cursor = live[i].address + size(live[i].bytes);
    grow(statistics_.allocated, live[i].bytes);
    grow(statistics_.active, live[i].bytes);
  }
  if (cursor < end) append(cursor, gap(cursor, end), BlockState::free);
  grow(statistics_.reserved, bytes);
  return ids;
}

Bytes CachingAllocator::largest_free() const {
  Bytes largest{0};
  for (const auto& [key, blocks] : free_)
    if (!blocks.empty()) largest = std::max(largest, Bytes{blocks.rbegin()->first.first});
  return largest;
}

void CachingAllocator::reset_peak() {
  for (PeakBytes* quantity : {&statistics_.allocated, &statistics_.active, &statistics_.reserved}) {
    quantity->peak = quantity->current;
  }
}

std::vector<SegmentView> CachingAllocator::snapshot() const {
  std::vector<SegmentView> views;
  views.reserve(segments_.size());
  for (const auto& [address, first] : segments_) {
    bool open = false;
    for (Slot slot = first; slot != kNone; slot = blocks_[slot].next) {
      const Block& block = blocks_[slot];
      if (block.mapped) {
        if (!open)
          views.push_back({.address = block.address,
                           .stream = block.stream,
                           .pool = block.pool,
                           .expandable = block.expandable,
                           .blocks = {}});
        views.back().bytes += block.bytes;
        views.back().blocks.push_back({block.address, block.bytes, block.requested, block.state});
      }
      open = block.mapped;
    }
  }
  return views;
}

bool CachingAllocator::names(BlockId id) const {
  return id.slot < blocks_.size() && blocks_[id.slot].in_use && blocks_[id.slot].generation == id.generation &&
         blocks_[id.slot].state != BlockState::free;
}

CachingAllocator::Slot CachingAllocator::slot_of(BlockId id) const {
  assert(names(id));
  return id.slot;
}

CachingAllocator::Slot CachingAllocator::new_block(const Block& contents) {
  Slot slot = 0;
  if (unused_.empty()) {
    slot = static_cast<Slot>(blocks_.size());
    blocks_.emplace_back();
  } else {
    slot = unused_.back();
    unused_.pop_back();
  }
  const std::uint32_t generation = blocks_[slot].generation;
  blocks_[slot] = contents;
  blocks_[slot].generation = generation;
  blocks_[slot].in_use = true;
  return slot;
}

void CachingAllocator::drop_block(Slot slot) {
  blocks_[slot].in_use = false;
  ++blocks_[slot].generation;
  unused_.push_back(slot);
}

void CachingAllocator::insert_free(Slot slot) {
  Block& block = blocks_[slot];
  block.looks_before = looks_;
  if (!block.mapped)
    unmapped_[{block.stream, block.pool}].insert({block.address, slot});
  else
    free_blocks(block).insert({{block.bytes.count(), block.address}, slot});
}

void CachingAllocator::erase_free(Slot slot) {
  const Block& block = blocks_[slot];
  if (!block.mapped)
    unmapped_[{block.stream, block.pool}].erase({block.address, slot});
  else
    free_blocks(block).erase({{block.bytes.count(), block.address}, slot});
}

std::optional<CachingAllocator::Slot> CachingAllocator::take_cached(Bytes bytes, AllocatorStream stream, Pool pool) {
  if (pool == Pool::large) ++looks_;
  const auto pool_blocks = free_.find({stream, pool});
  if (pool_blocks == free_.end()) return std::nullopt;
  auto best = pool_blocks->second.lower_bound({{bytes.count(), 0}, 0});
  if (best == pool_blocks->second.end()) return std::nullopt;
  // A block that can grow counts with what it can grow to.
  for (auto next = std::next(best); blocks_[best->second].expandable && next != pool_blocks->second.end() &&
                                    growth_of(next->second) < growth_of(best->second);
       ++next)
    best = next;
  const Slot slot = best->second;
  if (options_.max_split) {
    const Bytes found = blocks_[slot].bytes;
    if (bytes < *options_.max_split && found >= *options_.max_split) return std::nullopt;
    if (bytes >= *options_.max_split && found >= bytes + options_.max_non_split_rounding) return std::nullopt;
  }
  pool_blocks->second.erase(best);
  return slot;
}

std::optional<CachingAllocator::Slot> CachingAllocator::take_segment(Bytes bytes, AllocatorStream stream, Pool pool) {
  if (!allows(segment_bytes(bytes))) return std::nullopt;
  return options_.expandable ? take_expandable(bytes, stream, pool) : new_segment(bytes, stream, pool);
}

std::optional<CachingAllocator::Slot> CachingAllocator::new_segment(Bytes bytes, AllocatorStream stream, Pool pool) {
  const Bytes whole = segment_bytes(bytes);
  const std::optional<Address> address = source_.take(whole, stream, pool);
  if (!address) return std::nullopt;
  Block contents;
  contents.address = *address;
  contents.bytes = whole;
  contents.stream = stream;
  contents.pool = pool;
  const Slot slot = new_block(contents);
  const bool fresh = segments_.emplace(*address, slot).second;
  assert(fresh && "the source must not hand out an address twice");
  static_cast<void>(fresh);
  grow(statistics_.reserved, whole);
  ++statistics_.segment_count;
  return slot;
}

// Small blocks are split when a whole unit is left, large ones only when the rest is worth keeping (should_split).
void CachingAllocator::split(Slot slot, Bytes bytes) {
  const Bytes rest = blocks_[slot].bytes - bytes;
  const bool any_unit = blocks_[slot].pool == Pool::small || options_.expandable;
  const bool worthwhile =
      any_unit ? rest >= options_.min_block
               : rest > options_.large_split_remainder && (!options_.max_split || bytes < *options_.max_split);
  if (worthwhile) insert_free(cut(slot, bytes));
}

// Makes two blocks of one; returns the second, which is in no set of free blocks yet.
CachingAllocator::Slot CachingAllocator::cut(Slot slot, Bytes bytes) {
  Block contents = blocks_[slot];
  contents.address += static_cast<Address>(bytes.count());
  contents.bytes -= bytes;
  contents.previous = slot;
  const Slot second = new_block(contents);
  blocks_[slot].bytes = bytes;
  if (contents.next != kNone) blocks_[contents.next].previous = second;
  blocks_[slot].next = second;
  return second;
}

void CachingAllocator::absorb_next(Slot slot) {
  const Slot next = blocks_[slot].next;
  blocks_[slot].bytes += blocks_[next].bytes;
  blocks_[slot].next = blocks_[next].next;
  if (blocks_[slot].next != kNone) blocks_[blocks_[slot].next].previous = slot;
  drop_block(next);
}

bool CachingAllocator::wholly_free(Slot first) const {
  const Block& block = blocks_[first];
  return block.state == BlockState::free && block.next == kNone && !block.expandable;
}

}  // namespace shard
