// Without a name until it is whole where the file system can do that (O_TMPFILE), else under a hidden unique name.
#include "traces/base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "traces/base/file_place.h"
#include "traces/base/temporary_files.h"

namespace shard {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kBufferBytes = 1u << 16;
/// Names are at most 255 bytes; a partial one adds a dot, 17 bytes and ".partial".
constexpr std::size_t kNameKept = 200;

std::string partial_name(const fs::path& target) {
  const std::string name = "." + target.filename().string().substr(0, kNameKept);
  return (target.parent_path() / (unique_name(name) + ".partial")).string();
}

}  // namespace

struct OutputFile::State {
  fs::path path;        // as given, for errors
  std::string target;   // what it leads to
  std::string partial;  // the name it has until it is whole; not yet given where unnamed
  int fd = -1;
  bool direct = false;   // a device, a pipe or a descriptor
  bool unnamed = false;  // made with O_TMPFILE
  bool named = false;    // has its final name
  Appears appears = Appears::whole;
  std::string buffer;
  int error = 0;      // errno of the first failed write
  off_t written = 0;  // by all write()s
  off_t flushed = 0;  // by the last flush() that succeeded

  ~State() { abandon(false); }

  [[nodiscard]] Error failure(Errc code, const std::string& what, int why) const {
    return {code, what + ": " + std::strerror(why), path.string(),
            why == ENOSPC || why == EDQUOT ? "free some space"
            : why == EFBIG                 ? "a higher limit on the size of files (ulimit -f)"
                                           : ""};
  }
  [[nodiscard]] Error not_named(int why) const {
    return failure(Errc::cannot_create, "the file cannot be given its name", why);
  }

  [[nodiscard]] Result<void> open();
  void push(std::span<const std::byte> bytes);
  void push_buffer() {
    push(std::as_bytes(std::span(buffer)));
    buffer.clear();
  }
  [[nodiscard]] Result<void> give_name();
  void abandon(bool even_growing);
  void close_it() {
    if (fd >= 0) ::close(std::exchange(fd, -1));
  }
};

Result<void> OutputFile::State::open() {
  Result<FilePlace> place = file_place(path);
  if (!place) return place.error();
  const auto cannot = [&](int why) { return failure(Errc::cannot_create, "the file cannot be created", why); };
  if (place->kind != FilePlace::Kind::file) {
    direct = true;
    fd = place->kind == FilePlace::Kind::descriptor ? ::fcntl(place->descriptor, F_DUPFD_CLOEXEC, 0)
                                                    : ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return cannot(errno);
    return {};
  }
  if (Result<void> ok = can_write(path); !ok) return ok;
  target = place->path.string();
  struct stat old {};
  const bool replaces = ::stat(target.c_str(), &old) == 0;
  if (appears == Appears::temporary) {
    fd = temporary_files::create(target);
    named = fd >= 0;
  } else {
    partial = partial_name(place->path);
    const std::string folder = place->path.has_parent_path() ? place->path.parent_path().string() : ".";
    fd = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    // To be given a name it is reached through /proc.
    unnamed = fd >= 0 && ::access(("/proc/self/fd/" + std::to_string(fd)).c_str(), F_OK) == 0;
    if (!unnamed) {
      close_it();
      fd = temporary_files::create(partial);
    }
  }
  if (fd < 0) return cannot(errno);
  if (replaces) static_cast<void>(::fchmod(fd, old.st_mode & 0777U));
  return {};
}

