// A set of names behind a mutex; what creates or names a file does so under it.
#include "traces/base/temporary_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <mutex>
#include <new>
#include <set>

namespace shard::temporary_files {
namespace {

struct Registry {
  std::mutex mutex;
  std::set<std::string> paths;
  bool ending = false;
};

/// Never destroyed: threads may outlive main().
Registry& registry() {
  static Registry& one = *new Registry;  // NOLINT(cppcoreguidelines-owning-memory)
  return one;
}

bool add(Registry& r, const std::string& path) {
  try {
    r.paths.insert(path);
    return true;
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
    return false;
  }
}

}  // namespace

int create(const std::string& path) noexcept {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  if (r.ending) return errno = ECANCELED, -1;
  if (r.paths.contains(path)) return errno = EEXIST, -1;
  if (!add(r, path)) return -1;
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) {
    const int why = errno;
    r.paths.erase(path);
    errno = why;
  }
  return fd;
}

void adopt(const std::string& path) noexcept {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  static_cast<void>(add(r, path));
}

int finish(const std::string& path, const std::string& name) noexcept {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  if (r.ending) return errno = ECANCELED, -1;
  if (std::rename(path.c_str(), name.c_str()) != 0) return -1;
  r.paths.erase(path);
  return 0;
}

int finish_unnamed(int fd, const std::string& path, const std::string& name) noexcept {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  if (r.ending) return errno = ECANCELED, -1;
  char held[32];
  std::snprintf(held, sizeof held, "/proc/self/fd/%d", fd);
  if (::linkat(AT_FDCWD, held, AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) return 0;
  if (errno != EEXIST) return -1;
  // linkat() replaces nothing; rename() does.
  if (::linkat(AT_FDCWD, held, AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) != 0) return -1;
  if (std::rename(path.c_str(), name.c_str()) == 0) return 0;
  const int why = errno;
  ::unlink(path.c_str());
  errno = why;
  return -1;
}

void keep(const std::string& path) noexcept {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  r.paths.erase(path);
}

void remove(const std::string& path) noexcept {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  if (r.paths.erase(path) != 0) ::unlink(path.c_str());
}

void remove_all() noexcept {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  r.ending = true;
  for (const std::string& path : r.paths) ::unlink(path.c_str());
  r.paths.clear();
}

}  // namespace shard::temporary_files
