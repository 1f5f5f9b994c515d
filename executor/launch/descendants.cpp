// The kernel lists the children of each thread.
#include "executor/launch/descendants.h"

#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace shard {
namespace {

using Clock = std::chrono::steady_clock;

/// For a process that takes signals to remove its files; one that is stopped does not.
constexpr std::chrono::milliseconds kToCleanUp{200};

void rest() {
  const timespec moment{0, 1'000'000};
  nanosleep(&moment, nullptr);
}

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

/// Not running any more; perhaps not collected by its parent.
bool is_over(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');
  return name_end == std::string::npos || text.compare(name_end, 3, ") Z") == 0;
}

/// Children before their parents, which are held meanwhile: a rank that sees its launcher go would complain, a launcher
/// that sees a rank go would start to clean up.
void end_children() {
  std::vector<pid_t> grandchildren;
  const std::vector<pid_t> children = children_of(getpid());
  for (const pid_t child : children) {
    kill(child, SIGSTOP);
    for (const pid_t grandchild : children_of(child)) grandchildren.push_back(grandchild);
  }
  for (const pid_t each : grandchildren) kill(each, SIGTERM);
  const Clock::time_point end = Clock::now() + kToCleanUp;
  while (!std::ranges::all_of(grandchildren, is_over) && Clock::now() < end) rest();
  for (const auto* all : {&std::as_const(grandchildren), &children})
    for (const pid_t each : *all) kill(each, SIGKILL);
}

template <class Each>
bool until_none_is_left(std::chrono::milliseconds limit, Each each) {
  const Clock::time_point end = Clock::now() + limit;
  while (collect()) {
    if (Clock::now() >= end) return false;
    each();
    rest();
  }
  return true;
}

}  // namespace

void end_descendants(std::chrono::milliseconds limit) {
  static_cast<void>(until_none_is_left(limit, end_children));
}

bool wait_for_descendants(std::chrono::milliseconds limit) {
  return until_none_is_left(limit, [] {});
}

}  // namespace shard