void OutputFile::State::push(std::span<const std::byte> bytes) {
  while (error == 0 && !bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0) {
      if (errno != EINTR) error = errno;
      continue;
    }
    written += count;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

Result<void> OutputFile::State::give_name() {
  if (direct || named) return {};
  named =
      (unnamed ? temporary_files::finish_unnamed(fd, partial, target) : temporary_files::finish(partial, target)) == 0;
  if (!named) return not_named(errno);
  return {};
}

void OutputFile::State::abandon(bool even_growing) {
  if (fd < 0) return;
  if (!direct && named && appears == Appears::growing) {
    // What was flushed is whole; a cut line or frame behind it is not.
    if (written > flushed) static_cast<void>(::ftruncate(fd, flushed));
    struct stat mine {};
    struct stat at_name {};
    const bool still_named = ::fstat(fd, &mine) == 0 && ::lstat(target.c_str(), &at_name) == 0 &&
                             mine.st_dev == at_name.st_dev && mine.st_ino == at_name.st_ino;
    if (still_named && even_growing) ::unlink(target.c_str());
  }
  close_it();
  if (direct || unnamed) return;
  if (appears == Appears::temporary) temporary_files::remove(target);
  if (!named) temporary_files::remove(partial);
}

OutputFile::OutputFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
OutputFile::OutputFile(OutputFile&&) noexcept = default;
OutputFile& OutputFile::operator=(OutputFile&&) noexcept = default;
OutputFile::~OutputFile() = default;

Result<OutputFile> OutputFile::create(const fs::path& path, Appears appears) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->appears = appears;
  if (Result<void> opened = state->open(); !opened) return opened.error();
  return OutputFile(std::move(state));
}

void OutputFile::write(std::string_view bytes) {
  write(std::as_bytes(std::span(bytes)));
}

void OutputFile::write(std::span<const std::byte> bytes) {
  State& state = *state_;
  if (state.buffer.size() + bytes.size() > kBufferBytes) state.push_buffer();
  if (bytes.size() >= kBufferBytes)
    state.push(bytes);
  else
    state.buffer.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<void> OutputFile::flush() {
  State& state = *state_;
  state.push_buffer();
  if (state.error != 0) return state.failure(Errc::io, "writing failed", state.error);
  state.flushed = state.written;
  if (state.appears == Appears::growing && state.written > 0) return state.give_name();
  return {};
}

Result<void> OutputFile::sync() {
  if (Result<void> flushed = flush(); !flushed) return flushed;
  if (state_->direct || ::fsync(state_->fd) == 0) return {};
  return state_->failure(Errc::io, "writing failed", errno);
}

fs::path OutputFile::readable_at() const {
  if (state_->named) return state_->target;
  return state_->unnamed ? "/proc/self/fd/" + std::to_string(state_->fd) : state_->partial;
}

Result<void> OutputFile::finish() {
  State& state = *state_;
  Result<void> done = flush();
  if (done && state.unnamed) done = state.give_name();
  if (!done) {
    state.abandon(false);
    return done;
  }
  // Network file systems report a full disk only here.
  if (::close(std::exchange(state.fd, -1)) != 0)
    done = state.failure(Errc::io, "writing failed", errno);
  else if (!state.unnamed)
    done = state.give_name();
  if (!done && !state.direct && !state.named) temporary_files::remove(state.partial);
  return done;
}

void OutputFile::discard() {
  state_->abandon(true);
}

Result<void> write_file(const fs::path& path, std::string_view text) {
  Result<OutputFile> out = OutputFile::create(path);
  if (!out) return out.error();
  out->write(text);
  return out->finish();
}

Result<void> copy_to_file(const fs::path& from, const fs::path& path) {
  const int in = ::open(from.c_str(), O_RDONLY | O_CLOEXEC);
  if (in < 0) return Error{Errc::no_input, std::string("cannot be read: ") + std::strerror(errno), from.string(), ""};
  std::vector<std::byte> piece(std::size_t{1} << 20);
  Result<OutputFile> out = OutputFile::create(path);
  ssize_t got = 0;
  while (out && (got = ::read(in, piece.data(), piece.size())) != 0) {
    if (got > 0) out->write(std::span(piece).first(static_cast<std::size_t>(got)));
    if (got < 0 && errno != EINTR) break;
  }
  const int why = errno;
  ::close(in);
  if (!out) return out.error();
  if (got < 0) return Error{Errc::io, std::string("reading failed: ") + std::strerror(why), from.string(), ""};
  return out->finish();
}

}  // namespace shard
