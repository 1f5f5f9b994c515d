// How ranks that know only where rank 0 is find each other: a connection for every pair, each made sure of.
#pragma once

#include <chrono>
#include <vector>

#include "executor/comm/tcp.h"
#include "executor/comm/tcp_socket.h"
#include "traces/base/result.h"

namespace shard::tcp {

/// Rank 0 listens at its place, the others connect and say who they are; when all have come it tells each where the
/// others listen, and the higher ranks of each pair connect to the lower. Returns a connection for each rank, the own
/// one not open.
///
/// Whoever else connects is closed at once and does not disturb: who does not greet, is of another run, or says to be a
/// rank that has come already. A rank of this very run that has another plan or number of ranks ends it for all
/// (Errc::contradiction). At the deadline the ranks that have not come are named, with who was turned away.
[[nodiscard]] Result<std::vector<Socket>> meet(const TcpPlace& place, std::chrono::milliseconds deadline);

}  // namespace shard::tcp
