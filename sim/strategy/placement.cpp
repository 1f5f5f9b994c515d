// Shares as text.
#include "sim/strategy/placement.h"

#include "traces/base/numbers.h"

namespace shard::plan {

std::string to_string(const Share& share) {
  if (share.on_device >= 1) return "device";
  if (share.on_device <= 0) return shard::to_string(share.rest);
  return shortest(share.on_device);
}

}  // namespace shard::plan
