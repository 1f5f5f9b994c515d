// Shares as text.
#include "sim/strategy/placement.h"

#include <charconv>

namespace shard::plan {

std::string to_string(const Share& share) {
  if (share.on_device >= 1) return "device";
  if (share.on_device <= 0) return shard::to_string(share.rest);
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, share.on_device).ptr};
}

}  // namespace shard::plan
