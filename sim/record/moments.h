// What is live in each memory at the moments of a run that people ask for, from what its ops take and give back.
#pragma once

#include <array>
#include <cstdint>

#include "sim/ir/plan.h"
#include "sim/memory/arena.h"
#include "traces/base/ids.h"

namespace shard::record {

/// Live bytes, alignment included, by memory and category.
using LiveMemory = std::array<CategoryBytes, kMemoryCount>;

[[nodiscard]] Bytes live_in(const LiveMemory& live, Memory memory);
/// Less what belongs to the optimizer: master parameters and its state.
[[nodiscard]] LiveMemory without_optimizer(LiveMemory live);

/// Behind the last forward op of a step, behind its last backward op, and at its end; of another phase the end alone.
struct PhaseMoments {
  LiveMemory forward{};
  LiveMemory backward{};
  LiveMemory end{};
};

/// Told of each phase in turn, from creation on, and of its changes in plan order: of the plan's own lists (a
/// prediction) or of what a backend's books did (a measurement). The plan outlives it.
class MomentBook {
 public:
  explicit MomentBook(const plan::Plan& plan) : plan_(plan) {}

  void begin(Phase phase);
  /// `op` takes `buffer`, or gives it back.
  void change(const plan::Op& op, BufferId buffer, bool acquired);
  /// Valid until the next phase begins.
  const PhaseMoments& end();

 private:
  void pass(std::int64_t op);

  const plan::Plan& plan_;
  LiveMemory live_{};
  PhaseMoments moments_{};
  std::int64_t last_forward_ = -1;
  std::int64_t last_backward_ = -1;
  bool forward_passed_ = false;
  bool backward_passed_ = false;
};

/// What a plan says.
struct PlannedMoments {
  LiveMemory creation{};
  PhaseMoments first_step{};
  PhaseMoments steady_step{};
};
[[nodiscard]] PlannedMoments planned_moments(const plan::Plan& plan);

}  // namespace shard::record
