// The kernel lists the children of each thread.
#include "executor/launch/descendants.h"

#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace shard {
namespace {

using Clock = std::chrono::steady_clock;

/// False when there is no child any more.
bool collect() {
  pid_t ended = 0;
  while ((ended = waitpid(-1, nullptr, WNOHANG)) > 0) {
  }
  return !(ended < 0 && errno == ECHILD);
}

std::vector<pid_t> children_of(pid_t process) {
  std::vector<pid_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator thread("/proc/" + std::to_string(process) + "/task", error), none;
       !error && thread != none; thread.increment(error)) {
    std::ifstream children(thread->path() / "children");
    for (pid_t child = 0; children >> child;) found.push_back(child);
  }
  return found;
}

/// Children before their parents, which are held meanwhile: a rank that sees its launcher go would complain, a launcher
/// that sees a rank go would start to clean up.
void kill_below(pid_t process) {
  for (const pid_t child : children_of(process)) {
    kill(child, SIGSTOP);
    kill_below(child);
    kill(child, SIGKILL);
  }
}

void kill_children() {
  kill_below(getpid());
}

template <class Each>
bool until_none_is_left(std::chrono::milliseconds limit, Each each) {
  const Clock::time_point end = Clock::now() + limit;
  while (collect()) {
    if (Clock::now() >= end) return false;
    each();
    const timespec moment{0, 1'000'000};
    nanosleep(&moment, nullptr);
  }
  return true;
}

}  // namespace

void end_descendants(std::chrono::milliseconds limit) {
  static_cast<void>(until_none_is_left(limit, kill_children));
}

bool wait_for_descendants(std::chrono::milliseconds limit) {
  return until_none_is_left(limit, [] {});
}

}  // namespace shard
