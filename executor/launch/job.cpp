// One loop over the ranks' lines, mpirun's output, and signals; then the verdict.
#include "executor/launch/job.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "executor/launch/mpirun_command.h"
#include "executor/launch/rank_lines.h"
#include "executor/launch/scratch.h"

namespace shard {
namespace {

using Clock = std::chrono::steady_clock;

/// What mpirun says is kept to this size; it matters only when no rank came to be.
constexpr std::size_t kOutputKept = 16 * 1024;
/// From the first sign of the end (a rank ended badly, or a signal) to SIGKILL for what is left.
constexpr std::chrono::seconds kGrace{10};

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

/// Blocks the signals that the job's loop reads from a descriptor; restores the mask at the end.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&set_, signal);
    sigprocmask(SIG_BLOCK, &set_, &before_);
    descriptor_ = File(signalfd(-1, &set_, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  [[nodiscard]] const sigset_t& before() const { return before_; }

 private:
  sigset_t set_{};
  sigset_t before_{};
  File descriptor_;
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

/// SIGKILL for all children of this process.
void kill_children() {
  const std::string process = std::to_string(getpid());
  std::ifstream children("/proc/" + process + "/task/" + process + "/children");
  for (pid_t child = 0; children >> child;) kill(child, SIGKILL);
}

class Job {
 public:
  Job(RankLines lines, int ranks) : lines_(std::move(lines)), ranks_(ranks) {}

  /// mpirun inherits `locks`: should this process be killed, its files are in use until mpirun has ended.
  [[nodiscard]] Result<void> start(std::vector<std::string> arguments, std::vector<std::string> environment,
                                   std::span<const int> locks);
  void run();
  [[nodiscard]] Result<JobEnd> verdict() const;

 private:
  void read_output();
  void read_signals();
  void reap();
  void end_soon();
  void kill_everything();
  void leave_no_process();
  [[nodiscard]] std::string death_of(Rank rank) const;

  RankLines lines_;
  int ranks_;
  BlockedSignals signals_;
  File output_;
  std::string said_;  ///< by mpirun
  pid_t mpirun_ = -1;
  std::optional<int> status_;  ///< of mpirun, as from waitpid
  int signal_ = 0;
  std::optional<Clock::time_point> kill_at_;
};

Result<void> Job::start(std::vector<std::string> arguments, std::vector<std::string> environment,
                        std::span<const int> locks) {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) return Error{Errc::unavailable, "no pipe for mpirun", "", ""};
  output_ = File(ends[0]);
  const File input(ends[1]);
  fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const File nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(environment);
  const pid_t parent = getpid();
  mpirun_ = fork();
  if (mpirun_ < 0) return Error{Errc::unavailable, std::string("cannot start mpirun: ") + strerror(errno), "", ""};
  if (mpirun_ > 0) return {};
  // In the child: only calls that are safe between fork and exec.
  setpgid(0, 0);  // the terminal's ^C reaches the parent alone, which passes it on
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);
  sigprocmask(SIG_SETMASK, &signals_.before(), nullptr);
  for (const int lock : locks) fcntl(lock, F_SETFD, 0);
  dup2(nothing.get(), STDIN_FILENO);
  dup2(input.get(), STDOUT_FILENO);
  dup2(input.get(), STDERR_FILENO);
  execve(argv[0], argv.data(), envp.data());
  _exit(127);
}

void Job::run() {
  std::vector<pollfd> descriptors;
  while (!status_) {
    descriptors.assign({{signals_.descriptor(), POLLIN, 0}, {output_.get(), POLLIN, 0}});
    lines_.add_to(descriptors);
    int timeout = -1;
    if (kill_at_) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*kill_at_ - Clock::now());
      timeout = static_cast<int>(std::max<std::int64_t>(left.count() + 1, 0));
    }
    ::poll(descriptors.data(), descriptors.size(), timeout);
    read_output();
    lines_.serve();
    for (const RankLines::End& end : lines_.ends())
      if (end.exit_code.value_or(1) != 0) end_soon();
    read_signals();
    if (kill_at_ && Clock::now() >= *kill_at_) kill_everything();
    reap();
  }
  lines_.serve();
  leave_no_process();
  lines_.serve();
  read_output();
}

void Job::read_output() {
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t bytes = read(output_.get(), buffer.data(), buffer.size());
    if (bytes < 0) return;
    if (bytes == 0) {
      output_ = File();  // poll skips a negative descriptor
      return;
    }
    if (said_.size() < kOutputKept) said_.append(buffer.data(), static_cast<std::size_t>(bytes));
  }
}

