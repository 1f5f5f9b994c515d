// A thread that polls a signalfd. It reads a signal only under the lock, so that an exec under the lock loses none.
#include "traces/base/stop.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "traces/base/run_place.h"
#include "traces/base/temporary_files.h"

namespace shard::stop {
namespace {

using Clock = std::chrono::steady_clock;

/// A second signal within this time belongs to the first: timeout(1) and some shells signal a process and its group.
constexpr timespec kPatience{0, 300'000'000};
/// Enough for clean-ups; small where address space is limited.
constexpr std::size_t kStack = 256 * 1024;

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP, SIGQUIT};

struct Entry {
  int id = 0;
  std::function<void()> clean_up;
  std::function<std::optional<Error>()> cause;
  Say say;
  std::function<void()> tick;
  std::function<void(int)> ask = {};
  std::function<bool(pid_t)> heeds = {};
  std::chrono::milliseconds interval{0};
  Clock::time_point next{};
};

struct State {
  std::recursive_mutex mutex;
  std::vector<Entry> entries;
  int last_id = 0;
  bool leave = false;
  int asked = 0;    ///< the signal that was taken for a request
  int dies_of = 0;  ///< when its work is done
  Clock::time_point asked_at{};
  int signals = -1;  ///< signalfd
  int wake = -1;     ///< eventfd
  sigset_t taken{};
  sigset_t before{};
  pthread_t thread{};
};

/// Never destroyed: threads may outlive main().
State& state() {
  static State& one = *new State;  // NOLINT(cppcoreguidelines-owning-memory)
  return one;
}

void wake() {
  const std::uint64_t one = 1;
  if (state().wake >= 0) static_cast<void>(!write(state().wake, &one, sizeof one));
}

template <class Visit>
void newest_first(Visit visit) {
  std::vector<Entry>& entries = state().entries;
  for (std::size_t i = entries.size(); i-- > 0;) {
    try {
      if (visit(entries[i])) return;
    } catch (...) {  // the process ends: the rest of the clean-up matters more than this part
    }
  }
}

/// Ends the process for whoever cannot wait for its clean-up.
void* be_impatient(void*) {
  nanosleep(&kPatience, nullptr);
  const timespec none{0, 0};
  while (sigtimedwait(&state().taken, nullptr, &none) > 0) {
  }
  for (const int signal : kSignals)
    if (sigismember(&state().taken, signal) == 1) ::signal(signal, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &state().taken, nullptr);
  while (true) pause();
}

/// The lock is held and never given back.
void say_and_clean(const Error& error) {
  newest_first([&](const Entry& entry) {
    if (entry.say) entry.say(error);
    return static_cast<bool>(entry.say);
  });
  newest_first([](const Entry& entry) {
    if (entry.clean_up) entry.clean_up();
    return false;
  });
  temporary_files::remove_all();
}

[[noreturn]] void die_of(int signal) {
  ::signal(signal, SIG_DFL);
  sigset_t own{};
  sigemptyset(&own);
  sigaddset(&own, signal);
  pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
  kill(getpid(), signal);
  pthread_kill(pthread_self(), signal);
  _exit(128 + signal);  // the first process of a container does not die of signals
}

[[noreturn]] void stop_by(int signal) {
  pthread_t helper{};
  if (pthread_create(&helper, nullptr, be_impatient, nullptr) == 0) pthread_detach(helper);
  std::optional<Error> cause;
  newest_first([&](const Entry& entry) {
    if (entry.cause) cause = entry.cause();
    return cause.has_value();
  });
  if (!cause)
    cause = Error{Errc::retryable, std::string("stopped by signal: ") + strsignal(signal), to_string(run_place()), ""};
  say_and_clean(*cause);
  die_of(signal);
}

/// Asks whoever's work is to end with an answer; `sender`: of the signal, where it was one.
void request(int signal, std::optional<pid_t> sender, Clock::time_point at) {
  State& s = state();
  newest_first([&](const Entry& entry) {
    if (!entry.ask) return false;
    if (sender && entry.heeds && !entry.heeds(*sender)) return true;
    s.asked = signal;
    s.dies_of = signal;
    s.asked_at = at;
    entry.ask(signal);
    return true;
  });
}

/// The first signal, where somebody's work is to end with an answer. False: the process ends.
bool is_request(int signal, pid_t sender) {
  State& s = state();
  if (s.asked != 0) return Clock::now() - s.asked_at < std::chrono::nanoseconds(kPatience.tv_nsec);
  request(signal, sender, Clock::now());
  return s.asked != 0;
}

int milliseconds_to_next_tick() {
  const std::lock_guard lock(state().mutex);
  std::int64_t shortest = -1;
  for (const Entry& entry : state().entries) {
    if (!entry.tick) continue;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(entry.next - Clock::now()).count();
    const std::int64_t wait = std::clamp<std::int64_t>(left, 0, 1'000'000);
    if (shortest < 0 || wait < shortest) shortest = wait;
  }
  return static_cast<int>(shortest);
}

void* take_signals(void*) {
  State& s = state();
  while (true) {
    std::array<pollfd, 2> descriptors{{{s.signals, POLLIN, 0}, {s.wake, POLLIN, 0}}};
    ::poll(descriptors.data(), descriptors.size(), milliseconds_to_next_tick());
    std::uint64_t woken = 0;
    static_cast<void>(!read(s.wake, &woken, sizeof woken));
    const std::lock_guard lock(s.mutex);
    if (s.leave) return nullptr;
    signalfd_siginfo info{};
    if (read(s.signals, &info, sizeof info) == static_cast<ssize_t>(sizeof info) &&
        !is_request(static_cast<int>(info.ssi_signo), static_cast<pid_t>(info.ssi_pid)))
      stop_by(static_cast<int>(info.ssi_signo));
    // Ticks may come and go while one is called, but only by this thread.
    for (std::size_t i = 0; i < s.entries.size(); ++i) {
      if (!s.entries[i].tick || s.entries[i].next > Clock::now()) continue;
      s.entries[i].next = Clock::now() + s.entries[i].interval;
      const std::function<void()> tick = s.entries[i].tick;
      tick();
    }
  }
}

int start_thread() {
  State& s = state();
  pthread_attr_t attributes{};
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack);
  const int fault = pthread_create(&s.thread, &attributes, take_signals, nullptr);
  pthread_attr_destroy(&attributes);
  return fault;
}

