// The communicator of ranks that a launcher started without MPI: over TCP, from where rank 0 listens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "executor/comm/communicator.h"
#include "traces/base/result.h"

namespace shard {

/// Where a rank finds the others; alike on all but for the rank.
struct TcpPlace {
  Rank rank{0};
  int world = 1;
  std::string address;     ///< of rank 0's machine: a name or numbers
  std::uint16_t port = 0;  ///< where rank 0 listens
  std::string job;         ///< what the launcher calls this run; may be empty
  std::string plan;        ///< hash of the plan; empty where ranks compare what they know once they have met
};

/// Joins the other ranks and makes their communicator "tcp": collectives out of messages (messages.h). Blocking, with
/// the deadline. Ranks of other hosts must reach rank 0 at its port and each other at ports that the system chooses.
///
/// Errc::retryable naming ranks that did not come, Errc::unavailable where the port is taken, the address is not known
/// or something else listens there, Errc::contradiction where ranks were started with different plans or numbers of
/// ranks. Nothing that comes from elsewhere disturbs: see tcp_rendezvous.h.
[[nodiscard]] Result<std::unique_ptr<Communicator>> make_tcp(const TcpPlace& place, CommOptions options = {});

}  // namespace shard
