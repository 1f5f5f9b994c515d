// What another framework would take: the answer to `simulate --like NAME[@VERSION]`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/verdict.h"
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

/// Random programs under the rules of eager PyTorch were within 0.7 % of their dry runs (docs/eager.md).
inline constexpr double kEagerUncertainty = 0.01;

/// Whose memory it is, and what it is. moments of 1.8: "after the local model", "after DDP", "before step", "after
/// step".
struct LikeResult : MemoryAnswer {
  std::string framework{};  ///< NAME@VERSION
  std::string model{};
  plan::Strategy strategy{};
  std::int32_t rank = 0;             ///< whose memory this is
  std::string steps = "first step";  ///< which are predicted, for people
  cluster::ByteRange outside{};      ///< of the allocator: context and libraries
  double uncertainty = 0;            ///< how far these rules' peaks were off where they were compared, as a share
  [[nodiscard]] cluster::Room room() const {
    return {.capacity = device_capacity, .outside = outside, .uncertainty = uncertainty};
  }
  /// The device that it was predicted for, of which at_most() was left to the allocator.
  void put_into(const cluster::Room& device) {
    device_capacity = device.capacity;
    outside = device.outside;
    uncertainty = device.uncertainty;
  }
  [[nodiscard]] cluster::Verdict verdict() const {
    return fits ? cluster::verdict_of(peak_reserved(), room()) : cluster::Verdict::does_not_fit;
  }
};

/// `name_at_version` is "pytorch@1.8", or "pytorch" for the newest version known; a patch number ("pytorch@1.8.1") is
/// accepted. Errors: usage (unknown name or version: the closest, and the list), contradiction (a strategy that the
/// framework does not have: check_pytorch_1_8). With a capacity that does not suffice the numbers are those without
/// limit, and `fits` is false.
[[nodiscard]] Result<LikeResult> simulate_like(std::string_view name_at_version, const model::Model& model,
                                               const plan::Strategy& strategy, const LikeOptions& options = {});

}  // namespace shard::like
