// Links are followed by hand: canonical() knows no target that does not exist yet.
#include "traces/base/file_place.h"

#include <linux/magic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

namespace shard {
namespace {

namespace fs = std::filesystem;

/// As many as Linux follows (path_resolution(7)).
constexpr int kMostLinks = 40;

fs::path folder_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

/// In /proc, links lead to open files rather than to names.
bool in_proc(const fs::path& path) {
  struct statfs info {};
  return ::statfs(folder_of(path).c_str(), &info) == 0 && info.f_type == PROC_SUPER_MAGIC;
}

/// N of /proc/self/fd/N, or -1.
int own_descriptor(const fs::path& path) {
  std::error_code fault;
  if (!fs::equivalent(folder_of(path), "/proc/self/fd", fault) || fault) return -1;
  const std::string name = path.filename().string();
  int number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? number : -1;
}

Error cannot(const fs::path& path, std::string what, std::string help) {
  return {Errc::cannot_create, std::move(what), path.string(), std::move(help)};
}

}  // namespace

Result<FilePlace> file_place(const fs::path& path) {
  FilePlace place{.path = path};
  for (int links = 0; links < kMostLinks; ++links) {
    struct stat info {};
    if (::lstat(place.path.c_str(), &info) != 0) return place;
    if (!S_ISLNK(info.st_mode)) {
      if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) place.kind = FilePlace::Kind::special;
      return place;
    }
    if (in_proc(place.path)) {
      place.descriptor = own_descriptor(place.path);
      place.kind = place.descriptor >= 0 ? FilePlace::Kind::descriptor : FilePlace::Kind::special;
      return place;
    }
    std::error_code fault;
    const fs::path target = fs::read_symlink(place.path, fault);
    if (fault) return place;
    place.path = folder_of(place.path) / target;  // an absolute target stands for itself
  }
  return cannot(path, "the links of this name lead in a circle", "another name");
}

Result<void> can_write(const fs::path& path) {
  const Result<FilePlace> place = file_place(path);
  if (!place) return place.error();
  if (place->kind != FilePlace::Kind::file) return {};
  struct stat info {};
  const bool exists = ::stat(place->path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode))
    return cannot(path, "cannot be created: '" + path.string() + "' is a directory",
                  "the name of a file: " + (path / "run").string());
  const fs::path folder = folder_of(place->path);
  std::array<char, 4096> here{};
  if (place->path.is_relative() && ::getcwd(here.data(), here.size()) == nullptr && errno == ENOENT)
    return cannot(path, "cannot be created: the working directory was removed", "cd to a directory that exists");
  std::error_code fault;
  if (!fs::is_directory(folder, fault)) {
    const std::string named = (folder.is_absolute() ? folder : fs::current_path(fault) / folder).string();
    return cannot(path, "cannot be created: there is no directory " + named, "mkdir -p " + named);
  }
  if (::access(folder.c_str(), W_OK) != 0)
    return cannot(
        path, "cannot be created: the directory " + folder.string() + " cannot be written to: " + std::strerror(errno),
        "a file in a directory of yours");
  if (exists && ::access(place->path.c_str(), W_OK) != 0)
    return cannot(path, "cannot be created: the file that is there is write-protected", "another name, or chmod u+w");
  return {};
}

bool same_file(const fs::path& a, const fs::path& b) {
  struct stat of_a {};
  struct stat of_b {};
  const bool has_a = ::stat(a.c_str(), &of_a) == 0;
  const bool has_b = ::stat(b.c_str(), &of_b) == 0;
  if (has_a != has_b) return false;
  if (has_a) return !S_ISCHR(of_a.st_mode) && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
  const Result<FilePlace> place_a = file_place(a);
  const Result<FilePlace> place_b = file_place(b);
  if (!place_a || !place_b) return false;
  if (place_a->path.filename() != place_b->path.filename()) return false;
  std::error_code fault;
  if (fs::equivalent(folder_of(place_a->path), folder_of(place_b->path), fault) && !fault) return true;
  // Folders that are still to be made have no inode.
  const auto full = [&fault](const fs::path& path) {
    return fs::weakly_canonical(fs::absolute(folder_of(path), fault), fault);
  };
  fault.clear();
  const fs::path folder_a = full(place_a->path);
  const fs::path folder_b = full(place_b->path);
  return !fault && folder_a == folder_b;
}

std::string unique_name(std::string_view prefix) {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number))
    number = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) ^
             static_cast<std::uint64_t>(::getpid()) << 32U;
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(number));
  return std::string(prefix) + "." + digits.data();
}

}  // namespace shard
