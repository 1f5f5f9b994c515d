// One loop over orders, children that ended, and the moments when patience ends.
#include "profiler/process/keeper.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "traces/base/descendants.h"

namespace shard::profiler {
namespace {

using Clock = std::chrono::steady_clock;

/// For all that is left when nobody waits for an answer any more.
constexpr std::chrono::seconds kAlone{1};
/// A program that starts may heed a signal for a moment, and then ignore it.
constexpr std::chrono::seconds kSettled{5};
/// Between looks at what was told to end, and at what runs.
constexpr int kHuntMilliseconds = 10, kGlanceMilliseconds = 250;

class Keeper {
 public:
  explicit Keeper(int line) : line_(line) {
    sigemptyset(&blocked_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD}) sigaddset(&blocked_, signal);
    ::sigprocmask(SIG_BLOCK, &blocked_, nullptr);
    sigset_t read{};
    sigemptyset(&read);
    for (const int signal : {SIGUSR1, SIGCHLD}) sigaddset(&read, signal);
    signals_ = ::signalfd(-1, &read, SFD_CLOEXEC | SFD_NONBLOCK);
  }

  Report run(const std::function<int()>& start) {
    program_ = start();
    if (program_ < 0) return {.not_started = -program_};
    while (collect()) {
      insist();
      wait();
    }
    return report_;
  }

 private:
  /// False when there is no child any more.
  bool collect() {
    int status = 0;
    rusage used{};
    pid_t ended = 0;
    while ((ended = ::wait4(-1, &status, WNOHANG, &used)) > 0) {
      report_.peak_resident_bytes = std::max(report_.peak_resident_bytes, std::int64_t{used.ru_maxrss} << 10);
      if (ended != program_) continue;
      report_.status = status;
      ended_at_ = Clock::now();
    }
    return !(ended < 0 && errno == ECHILD);
  }

  void insist() {
    const Clock::time_point now = Clock::now();
    const std::vector<Descendant> all = descendants_of(::getpid());
    if (asked_ == 0) note_who_heeds(all);
    if (ended_at_ && !told_rest_ && now >= (asked_ != 0 ? *ended_at_ : *ended_at_ + kToLeave)) {
      told_rest_ = true;
      if (!kill_at_) kill_at_ = now + kGrace;
      return tell(all, SIGTERM);
    }
    if (asked_ == 0 || all.empty()) return;
    if (asked_ == SIGKILL || (kill_at_ && now >= *kill_at_)) return tell(all, SIGKILL);
    if (are_deaf(all, asked_)) tell(all, are_deaf(all, SIGTERM) ? SIGKILL : SIGTERM);
  }

  void wait() {
    std::array<pollfd, 2> ready{{{line_, POLLIN, 0}, {signals_, POLLIN, 0}}};
    ::poll(ready.data(), ready.size(), asked_ != 0 || ended_at_ ? kHuntMilliseconds : kGlanceMilliseconds);
    signalfd_siginfo info{};
    while (::read(signals_, &info, sizeof(info)) > 0) {
      // A program that means its parent by it means the command, which pauses and goes on so.
      if (info.ssi_signo == SIGUSR1) ::kill(::getppid(), SIGUSR1);
    }
    if (line_ < 0 || ready[0].revents == 0) return;
    Order order;
    const ssize_t got = ::recv(line_, &order, sizeof(order), MSG_DONTWAIT);
    if (got == static_cast<ssize_t>(sizeof(order))) return obey(order);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    line_ = -1;  // poll skips a negative descriptor
    kill_at_ = Clock::now() + kAlone;
    tell(descendants_of(::getpid()), SIGTERM);
  }

  void obey(const Order& order) {
    if (order.bounded != 0) kill_at_ = Clock::now() + kGrace;
    const std::vector<Descendant> all = descendants_of(::getpid());
    const bool came_to_all = came(order.signal);
    if (asked_ == 0) note_who_heeds(all, came_to_all);
    asked_ = order.signal;
    asked_at_ = Clock::now();
    told_all_ = false;
    for (const Descendant& each : all) {
      const bool as_terminal = each.group == ::getpgrp();
      if (as_terminal ? !came_to_all : each.process == program_) tell(each.process, order.signal);
    }
  }

  /// Whether a signal came to this process, too, as one to the whole group does.
  static bool came(int signal) {
    sigset_t one{};
    sigemptyset(&one);
    sigaddset(&one, signal);
    const timespec none{0, 0};
    return ::sigtimedwait(&one, nullptr, &none) == signal;
  }

  /// Whoever heeds a signal, and since when. One that came already may have a handler that ignores what comes next,
  /// which is no reason to use force: who heeded it for long counts as heeding it.
  void note_who_heeds(const std::vector<Descendant>& all, bool came_already = false) {
    const Clock::time_point now = Clock::now();
    std::map<std::pair<pid_t, int>, Clock::time_point> heeding;
    for (const Descendant& each : all) {
      for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        const std::pair one(each.process, signal);
        const auto before = heeding_.find(one);
        const Clock::time_point since = before == heeding_.end() ? now : before->second;
        if (!ignores(each.process, signal) || (came_already && now - since >= kSettled)) heeding.emplace(one, since);
      }
    }
    heeding_ = std::move(heeding);
  }

  /// Where not all were told, those that were.
  bool are_deaf(const std::vector<Descendant>& all, int signal) const {
    const bool had_grace = Clock::now() >= asked_at_ + kGrace;
    return std::ranges::all_of(all, [&](const Descendant& each) {
      if (!told_all_ && each.process != program_ && each.group != ::getpgrp()) return true;
      return (had_grace || !heeding_.contains({each.process, signal})) && ignores(each.process, signal);
    });
  }

  void tell(const std::vector<Descendant>& all, int signal) {
    asked_ = signal;
    asked_at_ = Clock::now();
    told_all_ = true;
    for (const Descendant& each : all) tell(each.process, signal);
  }

  /// One that is stopped would not hear it.
  static void tell(pid_t process, int signal) {
    ::kill(process, signal);
    ::kill(process, SIGCONT);
  }

  int line_ = -1, signals_ = -1;
  sigset_t blocked_{};
  pid_t program_ = -1;
  Report report_;
  int asked_ = 0;  ///< the last signal that the program was to end by
  Clock::time_point asked_at_{};
  bool told_all_ = false;                                       ///< by that signal, not only the process group
  bool told_rest_ = false;                                      ///< what it left behind got SIGTERM
  std::map<std::pair<pid_t, int>, Clock::time_point> heeding_;  ///< processes and signals that they do not ignore
  std::optional<Clock::time_point> ended_at_;                   ///< the program
  std::optional<Clock::time_point> kill_at_;
};

}  // namespace

void keep(int line, const std::function<int()>& start) {
  adopt_descendants();
  const Report report = Keeper(line).run(start);
  [[maybe_unused]] const ssize_t told = ::send(line, &report, sizeof(report), MSG_NOSIGNAL);
  ::_exit(0);
}

}  // namespace shard::profiler
