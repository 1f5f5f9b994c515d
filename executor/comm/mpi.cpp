// Chooses the transport from where the ranks are.
#include "executor/comm/mpi.h"

#include "executor/comm/mpi_messages.h"
#include "executor/comm/mpi_runtime.h"
#include "executor/comm/mpi_shared.h"

namespace shard {
namespace {

/// Ranks of two transports would wait for each other until the deadline: they find out before they make either.
Result<void> same_transport(MpiRuntime& runtime, MpiTransport transport, const CommOptions& options) {
  const std::string own = to_string(transport);
  const auto nothing = []() -> Result<void> { return {}; };
  const auto all =
      runtime.exchange(own, until_deadline(options.deadline, runtime.rank(), "the choice of a transport", nothing));
  if (!all) return all.error();
  for (std::size_t rank = 1; rank < all->size(); ++rank)
    if ((*all)[rank] != all->front())
      return Error{Errc::contradiction,
                   "rank " + std::to_string(rank) + " was started with --transport " + (*all)[rank] +
                       ", rank 0 with --transport " + all->front(),
                   "--transport", "start all ranks with the same options"};
  return {};
}

}  // namespace

Result<std::unique_ptr<Communicator>> make_mpi(MpiTransport transport, CommOptions options) {
  Result<std::shared_ptr<MpiRuntime>> runtime = MpiRuntime::start();
  if (!runtime) return runtime.error();
  if (Result<void> alike = same_transport(**runtime, transport, options); !alike) return alike.error();
  const bool one_host = (*runtime)->on_one_host();
  if (transport == MpiTransport::shared && !one_host)
    return Error{Errc::contradiction, "shared memory is asked for, and the ranks are on several hosts", "",
                 "use the message transport"};
  if (transport == MpiTransport::messages || !one_host) return make_mpi_messages(*std::move(runtime), options);
  return make_mpi_shared(*std::move(runtime), options);
}

}  // namespace shard
