// Read, not mapped: a mapping of a file that is cut short meanwhile is a SIGBUS.
#include "executor/state/tensor_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace shard {
namespace {

Error tensor_file_fault(Errc code, const std::filesystem::path& path, std::string what, std::string help) {
  return {.code = code, .what = std::move(what), .where = path.string(), .help = std::move(help)};
}

}  // namespace

TensorFile::TensorFile(TensorFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(other.bytes_),
      data_begin_(other.data_begin_),
      tensors_(std::move(other.tensors_)) {}

TensorFile::~TensorFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<TensorFile> TensorFile::open(const std::filesystem::path& path) {
  // O_NONBLOCK: a pipe is refused, not waited for.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return tensor_file_fault(Errc::no_input, path, std::string("cannot read the weights: ") + std::strerror(errno),
                             "a safetensors file that exists, or its folder");
  TensorFile file(path, descriptor);
  struct stat info {};
  if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode))
    return tensor_file_fault(Errc::no_input, path, "is not a regular file, and weights are read at many places",
                             "a file; what a pipe or a device gives has to be written to one first");
  file.bytes_ = info.st_size;
  std::array<std::byte, safetensors::kPrefixBytes> prefix{};
  if (file.bytes_ >= safetensors::kPrefixBytes)
    if (Result<void> read = file.read_at(0, prefix); !read) return read.error();
  const Result<std::int64_t> length = safetensors::read_prefix(prefix, file.bytes_, path.string());
  if (!length) return length.error();
  std::string header(static_cast<std::size_t>(*length), '\0');
  if (Result<void> read = file.read_at(safetensors::kPrefixBytes, std::as_writable_bytes(std::span(header))); !read)
    return read.error();
  file.data_begin_ = safetensors::kPrefixBytes + *length;
  Result<std::vector<safetensors::Tensor>> tensors =
      safetensors::parse_header(header, file.bytes_ - file.data_begin_, path.string());
  if (!tensors) return tensors.error();
  file.tensors_ = std::move(*tensors);
  return file;
}

Result<void> TensorFile::read(std::int64_t offset, std::span<std::byte> into) const {
  return read_at(data_begin_ + offset, into);
}

Result<void> TensorFile::read_at(std::int64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t count = pread(descriptor_, into.data(), into.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      return tensor_file_fault(Errc::io, path_, std::string("cannot read the weights: ") + std::strerror(errno),
                               "check the file");
    if (count == 0)
      return tensor_file_fault(Errc::malformed, path_,
                               "was changed while it was being read: it had " + std::to_string(bytes_) +
                                   " bytes and now ends before byte " + std::to_string(offset + 1),
                               "a copy that nobody writes to");
    offset += count;
    into = into.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

}  // namespace shard
