// fork, exec, and a pipe that tells why exec failed.
#include "profiler/process/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <thread>

namespace shard::profiler {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kGrace{10};
constexpr std::chrono::milliseconds kLook{10};

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

Ended ended(int status) {
  Ended result;
  if (WIFSIGNALED(status)) {
    result.signal = WTERMSIG(status);
    result.exit_code = 128 + result.signal;
  } else {
    result.exit_code = WEXITSTATUS(status);
  }
  return result;
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

/// The process, once exec has succeeded.
Result<pid_t> start(const std::vector<std::string>& words, const Started& how, int out) {
  Pipe fault;
  const pid_t process = ::fork();
  if (process < 0)
    return Error{Errc::unavailable, std::string("no process can be started: ") + std::strerror(errno), words.front(),
                 ""};
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
  int why = 0;
  if (::read(fault.read, &why, sizeof(why)) == static_cast<ssize_t>(sizeof(why))) {
    ::waitpid(process, nullptr, 0);
    return Error{Errc::unavailable, std::string("the program cannot be started: ") + std::strerror(why), words.front(),
                 why == ENOENT ? "its path, or a name that is in PATH" : ""};
  }
  return process;
}

}  // namespace

Result<Ended> run_to_its_end(const std::vector<std::string>& words, const Started& how) {
  const Result<pid_t> process = start(words, how, -1);
  if (!process) return process.error();
  const auto begin = Clock::now();
  const bool looks = how.timeout_seconds || how.meanwhile;
  bool told = false, killed = false;
  int status = 0;
  rusage used{};
  while (true) {
    const pid_t found = ::wait4(*process, &status, looks ? WNOHANG : 0, &used);
    if (found == *process) break;
    if (found < 0 && errno != EINTR)
      return Error{Errc::internal, std::string("waiting failed: ") + std::strerror(errno), words.front(), ""};
    if (!looks) continue;
    if (how.meanwhile) how.meanwhile();
    const auto end =
        how.timeout_seconds
            ? begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*how.timeout_seconds))
            : Clock::time_point::max() - kGrace;
    if (!told && Clock::now() > end) {
      ::kill(*process, SIGTERM);
      told = true;
    }
    if (!killed && Clock::now() > end + kGrace) {
      ::kill(*process, SIGKILL);
      killed = true;
    }
    std::this_thread::sleep_for(kLook);
  }
  Ended result = ended(status);
  result.timed_out = told;
  result.peak_resident_bytes = std::int64_t{used.ru_maxrss} << 10;
  return result;
}

Result<Ended> run_and_read(const std::vector<std::string>& words) {
  Pipe out;
  const Result<pid_t> process = start(words, {}, out.write);
  if (!process) return process.error();
  out.close_write();
  std::string text;
  char piece[4096];
  for (ssize_t got = 0; (got = ::read(out.read, piece, sizeof(piece))) != 0;) {
    if (got > 0) text.append(piece, static_cast<std::size_t>(got));
    if (got < 0 && errno != EINTR) break;
  }
  int status = 0;
  while (::waitpid(*process, &status, 0) < 0 && errno == EINTR) {
  }
  Ended result = ended(status);
  result.out = std::move(text);
  return result;
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