void Job::read_signals() {
  signalfd_siginfo info{};
  while (read(signals_.descriptor(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (info.ssi_signo == SIGCHLD) continue;
    if (signal_ != 0) {
      kill_everything();  // asked twice
      continue;
    }
    signal_ = static_cast<int>(info.ssi_signo);
    if (mpirun_ > 0) kill(mpirun_, SIGTERM);  // mpirun passes it to every rank and cleans up
    end_soon();
  }
}

void Job::end_soon() {
  if (!kill_at_) kill_at_ = Clock::now() + kGrace;
}

void Job::kill_everything() {
  lines_.kill_all();
  if (mpirun_ > 0) kill(mpirun_, SIGKILL);
  kill_at_ = Clock::now() + kGrace;
}

void Job::reap() {
  int status = 0;
  for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (ended != mpirun_) continue;  // a rank that mpirun left to us
    status_ = status;
    mpirun_ = -1;
  }
}

void Job::leave_no_process() {
  // As the ranks' subreaper this process inherits what mpirun left behind. A rank on its way out gets a moment.
  for (int attempt = 0; attempt < 200; ++attempt) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, WNOHANG);
    if (ended < 0) return;  // no child is left
    if (ended > 0) continue;
    if (attempt >= 20) kill_children();
    const timespec moment{0, 5'000'000};
    nanosleep(&moment, nullptr);
  }
}

std::string Job::death_of(Rank rank) const {
  std::string text = "rank " + std::to_string(rank.value) + " died";
  // mpirun returns what the first bad end that it saw was: usually this one's.
  const int code = WIFEXITED(*status_) ? WEXITSTATUS(*status_) : 0;
  if (code > 128)
    text.append(": signal ").append(std::to_string(code - 128)).append(" (").append(strsignal(code - 128)).append(")");
  else if (code > 0 && code != exit_code(Errc::retryable))
    text.append(": it returned ").append(std::to_string(code)).append(" without saying why");
  text.append("\n  try: run again; what was written before is whole");
  // An MPI that fails inside a rank says so through mpirun.
  if (code <= 128 && !said_.empty()) text.append("\nmpirun said:\n").append(said_);
  return text;
}

Result<JobEnd> Job::verdict() const {
  const std::vector<RankLines::End>& ends = lines_.ends();
  if (signal_ != 0) return JobEnd{75, {}, signal_};
  if (!lines_.any_came())
    return Error{Errc::unavailable, "mpirun did not start the ranks" + (said_.empty() ? said_ : ":\n" + said_),
                 "mpirun", "check that this is Open MPI's mpirun (mpirun --version; Debian: openmpi-bin)"};
  const RankLines::End* first = nullptr;  // to end badly
  for (const RankLines::End& end : ends) {
    if (end.exit_code == 0) continue;
    if (end.exit_code && *end.exit_code != exit_code(Errc::retryable)) return JobEnd{*end.exit_code, end.message, 0};
    if (first == nullptr) first = &end;
  }
  if (first != nullptr && first->exit_code) return JobEnd{*first->exit_code, first->message, 0};
  if (first != nullptr) return JobEnd{exit_code(Errc::retryable), death_of(first->rank), 0};
  if (static_cast<int>(ends.size()) < ranks_)
    return JobEnd{exit_code(Errc::retryable),
                  "mpirun ended before all ranks did" + (said_.empty() ? said_ : ":\n" + said_), 0};
  return JobEnd{};
}

}  // namespace

Result<JobEnd> run_job(std::span<const std::string> arguments, int ranks) {
  const std::string mpirun = find_in_path("mpirun");
  if (mpirun.empty())
    return Error{Errc::unavailable, "mpirun is not installed, and more than one rank needs it", "PATH",
                 "install Open MPI (Debian: openmpi-bin), or use --ranks 1"};
  const char* temporary = std::getenv("TMPDIR");
  std::optional<Scratch> session;
  // Unix socket names are short, so a long TMPDIR is not for us.
  if (temporary != nullptr && std::string_view(temporary).size() < 60) session = Scratch::make(temporary);
  if (!session) session = Scratch::make("/tmp");
  if (!session)
    return Error{Errc::cannot_create, std::string("no directory for the job's files: ") + strerror(errno), "/tmp",
                 "set TMPDIR to a writable directory with a short name"};
  const std::optional<Scratch> memory = Scratch::make("/dev/shm");
  const MpirunPlaces places{session->path(), memory ? memory->path() : std::string(), session->path() + "/parent"};
  Result<RankLines> lines = RankLines::listen(places.socket);
  if (!lines) return lines.error();
  const int locks[] = {session->lock(), memory ? memory->lock() : session->lock()};
  Job job(std::move(*lines), ranks);
  if (Result<void> started =
          job.start(mpirun_arguments(mpirun, arguments, ranks, places), mpirun_environment(places), locks);
      !started)
    return started.error();
  job.run();
  return job.verdict();
}

std::string own_program() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

}  // namespace shard
