// Messages between ranks over connections of TCP: only what the other end has room for is sent.
#pragma once

#include <memory>
#include <vector>

#include "executor/comm/message_port.h"
#include "executor/comm/tcp_socket.h"

namespace shard::tcp {

/// `connections`: one for each rank, the own one not open. A receive that is posted is told to the sender (a grant),
/// which sends nothing without one: so what comes goes straight to its place, no message holds up another of the same
/// connection, and nothing is kept that nobody asked for. What a peer says that does not fit is that peer's end.
///
/// A connection that ends without a farewell is a rank that died. A rank that is stopped, or whose cable is cut, is one
/// that does not arrive.
[[nodiscard]] std::unique_ptr<MessagePort> make_port(Rank own, std::vector<Socket> connections);

}  // namespace shard::tcp
