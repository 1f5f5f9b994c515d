// Replays a plan's acquires and releases through the model of another framework's allocator.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/ir/plan.h"
#include "sim/like/passes.h"
#include "sim/like/predicted_snapshot.h"
#include "sim/like/pytorch/caching_allocator.h"
#include "traces/base/result.h"

namespace shard::like {

/// A live block.
struct Block {
  std::string name;
  Category category{};
  Bytes requested;
  Bytes taken;  ///< the block's real size, which the framework's statistics count
};

/// What the framework prints at a mark. Maxima are those since the program began, or since the last mark where that one
/// says so.
struct Moment {
  std::string name;
  Bytes max_allocated;
  Bytes max_reserved;
  Bytes allocated;
  Bytes reserved{0};
  std::string op;             ///< that first reached max_allocated
  std::vector<Block> blocks;  ///< live then, in the order taken; `taken` sums to max_allocated
};

struct Replay {
  std::vector<Moment> moments;  ///< in the order of the marks
  AllocatorStatistics statistics;
};

/// Device buffers only, all on one stream. `plan` has its lifetimes; marks are in plan order. Fails with
/// Errc::does_not_fit when `capacity` is given and a block finds no room even with the cache emptied.
[[nodiscard]] Result<Replay> replay(const plan::Plan& plan, const std::vector<Mark>& marks,
                                    const CachingAllocatorOptions& options, std::optional<Bytes> capacity);

/// Segments come from `device`, which says where. `streams` says by buffer whose block it is; none: all are of one.
/// `snapshot` is told every event.
[[nodiscard]] Result<Replay> replay(const plan::Plan& plan, const std::vector<Mark>& marks,
                                    const CachingAllocatorOptions& options, SegmentSource& device,
                                    std::span<const std::uint8_t> streams = {}, SnapshotWriter* snapshot = nullptr);

}  // namespace shard::like
