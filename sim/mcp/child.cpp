// Starts, reads and ends commands.
#include "sim/mcp/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "traces/base/descendants.h"
#include "traces/base/stop.h"

namespace shard::mcp {
namespace {

/// Of what a command prints on stdout nothing is left out: an answer is whole or an error. Of messages, and of what a
/// program prints that a dry run runs, the last are kept.
constexpr std::size_t kMostAnswer = std::size_t{256} << 20;
constexpr std::size_t kMostMessages = std::size_t{16} << 10;

constexpr std::chrono::milliseconds kToEnd{12'000};
constexpr std::chrono::milliseconds kToDie{2'000};

void close_both(const std::array<int, 2>& ends) {
  for (const int each : ends)
    if (each >= 0) ::close(each);
}

/// The error of posix_spawn, 0 for none.
int spawn(const std::string& program, std::vector<std::string> words, int out, int err, pid_t& process) {
  std::vector<char*> pointers;
  for (std::string& each : words) pointers.push_back(each.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  const sigset_t mask = stop::mask_for_children();
  posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  const int failed = ::posix_spawn(&process, program.c_str(), &actions, &attributes, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return failed;
}

}  // namespace

Result<Child> Child::start(const std::string& program, const std::vector<std::string>& arguments) {
  std::array<int, 2> out{-1, -1};
  std::array<int, 2> err{-1, -1};
  const bool open = ::pipe2(out.data(), O_CLOEXEC) == 0 && ::pipe2(err.data(), O_CLOEXEC) == 0;
  int failed = open ? 0 : errno;
  Child child;
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  if (open) failed = spawn(program, std::move(words), out[1], err[1], child.process_);
  if (failed != 0) {
    close_both(out);
    close_both(err);
    child.process_ = -1;
    return Error{Errc::unavailable, std::string("the command cannot be started: ") + std::strerror(failed), program,
                 failed == E2BIG ? "shorter arguments: a file for what is long" : "ask again"};
  }
  ::close(out[1]);
  ::close(err[1]);
  child.files_ = {out[0], err[0]};
  return child;
}

Child::Child(Child&& other) noexcept
    : process_(std::exchange(other.process_, -1)),
      files_(std::exchange(other.files_, {-1, -1})),
      texts_(std::move(other.texts_)) {}

Child::~Child() {
  close_files();
  if (process_ < 0) return;
  ::kill(process_, SIGTERM);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Child::close_files() {
  close_both(files_);
  files_ = {-1, -1};
}

std::array<pollfd, 2> Child::awaited() const {
  return {{{files_[0], POLLIN, 0}, {files_[1], POLLIN, 0}}};
}

bool Child::read(const std::array<pollfd, 2>& ready) {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (files_[i] < 0 || ready[i].revents == 0) continue;
    std::array<char, 65536> buffer{};
    const ssize_t count = ::read(files_[i], buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    std::string& text = texts_[i];
    if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
    if (i == 1 && text.size() > 2 * kMostMessages) text.erase(0, text.size() - kMostMessages);
    if (count > 0 && text.size() <= kMostAnswer) continue;
    ::close(std::exchange(files_[i], -1));
    if (count > 0) cancel();
  }
  return files_[0] >= 0 || files_[1] >= 0;
}

Finished Child::finish() {
  close_files();
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(process_, &status, 0)) < 0 && errno == EINTR) {
  }
  process_ = -1;
  constexpr int kBySignal = 128;
  const int code = ended < 0             ? exit_code(Errc::internal)
                   : WIFSIGNALED(status) ? kBySignal + WTERMSIG(status)
                                         : WEXITSTATUS(status);
  if (texts_[1].size() > kMostMessages) texts_[1].erase(0, texts_[1].size() - kMostMessages);
  return {.exit_code = code, .out = std::move(texts_[0]), .err = std::move(texts_[1])};
}

void Child::cancel() const {
  if (process_ > 0) ::kill(process_, SIGTERM);
}

void end_children_of_server() {
  for (const Descendant& each : descendants_of(::getpid()))
    if (each.parent == ::getpid()) ::kill(each.process, SIGTERM);
  if (!wait_for_descendants(kToEnd)) end_descendants(kToDie);
}

}  // namespace shard::mcp
