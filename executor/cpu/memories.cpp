// Anonymous memory and a nameless file.
#include "executor/cpu/memories.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace shard::cpu {
namespace {

Error disk_error(const std::string& path, const char* what) {
  return {.code = Errc::io,
          .what = std::string(what) + ": " + std::strerror(errno),
          .where = path,
          .help = "another --disk-path"};
}

/// The file has no name from the start where the system can do that, else from right after its creation.
int nameless_file(const std::string& directory) {
#ifdef O_TMPFILE
  if (const int file = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); file >= 0) return file;
#endif
  std::string name = directory + "/shardscope-XXXXXX";
  const int file = mkostemp(name.data(), O_CLOEXEC);
  if (file >= 0) unlink(name.c_str());
  return file;
}

}  // namespace

Memories& Memories::operator=(Memories&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(host_, other.host_);
  std::swap(pinned_, other.pinned_);
  std::swap(owns_host_, other.owns_host_);
  std::swap(disk_, other.disk_);
  std::swap(disk_path_, other.disk_path_);
  return *this;
}

Memories::~Memories() {
  if (owns_host_) munmap(host_.data(), host_.size());
  if (disk_ >= 0) close(disk_);
}

Result<Memories> Memories::make(const plan::Plan& plan, std::span<std::byte> device, const std::string& disk_path,
                                std::span<std::byte> pinned) {
  Memories memories;
  memories.device_ = device;
  memories.pinned_ = pinned;
  const auto bytes = [&](Memory m) { return plan.arena_bytes[static_cast<std::size_t>(m)].count(); };
  if (const std::int64_t host = bytes(Memory::host); host > 0) {
    void* const arena = mmap(nullptr, static_cast<std::size_t>(host), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena == MAP_FAILED)
      return Error{.code = Errc::does_not_fit,
                   .what = "there is no room for " + std::to_string(host) + " bytes of host memory",
                   .where = "host arena",
                   .help = "keep more on the device (--placement), or more memory"};
    memories.host_ = {static_cast<std::byte*>(arena), static_cast<std::size_t>(host)};
    memories.owns_host_ = true;
  }
  if (const std::int64_t disk = bytes(Memory::disk); disk > 0) {
    memories.disk_path_ = disk_path;
    memories.disk_ = nameless_file(disk_path);
    if (memories.disk_ < 0) {
      Error error = disk_error(disk_path, "no file can be made for optimizer state");
      error.code = Errc::cannot_create;
      return error;
    }
    errno = posix_fallocate(memories.disk_, 0, disk);
    if (errno == ENOSPC)
      return Error{.code = Errc::does_not_fit,
                   .what = "there is no room for " + std::to_string(disk) + " bytes of optimizer state",
                   .where = disk_path,
                   .help = "another --disk-path, or --optimizer-placement host"};
    if (errno != 0) return disk_error(disk_path, "no room can be set aside for optimizer state");
  }
  return memories;
}

Result<void> Memories::read_disk(std::int64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t n = pread(disk_, to.data(), to.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return disk_error(disk_path_, "optimizer state could not be read");
    to = to.subspan(static_cast<std::size_t>(n));
    offset += n;
  }
  return {};
}

Result<void> Memories::write_disk(std::int64_t offset, std::span<const std::byte> from) const {
  while (!from.empty()) {
    const ssize_t n = pwrite(disk_, from.data(), from.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return disk_error(disk_path_, "optimizer state could not be written");
    from = from.subspan(static_cast<std::size_t>(n));
    offset += n;
  }
  return {};
}

Result<void> Memories::zero_disk(std::int64_t offset, std::int64_t bytes) const {
  static constexpr std::array<std::byte, 65536> kZeros{};
  for (std::int64_t done = 0; done < bytes;) {
    const std::int64_t n = std::min<std::int64_t>(bytes - done, kZeros.size());
    if (Result<void> r = write_disk(offset + done, std::span(kZeros).first(static_cast<std::size_t>(n))); !r) return r;
    done += n;
  }
  return {};
}

}  // namespace shard::cpu
