// What another framework would take: the answer to `simulate --like NAME[@VERSION]`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/like/replay.h"
#include "sim/like/rules.h"
#include "sim/model/graph.h"
#include "sim/step/step_time.h"
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
inline constexpr std::int32_t kEagerUncertaintyPpm = 10'000;

/// Whose memory it is, and what it is. moments of 1.8: "after the local model", "after DDP", "before step", "after
/// step".
struct LikeResult : MemoryAnswer {
  std::string framework{};  ///< NAME@VERSION
  std::string model{};
  plan::Strategy strategy{};
  std::string steps = "first step";          ///< which are predicted, for people
  std::shared_ptr<const Program> program{};  ///< what was replayed
  std::optional<step::StepTime> step{};      ///< none: `no_step` says why
  std::string no_step{};                     ///< empty too: of this framework's kernels nothing is known
};

/// `name_at_version` is "pytorch@1.8", or "pytorch" for the newest version known; a patch number ("pytorch@1.8.1") is
/// accepted. Errors: usage (unknown name or version: the closest, and the list), contradiction (a strategy that the
/// framework does not have: check_pytorch_1_8). With a capacity that does not suffice the numbers are those without
/// limit, and `fits` is false.
[[nodiscard]] Result<LikeResult> simulate_like(std::string_view name_at_version, const model::Model& model,
                                               const plan::Strategy& strategy, const LikeOptions& options = {});

}  // namespace shard::like
