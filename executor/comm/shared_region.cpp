// The abort word: reason first, then the claim, so that whoever sees the claim reads a whole reason.
#include "executor/comm/shared_region.h"

#include <algorithm>
#include <cstring>

namespace shard {

void publish_abort(const SharedRegion& region, Rank rank, std::string_view reason) {
  std::atomic<std::int32_t>& claim = region.heads[0]->aborted_by;
  if (claim.load(std::memory_order_acquire) != 0) return;
  RankHead& own = *region.heads[static_cast<std::size_t>(rank.value)];
  const std::size_t bytes = std::min(reason.size(), sizeof own.reason - 1);
  std::memcpy(own.reason, reason.data(), bytes);
  own.reason[bytes] = '\0';
  std::int32_t none = 0;
  claim.compare_exchange_strong(none, rank.value + 1, std::memory_order_acq_rel);
}

}  // namespace shard
