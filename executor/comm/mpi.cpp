// Chooses the transport from where the ranks are.
#include "executor/comm/mpi.h"

#include "executor/comm/mpi_messages.h"
#include "executor/comm/mpi_runtime.h"
#include "executor/comm/mpi_shared.h"

namespace shard {

Result<std::unique_ptr<Communicator>> make_mpi(MpiTransport transport, CommOptions options) {
  Result<std::shared_ptr<MpiRuntime>> runtime = MpiRuntime::start();
  if (!runtime) return runtime.error();
  const bool one_host = (*runtime)->on_one_host();
  if (transport == MpiTransport::shared && !one_host)
    return Error{Errc::contradiction, "shared memory is asked for, and the ranks are on several hosts", "",
                 "use the message transport"};
  if (transport == MpiTransport::messages || !one_host) return make_mpi_messages(*std::move(runtime), options);
  return make_mpi_shared(*std::move(runtime), options);
}

}  // namespace shard
