// pidfd where the kernel has it (a zombie counts as ended there), kill(pid, 0) elsewhere.
#include "executor/comm/peer_watch.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <utility>

namespace shard {
namespace {

int open_process(std::int32_t process) {
#ifdef SYS_pidfd_open
  return static_cast<int>(syscall(SYS_pidfd_open, process, 0));
#else
  (void)process;
  return -1;
#endif
}

bool is_gone(std::int32_t process) {
  return kill(process, 0) != 0 && errno == ESRCH;
}

}  // namespace

PeerWatch::PeerWatch(std::span<const std::int32_t> processes) {
  for (std::size_t rank = 0; rank < processes.size(); ++rank) {
    const std::int32_t process = processes[rank];
    if (process <= 0 || process == getpid() || is_gone(process)) continue;
    watched_.push_back({Rank{static_cast<std::int32_t>(rank)}, process});
    descriptors_.push_back({open_process(process), POLLIN, 0});
  }
}

PeerWatch::PeerWatch(PeerWatch&& other) noexcept
    : watched_(std::exchange(other.watched_, {})), descriptors_(std::exchange(other.descriptors_, {})) {}

PeerWatch& PeerWatch::operator=(PeerWatch&& other) noexcept {
  std::swap(watched_, other.watched_);
  std::swap(descriptors_, other.descriptors_);
  return *this;
}

PeerWatch::~PeerWatch() {
  for (const pollfd& descriptor : descriptors_)
    if (descriptor.fd >= 0) close(descriptor.fd);
}

std::vector<Rank> PeerWatch::ended() const {
  if (watched_.empty()) return {};
  std::vector<pollfd> descriptors = descriptors_;
  const int ready = ::poll(descriptors.data(), descriptors.size(), 0);  // skips descriptor -1
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    const bool gone =
        descriptors[i].fd >= 0 ? ready > 0 && (descriptors[i].revents & POLLIN) != 0 : is_gone(watched_[i].process);
    if (gone) ranks.push_back(watched_[i].rank);
  }
  return ranks;
}

}  // namespace shard
