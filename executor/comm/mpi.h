// Communicators of ranks that are processes under MPI. The one header of comm_mpi for other folders; hides mpi.h.
#pragma once

#include <memory>
#include <optional>

#include "executor/comm/communicator.h"
#include "traces/base/result.h"

namespace shard {

enum class MpiTransport : std::uint8_t {
  automatic,  ///< shared when all ranks are on one host, messages otherwise
  shared,     ///< arenas in an MPI-3 shared window; ranks read one another's memory
  messages,   ///< nonblocking messages, staged in the planned workspace
};

[[nodiscard]] constexpr const char* to_string(MpiTransport transport) {
  switch (transport) {
    case MpiTransport::automatic: return "automatic";
    case MpiTransport::shared: return "shared";
    case MpiTransport::messages: return "messages";
  }
  return "?";
}

/// Starts MPI in this process and makes the communicator of all its ranks; once per process, on all ranks. MPI ends
/// with the communicator: properly when all ranks get there without an error, else left to the process's end, since
/// MPI_Finalize would wait for dead peers. Errc::unavailable when MPI does not start, Errc::contradiction when `shared`
/// is asked for across hosts, Errc::does_not_fit when the shared-memory place is full.
[[nodiscard]] Result<std::unique_ptr<Communicator>> make_mpi(MpiTransport transport = MpiTransport::automatic,
                                                             CommOptions options = {});

}  // namespace shard
