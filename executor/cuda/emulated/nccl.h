// An emulated NCCL: transfers between emulated devices of one process, a rank on a thread of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "executor/cuda/api/nccl.h"
#include "executor/cuda/emulated/emulated.h"

namespace shard::cuda {

namespace emulated {
class NcclWorld;
}

/// Where the ranks of a process find each other.
[[nodiscard]] std::shared_ptr<emulated::NcclWorld> make_nccl_world();

/// One rank's end, for its thread and its emulated device alone. A transfer runs on each member's stream when the
/// streams of all who take part have come to it; sums go in an order of NCCL's own, which is not that of
/// Communicator. Calls come to the stream only when is_ready() says so, which a `seed` delays now and then; those of a
/// communicator run in the order of their calls, on whichever streams.
///
/// Beside planted faults (calls named as emulated_nccl_calls() has them) these are errors (Errc::internal), told by
/// is_ready() to every rank: ranks whose calls differ in kind, root, count or type; a call while the last is not ready,
/// or after abort(); buffers that overlap as NCCL forbids. Sends that nobody receives, and calls that not all make,
/// hang; so does finish() while a graph lives that a transfer was captured in, and abort(),
/// which would wait for good, ends the process with a message. Within a group the calls of a
/// communicator are on one stream.
[[nodiscard]] std::unique_ptr<Nccl> make_emulated_nccl(std::shared_ptr<emulated::NcclWorld> world,
                                                       std::uint64_t seed = 1,
                                                       const std::optional<PlantedFault>& fault = std::nullopt);

/// Names of the calls at which faults can be planted: "nccl_" and the function of Nccl.
[[nodiscard]] std::span<const std::string_view> emulated_nccl_calls();

}  // namespace shard::cuda
