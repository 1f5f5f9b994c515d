// Notices that a process on this host is gone, whoever its parent is.
#pragma once

#include <poll.h>

#include <cstdint>
#include <span>
#include <vector>

#include "traces/base/ids.h"

namespace shard {

/// Watches the processes of ranks. A process that this one cannot see from the start (another namespace) is not
/// watched. Process ids that are used again are not mistaken where the kernel has pidfd_open (Linux 5.3).
class PeerWatch {
 public:
  PeerWatch() = default;
  /// processes[r] is the process id of rank r; 0 and the own process are not watched.
  explicit PeerWatch(std::span<const std::int32_t> processes);
  PeerWatch(PeerWatch&& other) noexcept;
  PeerWatch& operator=(PeerWatch&& other) noexcept;
  ~PeerWatch();

  /// Ranks whose process has ended, cleanly or not. One system call. Any thread may ask.
  [[nodiscard]] std::vector<Rank> ended() const;

 private:
  struct Watched {
    Rank rank;
    std::int32_t process = 0;
  };
  std::vector<Watched> watched_;
  std::vector<pollfd> descriptors_;  ///< beside watched_; descriptor -1: watch by signal 0
};

}  // namespace shard
