// What another framework would take: the answer to `simulate --like NAME[@VERSION]`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/like/predicted_snapshot.h"
#include "sim/like/replay.h"
#include "sim/like/rules.h"
#include "sim/model/graph.h"
#include "sim/strategy/strategy.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::like {

struct LikeOptions {
  std::optional<Bytes> device_capacity;  ///< none: no limit
  Rules rules{};
  std::optional<CachingAllocatorOptions> allocator;  ///< in place of the version's own, for experiments
};

/// Calls and bytes (full buffer per call) of one kind of collective in one phase.
struct CollectiveSum {
  Phase phase{};
  Collective kind{};
  std::int64_t count = 0;
  Bytes bytes{};
};

struct LikeResult {
  std::string framework;  ///< NAME@VERSION
  std::string model;
  plan::Strategy strategy;
  std::int32_t rank = 0;        ///< whose memory this is
  std::vector<Moment> moments;  ///< 1.8: "after the local model", "after DDP", "before step", "after step"
  AllocatorStatistics statistics;
  Bytes optimizer_state;                   ///< of this rank, as requested
  std::vector<CollectiveSum> collectives;  ///< creation, then the first step
  std::optional<Bytes> device_capacity;
  bool fits = true;                  ///< with the cache emptied when a segment is refused, as the framework does
  std::string steps = "first step";  ///< which are predicted, for people
  /// Of every event, where it was asked for; without a limit where it does not fit.
  std::shared_ptr<const PredictedSnapshot> snapshot{};
  [[nodiscard]] Bytes peak_allocated() const { return statistics.allocated.peak; }
  [[nodiscard]] Bytes peak_reserved() const { return statistics.reserved.peak; }
};

/// `name_at_version` is "pytorch@1.8", or "pytorch" for the newest version known; a patch number ("pytorch@1.8.1") is
/// accepted. Errors: usage (unknown name or version: the closest, and the list), contradiction (a strategy that the
/// framework does not have: check_pytorch_1_8). With a capacity that does not suffice the numbers are those without
/// limit, and `fits` is false.
[[nodiscard]] Result<LikeResult> simulate_like(std::string_view name_at_version, const model::Model& model,
                                               const plan::Strategy& strategy, const LikeOptions& options = {});

}  // namespace shard::like
