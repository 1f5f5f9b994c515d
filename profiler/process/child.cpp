// A keeper is forked, which forks and executes the program; a pipe tells why exec failed.
#include "profiler/process/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "profiler/process/keeper.h"
#include "traces/base/deadline.h"
#include "traces/base/descendants.h"

namespace shard::profiler {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kLookMilliseconds = 10;
/// For processes to be gone after SIGKILL; the kernel frees their memory first.
constexpr std::chrono::seconds kToDie{5};

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) == 0) read = ends[0], write = ends[1];
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_write();
    if (read >= 0) ::close(read);
  }
  void close_write() {
    if (write >= 0) ::close(write);
    write = -1;
  }
};

void set_end(Ended& ended, int status) {
  if (WIFSIGNALED(status)) {
    ended.signal = WTERMSIG(status);
    ended.exit_code = 128 + ended.signal;
  } else {
    ended.exit_code = WEXITSTATUS(status);
  }
}

[[noreturn]] void become(const std::vector<std::string>& words, const std::map<std::string, std::string>& environment,
                         int fault) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  const int why = errno;
  [[maybe_unused]] const ssize_t told = ::write(fault, &why, sizeof(why));
  ::_exit(127);
}

/// For the keeper: the process, once exec has succeeded, or the errno that it failed with, below zero.
int start(const std::vector<std::string>& words, const Started& how, int out) {
  Pipe fault;
  const pid_t process = ::fork();
  if (process < 0) return -errno;
  if (process == 0) {
    if (how.out_to_errors) ::dup2(STDERR_FILENO, STDOUT_FILENO);
    if (out >= 0) {
      ::dup2(out, STDOUT_FILENO);
      const int nothing = ::open("/dev/null", O_WRONLY);
      if (nothing >= 0) ::dup2(nothing, STDERR_FILENO);
    }
    become(words, how.environment, fault.write);
  }
  fault.close_write();
  if (out >= 0) ::close(out);
  int why = 0;
  return ::read(fault.read, &why, sizeof(why)) == static_cast<ssize_t>(sizeof(why)) ? -why : process;
}

/// This process's end of the keeper's line.
class Line {
 public:
  Line() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0) own_ = ends[0], keepers_ = ends[1];
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() {
    close_own();
    close_keepers();
  }
  void close_own() { close(own_); }
  void close_keepers() { close(keepers_); }
  [[nodiscard]] int own() const { return own_; }
  [[nodiscard]] int keepers() const { return keepers_; }
  void order(const Order& order) const {
    [[maybe_unused]] const ssize_t told = ::send(own_, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

 private:
  static void close(int& descriptor) {
    if (descriptor >= 0) ::close(descriptor);
    descriptor = -1;
  }
  int own_ = -1, keepers_ = -1;
};

/// What came through the pipe by now; false at its end.
bool read_some(const Pipe& pipe, std::string& text) {
  char piece[4096];
  ssize_t got = 0;
  while ((got = ::read(pipe.read, piece, sizeof(piece))) > 0) text.append(piece, static_cast<std::size_t>(got));
  return got < 0 && (errno == EAGAIN || errno == EINTR);
}

/// Until the keeper reports; none when it was killed.
std::optional<Report> wait_for(const Line& line, const Started& how, const Pipe* out, Ended& ended) {
  const std::optional<Clock::time_point> deadline =
      how.timeout_seconds ? deadline_after(Clock::now(), *how.timeout_seconds) : std::nullopt;
  bool reads = out != nullptr;
  while (true) {
    std::array<pollfd, 2> ready{{{line.own(), POLLIN, 0}, {reads ? out->read : -1, POLLIN, 0}}};
    ::poll(ready.data(), ready.size(), deadline || how.meanwhile ? kLookMilliseconds : -1);
    if (reads && ready[1].revents != 0) reads = read_some(*out, ended.out);
    if (how.meanwhile) how.meanwhile();
    if (deadline && !ended.timed_out && Clock::now() > *deadline) {
      line.order({.signal = SIGTERM, .bounded = 1});
      ended.timed_out = true;
    }
    if (ready[0].revents == 0) continue;
    if (reads) read_some(*out, ended.out);
    Report report;
    const ssize_t got = ::recv(line.own(), &report, sizeof(report), 0);
    if (got < 0 && errno == EINTR) continue;
    return got == static_cast<ssize_t>(sizeof(report)) ? std::optional(report) : std::nullopt;
  }
}

Error no_process(const std::vector<std::string>& words) {
  return {Errc::unavailable, std::string("no process can be started: ") + std::strerror(errno), words.front(),
          "a larger limit of processes (ulimit -u) or of open files (ulimit -n)"};
}

/// `out`: reads what the program prints. `answers`: the first signal is the program's.
Result<Ended> run(const std::vector<std::string>& words, const Started& how, Pipe* out, bool answers) {
  const auto line = std::make_shared<Line>();
  if (line->own() < 0) return no_process(words);
  adopt_descendants();
  const stop::Registration processes = stop::at_stop([] { end_descendants(kToDie); });
  Ended ended;
  pid_t keeper = -1;
  {
    const stop::NotNow starting;
    keeper = ::fork();
    if (keeper < 0) return no_process(words);
    if (keeper == 0) {
      line->close_own();
      keep(line->keepers(), [&] { return start(words, how, out == nullptr ? -1 : out->write); });
    }
    if (answers)
      ended.answering = std::make_shared<stop::Registration>(
          stop::at_first_signal([line](int signal) { line->order({.signal = signal}); }));
  }
  line->close_keepers();
  if (out != nullptr) {
    out->close_write();
    ::fcntl(out->read, F_SETFL, O_NONBLOCK);
  }
  const std::optional<Report> report = wait_for(*line, how, out, ended);
  end_descendants(kToDie);  // of a keeper that was killed; a sound one has left nothing
  if (!report) {
    const stop::NotNow unstopped;  // who is being stopped has said so
    return Error{Errc::retryable, "the process that watches over the program was killed", words.front(), "run again"};
  }
  if (report->not_started != 0)
    return Error{Errc::unavailable, std::string("the program cannot be started: ") + std::strerror(report->not_started),
                 words.front(), report->not_started == ENOENT ? "its path, or a name that is in PATH" : ""};
  set_end(ended, report->status);
  ended.peak_resident_bytes = report->peak_resident_bytes;
  return ended;
}

}  // namespace

Result<Ended> run_to_its_end(const std::vector<std::string>& words, const Started& how) {
  return run(words, how, nullptr, true);
}

Result<Ended> run_and_read(const std::vector<std::string>& words) {
  Pipe out;
  return run(words, {}, &out, false);
}

std::string found_in_path(const std::string& program) {
  if (program.find('/') != std::string::npos) return program;
  const char* const list = std::getenv("PATH");
  std::string_view rest = list == nullptr ? std::string_view() : list;
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    const std::string path = std::string(rest.substr(0, colon)) + "/" + program;
    if (::access(path.c_str(), X_OK) == 0) return path;
    rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  }
  return "";
}

}  // namespace shard::profiler
