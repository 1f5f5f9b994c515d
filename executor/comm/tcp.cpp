// Meeting, and then messages.
#include "executor/comm/tcp.h"

#include <utility>
#include <vector>

#include "executor/comm/in_process.h"
#include "executor/comm/messages.h"
#include "executor/comm/tcp_port.h"
#include "executor/comm/tcp_rendezvous.h"
#include "executor/comm/validate.h"

namespace shard {

Result<std::unique_ptr<Communicator>> make_tcp(const TcpPlace& place, CommOptions options) {
  if (place.world == 1) return make_single(options);
  Result<std::vector<tcp::Socket>> met = tcp::meet(place, options.deadline);
  if (!met) {
    Error error = met.error();
    if (error.where.empty()) error.where = rank_name(place.rank);
    return error;
  }
  std::unique_ptr<Communicator> communicator = make_messages(tcp::make_port(place.rank, std::move(*met)), options);
  // Everyone has found everyone.
  if (const auto all = communicator->exchange({}); !all) return all.error();
  return communicator;
}

}  // namespace shard
