// The emulated device: what the GPU backend asks of CUDA, answered on the host.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "executor/cuda/api/api.h"
#include "executor/cuda/emulated/activity.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::cuda {

/// A fault of the device, at a call of the interface.
struct PlantedFault {
  enum class Kind {
    error,  ///< the call fails, and so does every call after it
    hang,   ///< the call succeeds; what it enqueues, or all work where it enqueues nothing, never finishes
  };
  std::string call;             ///< as the function is called: "copy", "is_done"; a kernel's is "launch"
  std::int64_t occurrence = 1;  ///< the first call is 1
  Kind kind = Kind::error;
};

struct EmulatedOptions {
  Bytes capacity{std::int64_t{1} << 30};  ///< of the device's memory
  std::int32_t compute_capability = 0;    ///< of a card whose limits it has; 0: those of none
  std::uint64_t seed = 1;                 ///< of every order that CUDA leaves open
  bool as_enqueued = false;               ///< streams in the one order of their calls instead, graphs as captured
  int work_per_question = 64;             ///< pieces of work that one is_done() runs at most
  bool check_order = true;                ///< conflicting accesses that nothing orders are errors
  bool poison_results = true;             ///< what an op declares to write holds NaN when its first kernel begins
  std::optional<PlantedFault> fault{};
  int devices = 1;                       ///< that a machine has; each is made by itself
  std::uint32_t number = 0;              ///< of this one
  EmulatedActivity* activity = nullptr;  ///< told what the device does, and outlives it; null: nobody
};

/// A device of its own on each call. Nothing runs but while is_done() asks, on the thread that asks. Beside what CUDA
/// refuses, these are errors (Errc::internal), told by the next call or end_op, and sticky: two accesses to the same
/// bytes, one of them writing, without an event or stream to order them; a pointer of the host in a kernel, or one to
/// memory that is not allocated; what an op touches beyond the ranges it declared; a write next to an allocation. A
/// device pointer followed on the host faults. Misuse of barriers and shuffles, and freeing behind a planted hang,
/// which waits for good, abort with a message.
[[nodiscard]] Result<std::unique_ptr<Api>> make_emulated(const EmulatedOptions& options);

/// Names of the calls at which faults can be planted.
[[nodiscard]] std::span<const std::string_view> emulated_calls();

}  // namespace shard::cuda
