// The calls of the file system that checkpoints are made of, in one place, so that tests can let each of them fail.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "traces/base/result.h"

/// All return 0 or an errno, and go on after a signal. Thread-safe.
namespace shard::checkpoint::io {

/// Of a Hook: the call does a part of its bytes, and succeeds.
inline constexpr int kShort = -1;
/// For tests: told a call's name before it is made. 0 lets it happen, an errno is what it fails with, kShort cuts a
/// pwrite or pread short. An empty one ends that. Set while no other thread is in here.
using Hook = std::function<int(const char* call)>;
void set_hook(Hook hook);

/// An open file or directory, closed at the end.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// As open(2), with O_CLOEXEC, never waiting for a pipe's other end; a new file has mode 0666 less the umask.
[[nodiscard]] int open(const std::filesystem::path& path, int flags, Descriptor& into);
[[nodiscard]] int make_directory(const std::filesystem::path& path);
/// Gives a file its size and, where the file system can, its room on the disk. fallocate(2), not posix_fallocate(3):
/// that writes to every block where the file system cannot, minutes for what is then written anyway.
[[nodiscard]] int reserve(const Descriptor& file, std::int64_t bytes);
[[nodiscard]] int write_at(const Descriptor& file, std::int64_t offset, std::span<const std::byte> bytes);
/// `got` is less than asked for only where the file ends.
[[nodiscard]] int read_at(const Descriptor& file, std::int64_t offset, std::span<std::byte> into, std::size_t& got);
[[nodiscard]] int size_of(const Descriptor& file, std::int64_t& bytes);  ///< EINVAL: no regular file
/// What was written sets off for the disk, which nobody waits for; sync() does.
void start_writing(const Descriptor& file);
/// Down to the disk. File systems that cannot do that for directories are forgiven.
[[nodiscard]] int sync(const Descriptor& file);
[[nodiscard]] int sync_directory(const std::filesystem::path& path);
/// Takes the lock of a directory or file, without waiting. EWOULDBLOCK: another open file has it. It ends with the
/// last process that has `file` open.
[[nodiscard]] int lock(const Descriptor& file);
[[nodiscard]] int rename(const std::filesystem::path& from, const std::filesystem::path& to);
/// renameat2(2) with RENAME_NOREPLACE or RENAME_EXCHANGE. EINVAL, ENOSYS: not here.
[[nodiscard]] int rename_with(const std::filesystem::path& from, const std::filesystem::path& to, unsigned flags);
[[nodiscard]] int remove_file(const std::filesystem::path& path);
/// A directory with all in it, manifest.json first, so that what is half removed is no checkpoint.
[[nodiscard]] int remove_directory(const std::filesystem::path& path);

/// "WHAT: reason", with what helps against a full disk.
[[nodiscard]] Error failure(Errc code, const std::string& what, int why, const std::filesystem::path& where);

}  // namespace shard::checkpoint::io
