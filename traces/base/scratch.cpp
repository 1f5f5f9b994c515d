// A lock tells who is still needed: unlike a process id it holds across containers that share a directory.
#include "traces/base/scratch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <system_error>

namespace shard {
namespace {

namespace fs = std::filesystem;
/// Not what anyone calls a directory of his own: those are removed when abandoned, "shardscope-demo" must not be.
constexpr std::string_view kPrefix = ".shardscope-ranks-";
constexpr std::size_t kNameBytes = kPrefix.size() + 6;

void remove_tree(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

/// A descriptor that holds the lock of an own directory, or -1.
int lock_directory(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return -1;
  struct stat held {};
  struct stat named {};
  // The last two: it may have been removed as abandoned between its making and the lock.
  const bool mine = fstat(descriptor, &held) == 0 && held.st_uid == getuid() &&
                    flock(descriptor, LOCK_EX | LOCK_NB) == 0 && lstat(path.c_str(), &named) == 0 &&
                    named.st_ino == held.st_ino;
  if (mine) return descriptor;
  close(descriptor);
  return -1;
}

void remove_abandoned(const std::string& place) {
  std::error_code error;
  for (fs::directory_iterator entry(place, error), none; !error && entry != none; entry.increment(error)) {
    const std::string path = entry->path().string();
    const std::string name = entry->path().filename().string();
    if (name.size() != kNameBytes || !name.starts_with(kPrefix)) continue;
    const int lock = lock_directory(path);
    if (lock < 0) continue;
    remove_tree(path);
    close(lock);
  }
}

}  // namespace

Result<Scratch> Scratch::make_temporary(std::string_view whose) {
  std::error_code fault;
  const std::filesystem::path found = std::filesystem::temp_directory_path(fault);
  const std::string place = fault ? "/tmp" : found.string();
  if (std::optional<Scratch> made = make(place)) return std::move(*made);
  return Error{.code = Errc::cannot_create,
               .what = "no directory for " + std::string(whose),
               .where = place,
               .help = "set TMPDIR to a writable directory"};
}

std::optional<Scratch> Scratch::make(const std::string& place) {
  remove_abandoned(place);
  for (int attempt = 0; attempt < 3; ++attempt) {
    std::string path = place;
    path.append("/").append(kPrefix).append("XXXXXX");
    const stop::NotNow making;
    if (mkdtemp(path.data()) == nullptr) return std::nullopt;
    if (const int lock = lock_directory(path); lock >= 0) return Scratch(std::move(path), lock);
  }
  return std::nullopt;
}

Scratch::Scratch(std::string path, int lock)
    : path_(std::move(path)), lock_(lock), at_stop_(stop::at_stop([place = path_] { remove_tree(place); })) {}

Scratch::Scratch(Scratch&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      lock_(std::exchange(other.lock_, -1)),
      at_stop_(std::move(other.at_stop_)) {}

Scratch& Scratch::operator=(Scratch&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  std::swap(at_stop_, other.at_stop_);
  return *this;
}

Scratch::~Scratch() {
  if (!path_.empty()) {
    // Two threads that remove the same files stop at each other's: the one that takes signals may be at it.
    const stop::NotNow removing;
    remove_tree(path_);
  }
  if (lock_ >= 0) close(lock_);
}

}  // namespace shard
