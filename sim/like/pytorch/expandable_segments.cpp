// Expandable segments of the caching allocator model: address space that pages are mapped into where they are needed.
#include <algorithm>
#include <cassert>

#include "sim/like/pytorch/caching_allocator.h"

namespace shard {
namespace {

/// A multiple of the pieces of both pools, so that a piece begins at a multiple of its size.
constexpr std::int64_t kSpaceMultiple = 20 << 20;

}  // namespace

Bytes CachingAllocator::growth_of(Slot slot) const {
  const Block& block = blocks_[slot];
  const bool grows = block.next != kNone && !blocks_[block.next].mapped;
  return block.bytes + (grows ? blocks_[block.next].bytes : Bytes{0});
}

CachingAllocator::Slot CachingAllocator::new_space(AllocatorStream stream, Pool pool) {
  Block contents;
  contents.address = next_space_;
  contents.bytes = round_up(options_.expandable_space, kSpaceMultiple);
  contents.stream = stream;
  contents.pool = pool;
  contents.expandable = true;
  contents.mapped = false;
  // Spaces never touch.
  next_space_ += static_cast<Address>(contents.bytes.count() + kSpaceMultiple);
  const Slot slot = new_block(contents);
  segments_.emplace(contents.address, slot);
  insert_free(slot);
  return slot;
}

// The lowest address of this stream and pool with so much room, mapped or not (find_expandable_block).
CachingAllocator::Slot CachingAllocator::find_space(Bytes bytes, AllocatorStream stream, Pool pool) {
  const auto usable = [&](Slot slot) { return slot != kNone && blocks_[slot].state == BlockState::free; };
  for (const auto& [address, slot] : unmapped_[{stream, pool}]) {
    const Slot begin = usable(blocks_[slot].previous) ? blocks_[slot].previous : slot;
    Bytes room{0};
    for (Slot s = begin; room < bytes && usable(s); s = blocks_[s].next) room += blocks_[s].bytes;
    if (room >= bytes) return begin;
  }
  return new_space(stream, pool);
}

std::optional<CachingAllocator::Slot> CachingAllocator::take_expandable(Bytes bytes, AllocatorStream stream,
                                                                        Pool pool) {
  Slot found = find_space(bytes, stream, pool);
  if (!blocks_[found].mapped) {
    const std::optional<Slot> mapped = map_pages(found, std::min(blocks_[found].bytes, bytes));
    if (!mapped) return std::nullopt;
    found = *mapped;
  }
  while (blocks_[found].bytes < bytes) {
    const Slot next = blocks_[found].next;
    const std::optional<Slot> mapped = map_pages(next, std::min(bytes - blocks_[found].bytes, blocks_[next].bytes));
    if (!mapped) return std::nullopt;
    found = *mapped;
  }
  erase_free(found);
  return found;
}

// Maps the beginning of an unmapped block, in whole pieces, and merges it with free neighbours: the block that holds it
// then, which is among the free ones. Nothing where the device has no such pages.
std::optional<CachingAllocator::Slot> CachingAllocator::map_pages(Slot slot, Bytes bytes) {
  const Bytes mapped = round_up(bytes, piece(blocks_[slot].pool).count());
  assert(!blocks_[slot].mapped && mapped <= blocks_[slot].bytes);
  if (!source_.take_pages(mapped)) return std::nullopt;
  source_.mapped(blocks_[slot].address, mapped, blocks_[slot].stream);
  erase_free(slot);
  if (mapped < blocks_[slot].bytes) insert_free(cut(slot, mapped));
  blocks_[slot].mapped = true;
  statistics_.reserved.current += mapped;
  statistics_.reserved.peak = std::max(statistics_.reserved.peak, statistics_.reserved.current);
  ++statistics_.segment_count;
  const Slot merged = merge_mapped_alike(slot);
  insert_free(merged);
  return merged;
}

// Gives back the whole pieces of a free block; what is left of it at either end stays free.
void CachingAllocator::unmap_pages(Slot slot) {
  const auto size = static_cast<Address>(piece(blocks_[slot].pool).count());
  const Address begin = (blocks_[slot].address + size - 1) / size * size;
  const Address end = (blocks_[slot].address + static_cast<Address>(blocks_[slot].bytes.count())) / size * size;
  if (begin >= end) return;
  erase_free(slot);
  if (const Address before = begin - blocks_[slot].address; before > 0) {
    const Slot rest = cut(slot, Bytes{static_cast<std::int64_t>(before)});
    insert_free(slot);
    slot = rest;
  }
  const Bytes unmapped{static_cast<std::int64_t>(end - begin)};
  if (unmapped < blocks_[slot].bytes) insert_free(cut(slot, unmapped));
  blocks_[slot].mapped = false;
  statistics_.reserved.current -= unmapped;
  source_.give_back_pages(unmapped);
  source_.unmapped(blocks_[slot].address, unmapped, blocks_[slot].stream);
  slot = merge_mapped_alike(slot);
  if (is_split(blocks_[slot])) {
    insert_free(slot);
    return;
  }
  segments_.erase(blocks_[slot].address);
  drop_block(slot);
}

void CachingAllocator::unmap_free_pages() {
  std::vector<Slot> slots;
  for (const Pool pool : {Pool::large, Pool::small})
    for (const auto& [key, blocks] : free_)
      if (key.second == pool)
        for (const auto& entry : blocks)
          if (blocks_[entry.second].expandable) slots.push_back(entry.second);
  for (const Slot slot : slots) unmap_pages(slot);
}

}  // namespace shard
