// Thin: each function is one call, what makes up for its being interrupted or cut short, and the tests' hook.
#include "executor/state/checkpoint/io.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

namespace shard::checkpoint::io {
namespace {

Hook& io_hook() {
  static Hook hook;
  return hook;
}

int io_asked(const char* call) {
  return io_hook() ? io_hook()(call) : 0;
}

/// A call that returns -1 and sets errno.
template <class Call>
int io_call(const char* name, const Call& call) {
  if (const int told = io_asked(name); told > 0) return told;
  while (call() < 0)
    if (errno != EINTR) return errno;
  return 0;
}

std::size_t io_part_of(std::size_t bytes, int told) {
  return told == kShort && bytes > 1 ? bytes / 2 : bytes;
}

}  // namespace

void set_hook(Hook hook) {
  io_hook() = std::move(hook);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

int open(const std::filesystem::path& path, int flags, Descriptor& into) {
  int fd = -1;
  const int fault = io_call("open", [&] { return fd = ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0666); });
  if (fault == 0) into = Descriptor(fd);
  return fault;
}

int make_directory(const std::filesystem::path& path) {
  return io_call("mkdir", [&] { return ::mkdir(path.c_str(), 0777); });
}

int reserve(const Descriptor& file, std::int64_t bytes) {
  if (bytes == 0) return 0;
  const int fault = io_call("fallocate", [&] { return ::fallocate(file.get(), 0, 0, bytes); });
  if (fault != EOPNOTSUPP && fault != ENOSYS) return fault;
  return io_call("ftruncate", [&] { return ::ftruncate(file.get(), bytes); });
}

int write_at(const Descriptor& file, std::int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const int told = io_asked("pwrite");
    if (told > 0) return told;
    const ssize_t done = ::pwrite(file.get(), bytes.data(), io_part_of(bytes.size(), told), offset);
    if (done < 0 && errno != EINTR) return errno;
    if (done == 0) return EIO;  // POSIX leaves open what that means; nothing would ever end it
    if (done > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(done));
      offset += done;
    }
  }
  return 0;
}

int read_at(const Descriptor& file, std::int64_t offset, std::span<std::byte> into, std::size_t& got) {
  got = 0;
  while (got < into.size()) {
    const int told = io_asked("pread");
    if (told > 0) return told;
    const std::span<std::byte> rest = into.subspan(got);
    const ssize_t done =
        ::pread(file.get(), rest.data(), io_part_of(rest.size(), told), offset + static_cast<std::int64_t>(got));
    if (done == 0) return 0;
    if (done < 0 && errno != EINTR) return errno;
    if (done > 0) got += static_cast<std::size_t>(done);
  }
  return 0;
}

int size_of(const Descriptor& file, std::int64_t& bytes) {
  struct stat status {};
  if (const int fault = io_call("fstat", [&] { return ::fstat(file.get(), &status); }); fault != 0) return fault;
  if (!S_ISREG(status.st_mode)) return EINVAL;
  bytes = status.st_size;
  return 0;
}

void start_writing(const Descriptor& file) {
  static_cast<void>(::sync_file_range(file.get(), 0, 0, SYNC_FILE_RANGE_WRITE));
}

int sync(const Descriptor& file) {
  const int fault = io_call("fsync", [&] { return ::fsync(file.get()); });
  return fault == EINVAL || fault == EOPNOTSUPP ? 0 : fault;
}

int sync_directory(const std::filesystem::path& path) {
  Descriptor directory;
  if (const int fault = open(path, O_RDONLY | O_DIRECTORY, directory); fault != 0) return fault;
  return sync(directory);
}

int lock(const Descriptor& file) {
  return io_call("flock", [&] { return ::flock(file.get(), LOCK_EX | LOCK_NB); });
}

int rename(const std::filesystem::path& from, const std::filesystem::path& to) {
  return io_call("rename", [&] { return ::rename(from.c_str(), to.c_str()); });
}

int rename_with(const std::filesystem::path& from, const std::filesystem::path& to, unsigned flags) {
  return io_call("renameat2", [&] { return ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags); });
}

int remove_file(const std::filesystem::path& path) {
  return io_call("unlink", [&] { return ::unlink(path.c_str()); });
}

int remove_directory(const std::filesystem::path& path) {
  if (const int fault = remove_file(path / "manifest.json"); fault != 0 && fault != ENOENT) return fault;
  std::error_code fault;
  for (std::filesystem::directory_iterator at(path, fault), end; !fault && at != end; at.increment(fault)) {
    const int why = remove_file(at->path());
    std::error_code deep;
    if (why == EISDIR || why == EPERM)
      std::filesystem::remove_all(at->path(), deep);
    else if (why != 0 && why != ENOENT)
      return why;
    if (deep) return deep.value();
  }
  if (fault) return fault.value();
  return io_call("rmdir", [&] { return ::rmdir(path.c_str()); });
}

Error failure(Errc code, const std::string& what, int why, const std::filesystem::path& where) {
  return {code, what + ": " + std::strerror(why), where.string(),
          why == ENOSPC || why == EDQUOT                  ? "free some space, or save to another disk"
          : why == EFBIG                                  ? "a higher limit on the size of files (ulimit -f)"
          : why == EMFILE                                 ? "a higher limit on open files (ulimit -n)"
          : why == EACCES || why == EPERM || why == EROFS ? "a folder that can be written to"
                                                          : ""};
}

}  // namespace shard::checkpoint::io