void close_descriptors() {
  State& s = state();
  for (int* descriptor : {&s.signals, &s.wake})
    if (*descriptor >= 0) close(std::exchange(*descriptor, -1));
}

}  // namespace

struct Registry {
  static Registration add(Entry entry) {
    State& s = state();
    const std::lock_guard lock(s.mutex);
    entry.id = ++s.last_id;
    const bool ticks = static_cast<bool>(entry.tick);
    s.entries.push_back(std::move(entry));
    if (ticks) wake();
    return Registration(s.last_id);
  }
  static void forget(int id) {
    if (id == 0) return;
    const std::lock_guard lock(state().mutex);
    std::erase_if(state().entries, [&](const Entry& entry) { return entry.id == id; });
  }
};

SignalThread::SignalThread(Say say) {
  State& s = state();
  sigemptyset(&s.taken);
  for (const int signal : kSignals) {
    struct sigaction action {};
    const bool ignored = (signal == SIGHUP || signal == SIGQUIT) && sigaction(signal, nullptr, &action) == 0 &&
                         action.sa_handler == SIG_IGN;
    if (!ignored) sigaddset(&s.taken, signal);
  }
  pthread_sigmask(SIG_BLOCK, &s.taken, &s.before);
  s.leave = false;
  s.signals = signalfd(-1, &s.taken, SFD_CLOEXEC | SFD_NONBLOCK);
  s.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  s.entries.push_back({.id = 0, .clean_up = {}, .cause = {}, .say = std::move(say), .tick = {}});
  const int fault = s.signals < 0 || s.wake < 0 ? errno : start_thread();
  if (fault == 0) return;
  close_descriptors();
  s.entries.clear();
  pthread_sigmask(SIG_SETMASK, &s.before, nullptr);
  started_ = Error{Errc::unavailable, std::string("no thread can be started: ") + strerror(fault), "",
                   "a larger limit of processes (ulimit -u) or of address space (ulimit -v)"};
}

SignalThread::~SignalThread() {
  if (!started_) return;
  State& s = state();
  {
    const std::lock_guard lock(s.mutex);
    s.leave = true;
  }
  wake();
  pthread_join(s.thread, nullptr);
  if (s.dies_of != 0) die_of(s.dies_of);
  const timespec none{0, 0};
  if (const int late = sigtimedwait(&s.taken, nullptr, &none); late > 0) {
    const std::lock_guard lock(s.mutex);
    stop_by(late);
  }
  close_descriptors();
  s.entries.clear();
}

NotNow::NotNow() : lock_(state().mutex) {}

Registration::Registration(Registration&& other) noexcept : id_(std::exchange(other.id_, 0)) {}

Registration& Registration::operator=(Registration&& other) noexcept {
  std::swap(id_, other.id_);
  return *this;
}

Registration::~Registration() {
  Registry::forget(id_);
}

Registration at_stop(std::function<void()> clean_up) {
  return Registry::add({.clean_up = std::move(clean_up), .cause = {}, .say = {}, .tick = {}});
}

Registration with_cause(std::function<std::optional<Error>()> cause) {
  return Registry::add({.clean_up = {}, .cause = std::move(cause), .say = {}, .tick = {}});
}

Registration with_say(Say say) {
  return Registry::add({.clean_up = {}, .cause = {}, .say = std::move(say), .tick = {}});
}

Registration at_first_signal(std::function<void(int)> ask, std::function<bool(pid_t)> heeds) {
  return Registry::add(
      {.clean_up = {}, .cause = {}, .say = {}, .tick = {}, .ask = std::move(ask), .heeds = std::move(heeds)});
}

void ask(int signal) {
  const std::lock_guard lock(state().mutex);
  if (state().asked == 0) request(signal, std::nullopt, {});
}

void end_by(int signal) {
  const std::lock_guard lock(state().mutex);
  state().dies_of = signal;
}

Registration every(std::chrono::milliseconds interval, std::function<void()> tick) {
  return Registry::add(
      {.clean_up = {}, .cause = {}, .say = {}, .tick = std::move(tick), .interval = interval, .next = Clock::now()});
}

void end(const Error& error) {
  const std::lock_guard lock(state().mutex);
  say_and_clean(error);
  _exit(exit_code(error.code));
}

sigset_t mask_for_children() {
  sigset_t mask{};
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  for (const int signal : kSignals)
    if (sigismember(&state().taken, signal) == 1) sigdelset(&mask, signal);
  return mask;
}

}  // namespace shard::stop
