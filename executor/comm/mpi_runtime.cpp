// Errors are returned, not fatal; waits poll with MPI_Test so that deadlines and dead peers are seen.
#include "executor/comm/mpi_runtime.h"

#include <array>
#include <utility>

#include "executor/comm/validate.h"
#include "traces/base/deadline.h"
#include "traces/base/run_place.h"

#if defined(__SANITIZE_ADDRESS__)
namespace {
bool mpi_was_started = false;
}
/// Asked by the leak checker at exit. Open MPI and PMIx leak by design, from modules that they have unloaded by then,
/// so that no suppression can name them: a process that started MPI is not checked; all other tests are.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() {
  return mpi_was_started ? 1 : 0;
}
#endif

namespace shard {

Error mpi_error(int code, std::string_view call, Rank rank) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return {Errc::retryable, std::string(call) + ": " + std::string(text.data(), static_cast<std::size_t>(length)),
          rank_name(rank), ""};
}

Result<std::shared_ptr<MpiRuntime>> MpiRuntime::start() {
#if defined(__SANITIZE_ADDRESS__)
  mpi_was_started = true;
#endif
  int provided = 0;
  const BlockingCall call("MPI_Init_thread");
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
    return Error{Errc::unavailable, "MPI did not start", "", "run with --ranks N, or under mpirun or srun"};
  if (provided < MPI_THREAD_SERIALIZED)
    return Error{Errc::unavailable, "this MPI cannot be called from other threads than the first", "",
                 "use an MPI built with thread support"};
  std::shared_ptr<MpiRuntime> runtime(new MpiRuntime);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_dup(MPI_COMM_WORLD, &runtime->world_);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &runtime->host_);
  MPI_Comm_set_errhandler(runtime->world_, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(runtime->host_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(runtime->world_, &runtime->rank_.value);
  MPI_Comm_size(runtime->world_, &runtime->size_);
  MPI_Comm_size(runtime->host_, &runtime->host_size_);
  return runtime;
}

MpiRuntime::~MpiRuntime() {
  if (abandoned_) return;
  const BlockingCall call("MPI_Finalize");
  MPI_Comm_free(&host_);
  MPI_Comm_free(&world_);
  MPI_Finalize();
}

Result<void> MpiRuntime::await(MPI_Request& request, const WaitCheck& check) {
  Backoff backoff;
  while (true) {
    int done = 0;
    if (const int code = MPI_Test(&request, &done, MPI_STATUS_IGNORE); code != MPI_SUCCESS)
      return mpi_error(code, "MPI_Test", rank_);
    if (done != 0) return {};
    if (Result<void> fine = check(); !fine) return fine;
    backoff.pause();
  }
}

Result<std::vector<std::string>> MpiRuntime::exchange(std::string_view own, const WaitCheck& check) {
  const auto world = static_cast<std::size_t>(size_);
  const int bytes = static_cast<int>(own.size());
  std::vector<int> sizes(world);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallgather(&bytes, 1, MPI_INT, sizes.data(), 1, MPI_INT, world_, &request);
  if (Result<void> done = await(request, check); !done) return done.error();
  std::vector<int> starts(world);
  for (std::size_t rank = 1; rank < world; ++rank) starts[rank] = starts[rank - 1] + sizes[rank - 1];
  std::string all(static_cast<std::size_t>(starts.back() + sizes.back()), '\0');
  MPI_Iallgatherv(own.data(), bytes, MPI_BYTE, all.data(), sizes.data(), starts.data(), MPI_BYTE, world_, &request);
  if (Result<void> done = await(request, check); !done) return done.error();
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < world; ++rank)
    texts.push_back(all.substr(static_cast<std::size_t>(starts[rank]), static_cast<std::size_t>(sizes[rank])));
  return texts;
}

WaitCheck until_deadline(std::chrono::milliseconds deadline, Rank rank, std::string what, WaitCheck next) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  return [=, what = std::move(what), next = std::move(next)]() -> Result<void> {
    if (Result<void> fine = next(); !fine) return fine;
    if (std::chrono::steady_clock::now() < end) return {};
    return Error{Errc::retryable, "not all ranks arrived at " + what + " within " + in_seconds(deadline),
                 rank_name(rank), kLookAtThatRank};
  };
}

}  // namespace shard
