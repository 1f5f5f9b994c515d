// One byte more than allowed is asked for.
#include "traces/base/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace shard {
namespace {

/// Closes a descriptor.
struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

std::string size_text(std::size_t bytes) {
  if (bytes >= 1U << 30U && bytes % (1U << 30U) == 0) return std::to_string(bytes >> 30U) + " GiB";
  if (bytes >= 1U << 20U && bytes % (1U << 20U) == 0) return std::to_string(bytes >> 20U) + " MiB";
  return std::to_string(bytes) + " bytes";
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path, std::string_view what, Bytes most,
                              std::string_view too_large) {
  const auto bound = static_cast<std::size_t>(most.count());
  const std::string named(what);
  const auto unreadable = [&](Errc code, const std::string& why) {
    return Error{code, "cannot read the " + named + ": " + why, path.string(), ""};
  };
  const auto larger = [&] {
    return Error{Errc::malformed, "is larger than " + size_text(bound) + ", so it is no " + named, path.string(),
                 std::string(too_large)};
  };
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat info {};
  if (file.fd < 0 || ::fstat(file.fd, &info) != 0) return unreadable(Errc::no_input, std::strerror(errno));
  if (S_ISDIR(info.st_mode)) return unreadable(Errc::no_input, "it is a directory");
  const auto size = static_cast<std::size_t>(info.st_size);
  if (S_ISREG(info.st_mode) && size > bound) return larger();
  std::string text;
  constexpr std::size_t kPiece = 1u << 16;
  if (S_ISREG(info.st_mode)) text.reserve(size + kPiece);
  while (true) {
    const std::size_t before = text.size();
    text.resize(before + std::min(kPiece, bound + 1 - before));
    const ssize_t got = ::read(file.fd, text.data() + before, text.size() - before);
    const int why = errno;
    text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && why != EINTR) return unreadable(Errc::io, std::strerror(why));
    if (got == 0) return text;
    if (text.size() > bound) return larger();
  }
}

}  // namespace shard
