// Lines are gathered and written in large pieces; what a killed process had gathered is lost.
#include "profiler/standin/work.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <string>

#include "profiler/standin/capture.h"
#include "profiler/standin/handles.h"

namespace shard::standin {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18;

std::atomic<bool> keeps{false};

struct Lines {
  std::mutex mutex;
  std::string text;
  int file = -1;
  pid_t owner = 0;  ///< a fork has a file of its own, and keeps nothing until it is asked to
};
Lines& lines() {
  static auto* const lines = new Lines;
  return *lines;
}

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void write_out(Lines& all) {
  std::size_t done = 0;
  while (done < all.text.size()) {
    const ssize_t written = ::write(all.file, all.text.data() + done, all.text.size() - done);
    if (written <= 0) break;  // no room: the lines that are missing are those of the end
    done += static_cast<std::size_t>(written);
  }
  all.text.clear();
}

void append(std::string& text, std::int64_t number) {
  char digits[24];
  const auto [end, fault] = std::to_chars(digits, digits + sizeof(digits), number);
  text.append(digits, end);
}

/// `file`: opened where it was not, with the header.
bool open_file(Lines& all) {
  if (all.file >= 0 && all.owner == ::getpid()) return true;
  const char* const folder = std::getenv("SHARDSCOPE_STANDIN_WORK");
  if (folder == nullptr) return false;
  const std::string path = std::string(folder) + "/" + std::to_string(::getpid()) + kWorkSuffix;
  if (all.file >= 0) ::close(all.file);
  all.text.clear();
  all.owner = ::getpid();
  all.file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (all.file < 0) return false;
  all.text = std::string(kWorkHeader) + "\n";
  return true;
}

void keep_line(Work kind, unsigned long long capture, const void* stream, std::initializer_list<std::int64_t> numbers,
               const char* name) {
  thread_local const auto thread = static_cast<std::int64_t>(::syscall(SYS_gettid));
  Lines& all = lines();
  const std::lock_guard lock(all.mutex);
  if (all.file < 0 || all.owner != ::getpid()) return;
  all.text += static_cast<char>(kind);
  for (const std::int64_t number : {now_ns(), thread, static_cast<std::int64_t>(capture), number_of(stream)}) {
    all.text += '\t';
    append(all.text, number);
  }
  for (const std::int64_t number : numbers) {
    all.text += '\t';
    append(all.text, number);
  }
  if (name != nullptr) {
    all.text += '\t';
    all.text += name;
  }
  all.text += '\n';
  if (all.text.size() >= kPiece) write_out(all);
}

}  // namespace

bool keeps_work() {
  return keeps.load(std::memory_order_relaxed);
}

void keep_work(Work kind, const void* stream, std::initializer_list<std::int64_t> numbers, const char* name) {
  if (keeps_work()) keep_line(kind, capture_of(stream), stream, numbers, name);
}

}  // namespace shard::standin

using namespace shard::standin;

/// Called by the hook in the program (dryrun/python/worktime.py): lines are kept from now on (1), or no more (0).
STANDIN void shardscope_standin_keep_work(int keep) {
  Lines& all = lines();
  const std::lock_guard lock(all.mutex);
  const bool open = keep != 0 ? open_file(all) : all.file >= 0;
  if (keep == 0 && open && all.owner == ::getpid()) write_out(all);
  keeps.store(keep != 0 && open);
}
/// An optimizer's step, the first of which is 1, is done.
STANDIN void shardscope_standin_work_step(int step) {
  keep_work(Work::step, nullptr, {step});
}
