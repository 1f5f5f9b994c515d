// Counts and breakpoints of next-fit.
#include "sim/chunk/next_fit.h"

#include <cassert>
#include <limits>
#include <utility>

namespace shard {

NextFit::NextFit(std::vector<std::int64_t> sizes, std::int64_t world_size, Oversize oversize)
    : sizes_(std::move(sizes)), world_size_(world_size), oversize_(oversize) {
  assert(!sizes_.empty() && world_size_ >= 1);
  prefix_.reserve(sizes_.size() + 1);
  prefix_.push_back(0);
  for (const std::int64_t size : sizes_) {
    assert(size >= 1);
    prefix_.push_back(prefix_.back() + size);
  }
}

NextFitTally NextFit::tally(std::int64_t chunk) const {
  NextFitTally tally;
  for_each_chunk(chunk, [&](std::size_t first, std::size_t, std::int64_t elems) {
    if (sizes_[first] > chunk) {
      ++tally.oversize_chunks;
      tally.oversize_elems += elems;
    } else {
      ++tally.uniform_chunks;
    }
  });
  return tally;
}

std::int64_t NextFit::next_change(std::int64_t chunk) const {
  std::int64_t next = std::numeric_limits<std::int64_t>::max();
  for_each_chunk(chunk, [&](std::size_t first, std::size_t last, std::int64_t) {
    if (sizes_[first] > chunk) {
      next = std::min(next, sizes_[first]);
    } else if (last < sizes_.size()) {
      next = std::min(next, sum(first, last + 1));
    }
  });
  return next;
}

}  // namespace shard
