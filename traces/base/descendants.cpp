// Every process says in /proc whose child it is.
#include "traces/base/descendants.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>

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

/// A process that runs, as /proc/PID/stat says; none for what is over, perhaps not yet collected by its parent.
std::optional<Descendant> running(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // names have blanks and brackets
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream rest(text.substr(name_end + 1));
  char state = 'X';
  Descendant found{.process = process};
  rest >> state >> found.parent >> found.group;
  return state == 'Z' || state == 'X' ? std::nullopt : std::optional(found);
}

bool is_over(pid_t process) {
  return !running(process).has_value();
}

/// Children before their parents, which are held meanwhile: a rank that sees its launcher go would complain, a launcher
/// that sees a rank go would start to clean up.
void end_children() {
  const std::vector<Descendant> all = descendants_of(getpid());
  std::vector<pid_t> below;
  for (const Descendant& each : all) {
    if (each.parent == getpid())
      kill(each.process, SIGSTOP);
    else
      below.push_back(each.process);
  }
  for (const pid_t each : below) kill(each, SIGTERM);
  const Clock::time_point end = Clock::now() + kToCleanUp;
  while (!std::ranges::all_of(below, [](pid_t each) { return ignores(each, SIGTERM); }) && Clock::now() < end) rest();
  for (const pid_t each : below) kill(each, SIGKILL);
  for (const Descendant& each : all)
    if (each.parent == getpid()) kill(each.process, SIGKILL);
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

void adopt_descendants() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

std::vector<Descendant> descendants_of(pid_t process) {
  std::multimap<pid_t, Descendant> by_parent;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), none; !error && entry != none;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (const auto found = running(static_cast<pid_t>(std::stol(name)))) by_parent.emplace(found->parent, *found);
  }
  std::vector<Descendant> all;
  const auto add_children_of = [&](pid_t parent) {
    const auto [begin, end] = by_parent.equal_range(parent);
    for (auto each = begin; each != end; ++each) all.push_back(each->second);
  };
  add_children_of(process);
  for (std::size_t i = 0; i < all.size(); ++i) add_children_of(all[i].process);
  return all;
}

bool ignores(pid_t process, int signal) {
  if (is_over(process)) return true;
  std::ifstream file("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("SigIgn:")) continue;
    return (std::strtoull(line.c_str() + 7, nullptr, 16) >> (signal - 1) & 1) != 0;
  }
  return true;
}

void end_descendants(std::chrono::milliseconds limit) {
  static_cast<void>(until_none_is_left(limit, end_children));
}

bool wait_for_descendants(std::chrono::milliseconds limit) {
  return until_none_is_left(limit, [] {});
}

}  // namespace shard
