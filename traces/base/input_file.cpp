// Pipes stay in the mode that does not block: only so a read tells a writer that is silent from none.
#include "traces/base/input_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace shard {
namespace {

constexpr int kPatienceMilliseconds = 2000;

Error input_fault(Errc code, const std::filesystem::path& path, int why) {
  return {.code = code, .what = std::strerror(why), .where = path.string(), .help = ""};
}

/// A pipe without a name: whoever handed it over has seen to its other end.
bool is_anonymous(int descriptor) {
  struct statfs system {};
  return ::fstatfs(descriptor, &system) == 0 && system.f_type == PIPEFS_MAGIC;
}

}  // namespace

bool is_absent(const std::filesystem::path& path) {
  std::error_code fault;
  return std::filesystem::status(path, fault).type() == std::filesystem::file_type::not_found;
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      regular_(other.regular_),
      pipe_(other.pipe_),
      nameless_pipe_(other.nameless_pipe_),
      bytes_(other.bytes_),
      first_(other.first_) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(regular_, other.regular_);
  std::swap(pipe_, other.pipe_);
  std::swap(nameless_pipe_, other.nameless_pipe_);
  std::swap(bytes_, other.bytes_);
  std::swap(first_, other.first_);
  return *this;
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<InputFile> InputFile::open(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return input_fault(Errc::no_input, path, errno);
  InputFile file(path, descriptor);
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) return input_fault(Errc::no_input, path, errno);
  file.regular_ = S_ISREG(info.st_mode);
  file.pipe_ = S_ISFIFO(info.st_mode);
  if (file.pipe_ && is_anonymous(descriptor)) file.nameless_pipe_ = info.st_ino;
  file.bytes_ = file.regular_ ? info.st_size : 0;
  return file;
}

Result<InputFile> InputFile::open_stream(const std::filesystem::path& path) {
  Result<InputFile> file = open(path);
  if (!file || file->regular_) return file;
  struct stat info {};
  if (::fstat(file->descriptor_, &info) == 0 && S_ISDIR(info.st_mode))
    return Error{.code = Errc::no_input, .what = "it is a directory", .where = path.string(), .help = ""};
  if (file->pipe_) {
    if (file->nameless_pipe_) return file;
    if (const Result<void> there = file->await_writer(); !there) return there.error();
    return file;
  }
  // A terminal is waited for as everywhere.
  const int flags = ::fcntl(file->descriptor_, F_GETFL);
  if (flags < 0 || ::fcntl(file->descriptor_, F_SETFL, flags & ~O_NONBLOCK) < 0)
    return input_fault(Errc::no_input, path, errno);
  return file;
}

Result<void> InputFile::await_writer() {
  pollfd bytes{descriptor_, POLLIN, 0};
  if (::poll(&bytes, 1, kPatienceMilliseconds) != 0) return {};
  // A writer that has written nothing yet is no end.
  std::byte one{};
  const ssize_t got = ::read(descriptor_, &one, 1);
  if (got < 0) return {};
  if (got == 0)
    return Error{.code = Errc::no_input,
                 .what = "it is a pipe that nobody writes to",
                 .where = path_.string(),
                 .help = "start what writes to it first, or have it write a file"};
  first_ = one;
  return {};
}

Result<std::size_t> InputFile::read(std::span<std::byte> into) {
  if (first_ && !into.empty()) {
    into[0] = *std::exchange(first_, std::nullopt);
    return std::size_t{1};
  }
  while (true) {
    const ssize_t got = ::read(descriptor_, into.data(), into.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EAGAIN && pipe_) {
      pollfd bytes{descriptor_, POLLIN, 0};
      (void)::poll(&bytes, 1, -1);
    } else if (errno != EINTR) {
      return input_fault(errno == EISDIR ? Errc::no_input : Errc::io, path_, errno);
    }
  }
}

Result<std::size_t> InputFile::read_at(std::int64_t offset, std::span<std::byte> into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got =
        ::pread(descriptor_, into.data() + done, into.size() - done, offset + static_cast<std::int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return input_fault(errno == EISDIR ? Errc::no_input : Errc::io, path_, errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

}  // namespace shard
