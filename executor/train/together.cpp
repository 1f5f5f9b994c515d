// A rank that works tells the others that it does, ten times a second.
#include "executor/train/together.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "traces/base/stop.h"

namespace shard::train {
namespace {

/// How long a rank works before it tells the others again that it does.
constexpr std::chrono::milliseconds kBeat{100};

constexpr char kBusy = 'b';
constexpr char kDone = 'd';
constexpr char kFailed = 'f';

/// An error as a text, for other ranks.
constexpr char kSeparator = '\x1f';
std::string packed(const Error& e) {
  return std::to_string(static_cast<int>(e.code)) + kSeparator + e.what + kSeparator + e.where + kSeparator + e.help;
}
Error unpacked(std::string_view text) {
  std::array<std::string, 4> parts;
  for (std::string& part : parts) {
    const std::size_t end = std::min(text.find(kSeparator), text.size());
    part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {static_cast<Errc>(std::stoi(parts[0])), parts[1], parts[2], parts[3]};
}

/// Of this thread alone: on Linux each has its own niceness.
void yield_processors() {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), 19);
}

[[nodiscard]] bool any_is_busy(const std::vector<std::string>& all) {
  return std::ranges::any_of(all, [](const std::string& each) { return each.front() == kBusy; });
}

}  // namespace

JointWork::JointWork(Communicator& communicator, std::function<Result<std::string>()> work, Kind kind)
    : communicator_(communicator),
      own_(std::async(std::launch::async,
                      [work = std::move(work), kind] {
                        if (kind == Kind::beside) yield_processors();
                        return work();
                      })),
      said_(1, kBusy) {}

Result<bool> JointWork::ask(std::chrono::milliseconds patience) {
  if (own_.valid() && own_.wait_for(patience) == std::future_status::ready) {
    const Result<std::string> done = own_.get();
    said_ = done ? kDone + *done : kFailed + packed(done.error());
  }
  {
    // A process that is being stopped removes the draft under its ranks' hands. What they say of that is no news: the
    // others are to see it go.
    const stop::NotNow not_stopped;
  }
  Result<std::vector<std::string>> all = communicator_.exchange(said_);
  if (!all) return all.error();
  all_ = std::move(*all);
  return !any_is_busy(all_);
}

Result<bool> JointWork::is_done() {
  return ask(std::chrono::milliseconds(0));
}

Result<std::vector<std::string>> JointWork::wait() {
  bool done = !all_.empty() && !any_is_busy(all_);
  while (!done) {
    const Result<bool> asked = ask(kBeat);
    if (!asked) return asked.error();
    done = *asked;
  }
  for (std::size_t rank = 0; rank < all_.size(); ++rank)
    if (const std::string& each = all_[rank]; each.front() == kFailed) {
      Error error = unpacked(std::string_view(each).substr(1));
      if (all_.size() > 1) error.what = "rank " + std::to_string(rank) + ": " + error.what;
      return error;
    }
  for (std::string& each : all_) each.erase(0, 1);
  return std::move(all_);
}

Result<std::vector<std::string>> together(Communicator& communicator,
                                          const std::function<Result<std::string>()>& work) {
  return JointWork(communicator, work, JointWork::Kind::awaited).wait();
}

}  // namespace shard::train
