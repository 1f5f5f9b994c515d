// A file that is mapped, so that what was written is there after a SIGKILL, too. A fork has a file of its own.
#include "profiler/standin/counters.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "profiler/standin/handles.h"

namespace shard::standin {
namespace {

/// Where there is no file to map.
Counters nowhere{};

Counters* mapped() {
  const char* const folder = std::getenv("SHARDSCOPE_STANDIN_COUNTERS");
  if (folder == nullptr) return &nowhere;
  const std::string path = std::string(folder) + "/" + std::to_string(::getpid()) + kCountersSuffix;
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return &nowhere;
  void* place = MAP_FAILED;
  if (::ftruncate(file, sizeof(Counters)) == 0)
    place = ::mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  return place == MAP_FAILED ? &nowhere : static_cast<Counters*>(place);
}

template <class Change>
void change(const Change& change) {
  static auto* const mutex = new std::mutex;
  static Counters* counters = nullptr;
  static pid_t owner = 0;
  const std::lock_guard lock(*mutex);
  if (owner != ::getpid()) {
    counters = mapped();
    owner = ::getpid();
  }
  change(*counters);
}

}  // namespace

void count_device(std::size_t used_bytes, int card) {
  change([&](Counters& counters) {
    const auto used = static_cast<std::int64_t>(used_bytes);
    counters.device_bytes[card >= 0 && card < kMostCards ? card : 0] = used;
    if (used > counters.device_peak_bytes) counters.device_peak_bytes = used;
  });
}

void count_pinned(std::int64_t more_bytes) {
  change([&](Counters& counters) {
    counters.pinned_bytes += more_bytes;
    if (counters.pinned_bytes > counters.pinned_peak_bytes) counters.pinned_peak_bytes = counters.pinned_bytes;
  });
}

void count_read() {
  change([](Counters& counters) { ++counters.values_read; });
}

void count_unknown_workspace(Library of) {
  change([of](Counters& counters) { ++counters.unknown_workspaces[static_cast<int>(of)]; });
}

std::vector<Taken> taken_of(int card) {
  std::vector<Taken> all;
  const char* const folder = std::getenv("SHARDSCOPE_STANDIN_COUNTERS");
  DIR* const open = folder == nullptr || card < 0 || card >= kMostCards ? nullptr : ::opendir(folder);
  if (open == nullptr) return all;
  while (const dirent* const entry = ::readdir(open)) {
    char* end = nullptr;
    const auto process = static_cast<pid_t>(std::strtol(entry->d_name, &end, 10));
    if (end == entry->d_name || std::strcmp(end, kCountersSuffix) != 0) continue;
    if (::kill(process, 0) != 0 && errno == ESRCH) continue;
    Counters counters{};
    const int file = ::openat(::dirfd(open), entry->d_name, O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    const bool is_whole = ::read(file, &counters, sizeof(counters)) == static_cast<ssize_t>(sizeof(counters));
    ::close(file);
    if (is_whole && counters.device_bytes[card] > 0) all.push_back({process, counters.device_bytes[card]});
  }
  ::closedir(open);
  return all;
}

}  // namespace shard::standin

/// Called by the hook in the program (dryrun/python/steps.py): 0, behind an optimizer's step; 1, before backward.
STANDIN void shardscope_standin_count_step(int what) {
  shard::standin::change([what](shard::standin::Counters& counters) {
    ++(what == 0 ? counters.optimizer_steps : counters.backward_calls);
  });
}
