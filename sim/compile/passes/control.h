// Loss scale, norm of the gradient, overflow: the ops by which all ranks decide alike how, and whether, to step.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/compile/draft.h"

namespace shard::plan {

/// What one rank steps, in one op.
struct SteppedGradient {
  std::string_view name{};
  std::int32_t flat = -1;
  std::int64_t first = 0;        ///< elements of the flat, on rank 0
  std::int64_t rank_stride = 0;  ///< elements
  std::int64_t elems = 0;        ///< 0: not on this rank
  Operand gradient{};
};

/// For strategies that are controlled (Strategy::is_controlled). Call begin() once the step's ops end with the last
/// reduction and begin with load_scalars, then decide() before the first step op.
///
///   load_scalars   also writes the knobs
///   begin_control  behind it: facts are empty, the loss scale is that of this step
///   loss backward  reads the loss scale
///   inspect        of a unit's local gradient before it is reduced (one rank: when it is complete), with a scaler
///   inspect        of every gradient that this rank steps
///   all_gather     the facts of the ranks that step different elements; with a scaler of all data ranks, as each of
///                  them may be the one that overflowed
///   decide         writes plan.control
class Control {
 public:
  explicit Control(Draft& plan) : plan_(plan) {}
  void begin(std::vector<Op>& ops);
  void decide(std::vector<Op>& ops, const std::vector<SteppedGradient>& stepped);

 private:
  void scale_losses(std::vector<Op>& ops) const;
  [[nodiscard]] std::vector<Op> with_local_inspections(std::vector<Op> ops) const;
  [[nodiscard]] Op inspect_local(std::int32_t flat, const Operand& gradient, std::int32_t micro_step) const;
  [[nodiscard]] Operand facts_of(bool local) const;

  Draft& plan_;
  BufferId knobs_{};
  BufferId facts_{};
  BufferId scaler_{};      ///< with a loss scaler
  BufferId loss_scale_{};  ///< with a loss scaler
};

}  // namespace shard::plan
