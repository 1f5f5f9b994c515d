// The calls of one step of a dry run, each with the operator that made it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "profiler/steptime/work_list.h"
#include "sim/price/kernel_call.h"
#include "traces/import/kineto_program.h"

namespace shard::steptime {

/// An item of the work, with what PyTorch's profiler says of it.
struct Call {
  std::size_t item = 0;               ///< of WorkList::items
  std::int32_t operator_index = -1;   ///< the innermost around it that has tensors; -1: none
  std::int32_t group = -1;            ///< the innermost around it that says a collective's ranks; -1: none
  std::int32_t operators_before = 0;  ///< that its thread began since its last call, one within another
  std::int32_t outermost = -1;        ///< the outermost around it; -1: none
};

struct StepCalls {
  std::int64_t step = 0;  ///< which of the run, from 1 on; 0: the run has none, and this is all of it
  std::vector<Call> calls;
  std::vector<Call> captured;  ///< of the whole run: what graphs hold, which the step may launch
};

/// Of that step, or of the one that most operators began in; without steps everything. `operators` may be of earlier
/// ones too, which captured graphs.
[[nodiscard]] StepCalls step_calls(const WorkList& work, const import::KinetoProgram& operators, std::int64_t step = 0);

}  // namespace shard::steptime
