// The one loop over a plan, and the contract of those who interpret it: simulator, CPU, CUDA.
#pragma once

#include <concepts>
#include <span>

#include "sim/ir/plan.h"
#include "traces/base/result.h"

namespace shard::plan {

/// What an interpreter provides. Each call returns at once or with an Error; errors end the run.
///   begin_phase, end_phase   the latter returns when every op of the phase has finished
///   acquire, release         memory in plan order, before and after the op is issued
///   issue                    starts the op; its dependencies have been issued before it and the backend waits for them
///   poll                     progress of what is in flight; notices a dead or late peer
template <class B>
concept Backend = requires(B& backend, const PhaseOps& phase, const Op& op, std::span<const BufferId> buffers) {
  { backend.begin_phase(phase) } -> std::same_as<Result<void>>;
  { backend.acquire(op, buffers) } -> std::same_as<Result<void>>;
  { backend.issue(op) } -> std::same_as<Result<void>>;
  { backend.release(op, buffers) } -> std::same_as<Result<void>>;
  { backend.poll() } -> std::same_as<Result<void>>;
  { backend.end_phase(phase) } -> std::same_as<Result<void>>;
};

/// Runs one phase. The only loop: no interpreter can invent its own order.
template <Backend B>
[[nodiscard]] Result<void> run(const PhaseOps& phase, B& backend) {
  if (Result<void> r = backend.begin_phase(phase); !r) return r;
  for (const Op& op : phase.ops) {
    if (Result<void> r = backend.acquire(op, op.acquire); !r) return r;
    if (Result<void> r = backend.issue(op); !r) return r;
    if (Result<void> r = backend.release(op, op.release); !r) return r;
    if (Result<void> r = backend.poll(); !r) return r;
  }
  return backend.end_phase(phase);
}

}  // namespace shard::plan
