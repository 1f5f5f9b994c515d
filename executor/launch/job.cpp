// One loop over the ranks' lines, mpirun's output and the watch over both; then the verdict, then the end of all that
// is left.
#include "executor/launch/job.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "executor/launch/address_space.h"
#include "executor/launch/mpirun_command.h"
#include "executor/launch/rank_lines.h"
#include "executor/launch/watchdog.h"
#include "traces/base/descendants.h"
#include "traces/base/run_place.h"
#include "traces/base/scratch.h"
#include "traces/base/stop.h"

namespace shard {
namespace {

using Clock = std::chrono::steady_clock;

/// What mpirun says is kept to this size; it matters only when no rank came to be.
constexpr std::size_t kOutputKept = 16 * 1024;
/// How often the loop looks at what it is not woken for: mpirun's end, the watch.
constexpr int kLookMilliseconds = 50;
/// Exit codes above say by which signal.
constexpr int kBySignal = 128;
/// From the first report of code 75 to the verdict: a rank that knows the cause may still be speaking.
constexpr std::chrono::milliseconds kForTheCause{1'000};
/// From a death without a word to the verdict, for mpirun to say by which signal.
constexpr std::chrono::milliseconds kForTheSignal{10'000};
/// For processes whose work is done to end by themselves.
constexpr std::chrono::milliseconds kToLeave{2'000};
/// For processes to be gone after SIGKILL; the kernel frees their memory first.
constexpr std::chrono::milliseconds kToDie{5'000};

class File {
 public:
  explicit File(int descriptor = -1) : descriptor_(descriptor) {}
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_;
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

/// All was done, or what was asked for by a signal.
bool is_good_end(std::optional<int> code) {
  return code && (*code == 0 || *code > kBySignal);
}

/// What a limit of this process, which ranks inherit, may have to do with their end; "" without one.
std::string advice_on_limit() {
  const std::optional<Bytes> limit = address_space_limit();
  if (!limit) return {};
  return "a process may have " + std::to_string(limit->count() >> 20) +
         " MiB of address space here, which may be too little: a larger limit (ulimit -v)";
}

/// A reader of this process's output that goes away must not end it before it has cleaned up: writing fails instead.
class WithoutSigpipe {
 public:
  WithoutSigpipe() : before_(::signal(SIGPIPE, SIG_IGN)) {}
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;
  ~WithoutSigpipe() { ::signal(SIGPIPE, before_); }

 private:
  void (*before_)(int);
};

class Job {
 public:
  /// `memory`: the directory of files behind shared memory. It goes as soon as no rank will open one there any more.
  Job(RankLines lines, const JobOptions& options, std::optional<Scratch> memory)
      : lines_(std::move(lines)),
        options_(options),
        watchdog_(options.ranks, options.deadline, Clock::now()),
        memory_(std::move(memory)) {}

  /// mpirun inherits `locks`: should this process be killed, its files are in use until mpirun has ended.
  [[nodiscard]] Result<void> start(std::vector<std::string> arguments, std::vector<std::string> environment,
                                   std::span<const int> locks);
  [[nodiscard]] Result<JobEnd> run();

 private:
  void look();
  void read_output();
  void reap();
  [[nodiscard]] bool is_over();
  [[nodiscard]] Result<JobEnd> verdict() const;
  [[nodiscard]] Error death_of(Rank rank) const;
  /// The first that died without a word.
  [[nodiscard]] std::optional<Rank> dead() const;

  RankLines lines_;
  JobOptions options_;
  Watchdog watchdog_;
  std::optional<Scratch> memory_;
  File output_;
  std::string said_;  ///< by mpirun
  pid_t mpirun_ = -1;
  std::optional<int> status_;  ///< of mpirun, as from waitpid
  std::optional<Clock::time_point> first_bad_;
  std::optional<Error> overdue_;
};

Result<void> Job::start(std::vector<std::string> arguments, std::vector<std::string> environment,
                        std::span<const int> locks) {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) return Error{Errc::unavailable, "no pipe for mpirun", "", ""};
  output_ = File(ends[0]);
  const File input(ends[1]);
  fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  const File nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(environment);
  const sigset_t mask = stop::mask_for_children();
  const pid_t parent = getpid();
  mpirun_ = fork();
  if (mpirun_ < 0)
    return Error{Errc::unavailable, std::string("cannot start mpirun: ") + strerror(errno), "",
                 "a larger limit of processes (ulimit -u)"};
  if (mpirun_ > 0) return {};
  // In the child: only calls that are safe between fork and exec.
  setpgid(0, 0);  // the terminal's ^C reaches the parent alone
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  for (const int lock : locks) fcntl(lock, F_SETFD, 0);
  dup2(nothing.get(), STDIN_FILENO);
  dup2(input.get(), STDOUT_FILENO);
  dup2(input.get(), STDERR_FILENO);
  execve(argv[0], argv.data(), envp.data());
  _exit(127);
}

Result<JobEnd> Job::run() {
  std::vector<pollfd> descriptors;
  do {
    descriptors.assign({{output_.get(), POLLIN, 0}});
    lines_.add_to(descriptors);
    ::poll(descriptors.data(), descriptors.size(), kLookMilliseconds);
    look();
  } while (!is_over());
  Result<JobEnd> end = verdict();
  if (end && is_good_end(end->exit_code)) {
    if (end->exit_code != 0 && options_.answer) options_.answer(*end);
    // What a rank still does behind its last word (reports of checkers, for one) is not cut short.
    if (!wait_for_descendants(kToLeave)) end_descendants(kToDie);
    return end;
  }
  if (end && end->exit_code == exit_code(Errc::retryable) && options_.explain)
    end->account = options_.explain({.dead = dead(), .silent = watchdog_.silent(Clock::now())});
  if (end && options_.answer) {
    const stop::NotNow answering;
    options_.answer(*end);
  }
  end_descendants(kToDie);
  return end;
}

void Job::look() {
  read_output();
  lines_.serve();
  if (const int signal = options_.asked ? options_.asked() : 0; signal != 0) lines_.ask_to_stop(signal);
  reap();
  const Clock::time_point now = Clock::now();
  for (const RankLines::Beat& beat : lines_.take_beats()) watchdog_.heard(beat, now);
  for (const RankLines::End& end : lines_.ends()) watchdog_.ended(end.rank);
  overdue_ = watchdog_.overdue(now);
  set_run_place(watchdog_.place_of(Rank{0}));
  if (memory_ && watchdog_.all_beyond(RunPart::arenas)) memory_.reset();
}

void Job::read_output() {
  std::array<char, 4096> buffer;
  while (output_.get() >= 0) {
    const ssize_t bytes = read(output_.get(), buffer.data(), buffer.size());
    if (bytes < 0) return;
    if (bytes == 0) output_ = File();  // poll skips a negative descriptor
    if (said_.size() < kOutputKept) said_.append(buffer.data(), static_cast<std::size_t>(bytes));
  }
}

void Job::reap() {
  int status = 0;
  for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (ended != mpirun_) continue;  // a rank that mpirun left to us
    status_ = status;
    mpirun_ = -1;
  }
}

bool Job::is_over() {
  if (overdue_) return true;
  const Clock::time_point now = Clock::now();
  bool died = false;
  bool noticed = false;
  for (const RankLines::End& end : lines_.ends()) {
    if (is_good_end(end.exit_code)) continue;
    if (end.exit_code && *end.exit_code != exit_code(Errc::retryable)) return true;
    (end.exit_code ? noticed : died) = true;
  }
  const bool all_ended = static_cast<int>(lines_.ends().size()) >= options_.ranks;
  if (!died && !noticed && all_ended) return true;
  if (!died && !noticed && !status_) return false;
  if (!first_bad_) first_bad_ = now;
  if (died) return status_.has_value() || now - *first_bad_ >= kForTheSignal;
  return all_ended || now - *first_bad_ >= kForTheCause;
}

std::optional<Rank> Job::dead() const {
  for (const RankLines::End& end : lines_.ends())
    if (!end.exit_code) return end.rank;
  return std::nullopt;
}

Error Job::death_of(Rank rank) const {
  std::string text = "rank " + std::to_string(rank.value) + " died";
  // mpirun returns what the first bad end that it saw was: usually this one's.
  const int code = status_ && WIFEXITED(*status_) ? WEXITSTATUS(*status_) : 0;
  if (code > kBySignal)
    text.append(": signal ")
        .append(std::to_string(code - kBySignal))
        .append(" (")
        .append(strsignal(code - kBySignal))
        .append(")");
  else if (code > 0 && code != exit_code(Errc::retryable))
    text.append(": it returned ").append(std::to_string(code)).append(" without saying why");
  // An MPI that fails inside a rank says so through mpirun.
  if (code <= kBySignal && !said_.empty()) text.append("; mpirun said:\n").append(said_);
  const std::string limit = advice_on_limit();
  return {Errc::retryable, text, to_string(watchdog_.place_of(rank)), limit.empty() ? "run again" : limit};
}

Result<JobEnd> Job::verdict() const {
  const std::vector<RankLines::End>& ends = lines_.ends();
  const int retryable = exit_code(Errc::retryable);
  const std::string said = said_.empty() ? said_ : ":\n" + said_;
  const RankLines::End* first = nullptr;  // to end badly
  for (const RankLines::End& end : ends) {
    if (is_good_end(end.exit_code)) continue;
    if (end.exit_code && *end.exit_code != retryable) return JobEnd{*end.exit_code, end.message};
    if (first == nullptr) first = &end;
  }
  if (first != nullptr && first->exit_code) return JobEnd{*first->exit_code, first->message};
  if (first != nullptr) return JobEnd{retryable, {}, death_of(first->rank)};
  if (overdue_) return JobEnd{retryable, {}, *overdue_};
  if (static_cast<int>(ends.size()) >= options_.ranks) {
    for (const RankLines::End& end : ends)
      if (*end.exit_code != 0) return JobEnd{*end.exit_code, end.message};
    return JobEnd{};
  }
  const std::string limit = advice_on_limit();
  if (lines_.any_came())
    return JobEnd{retryable, {}, Error{Errc::retryable, "mpirun ended before all ranks did" + said, "mpirun", limit}};
  return Error{Errc::unavailable, "mpirun did not start the ranks" + said, "mpirun",
               limit.empty() ? "check that this is Open MPI's mpirun (mpirun --version; Debian: openmpi-bin)" : limit};
}

}  // namespace

Result<JobEnd> run_job(std::span<const std::string> arguments, const JobOptions& options) {
  const std::string mpirun = find_in_path("mpirun");
  if (mpirun.empty())
    return Error{Errc::unavailable, "mpirun is not installed, and more than one rank needs it", "PATH",
                 "install Open MPI (Debian: openmpi-bin), or use --ranks 1"};
  const WithoutSigpipe writing_fails;
  const char* temporary = std::getenv("TMPDIR");
  std::optional<Scratch> session;
  // Unix socket names are short, so a long TMPDIR is not for us.
  if (temporary != nullptr && std::string_view(temporary).size() < 60) session = Scratch::make(temporary);
  if (!session) session = Scratch::make("/tmp");
  if (!session)
    return Error{Errc::cannot_create, std::string("no directory for the job's files: ") + strerror(errno), "/tmp",
                 "set TMPDIR to a writable directory with a short name"};
  std::optional<Scratch> memory = Scratch::make("/dev/shm");
  const MpirunPlaces places{session->path(), memory ? memory->path() : std::string(), session->path() + "/parent"};
  Result<RankLines> lines = RankLines::listen(places.socket);
  if (!lines) return lines.error();
  lines->hand_out(options.recorders);
  const int locks[] = {session->lock(), memory ? memory->lock() : session->lock()};
  adopt_descendants();
  // After the directories, so before them at a stop: nobody writes into them any more.
  const stop::Registration processes = stop::at_stop([] { end_descendants(kToDie); });
  Job job(std::move(*lines), options, std::move(memory));
  {
    const stop::NotNow starting;
    if (Result<void> started =
            job.start(mpirun_arguments(mpirun, arguments, options.ranks, places), mpirun_environment(places), locks);
        !started)
      return started.error();
  }
  return job.run();
}

std::string own_program() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

}  // namespace shard
