// MPI for one process: started once, ended once, and the few of its calls that every transport needs. Includes mpi.h.
#pragma once

#include <mpi.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "executor/comm/communicator.h"
#include "traces/base/result.h"

namespace shard {

/// Called while something is awaited: an error ends the wait.
using WaitCheck = std::function<Result<void>()>;

/// The text of an MPI error code as Errc::retryable: what MPI reports here is a lost peer or link.
[[nodiscard]] Error mpi_error(int code, std::string_view call, Rank rank);

/// Owns MPI_Init and MPI_Finalize. At most one per process.
class MpiRuntime {
 public:
  /// Starts MPI with MPI_THREAD_SERIALIZED. Errc::unavailable when MPI cannot give that.
  [[nodiscard]] static Result<std::shared_ptr<MpiRuntime>> start();
  MpiRuntime(const MpiRuntime&) = delete;
  MpiRuntime& operator=(const MpiRuntime&) = delete;
  /// MPI_Finalize, unless abandoned: it would wait for a dead peer.
  ~MpiRuntime();

  [[nodiscard]] Rank rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] MPI_Comm world() const { return world_; }
  /// Ranks of this host, in rank order.
  [[nodiscard]] MPI_Comm host() const { return host_; }
  [[nodiscard]] bool on_one_host() const { return host_size_ == size_; }
  void abandon() { abandoned_ = true; }
  [[nodiscard]] bool abandoned() const { return abandoned_; }

  /// Every rank's text. Polls with Backoff, asking `check` in between.
  [[nodiscard]] Result<std::vector<std::string>> exchange(std::string_view own, const WaitCheck& check);
  /// Waits for `request` as exchange does.
  [[nodiscard]] Result<void> await(MPI_Request& request, const WaitCheck& check);

 private:
  MpiRuntime() = default;

  MPI_Comm world_ = MPI_COMM_NULL;
  MPI_Comm host_ = MPI_COMM_NULL;
  Rank rank_{0};
  int size_ = 1;
  int host_size_ = 1;
  bool abandoned_ = false;
};

/// A check that fails with Errc::retryable once `deadline` has passed since it was made, and otherwise asks `next`.
[[nodiscard]] WaitCheck until_deadline(std::chrono::milliseconds deadline, Rank rank, std::string what, WaitCheck next);

}  // namespace shard
