// Buckets by size.
#include "sim/like/eager/ddp_buckets.h"

#include <algorithm>
#include <cassert>

namespace shard::like {

std::vector<std::vector<std::size_t>> assign_buckets(std::span<const Bytes> tensors, std::span<const Bytes> limits) {
  assert(!limits.empty());
  std::vector<std::vector<std::size_t>> buckets;
  Bytes held{0};
  bool open = false;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!open) {
      buckets.emplace_back();
      held = Bytes{0};
    }
    buckets.back().push_back(i);
    held += tensors[i];
    open = held < limits[std::min(buckets.size(), limits.size()) - 1];
  }
  return buckets;
}

}  // namespace shard::like
