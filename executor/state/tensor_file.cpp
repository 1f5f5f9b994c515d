// Read, not mapped: a mapping of a file that is cut short meanwhile is a SIGBUS.
#include "executor/state/tensor_file.h"

#include <array>
#include <string>
#include <utility>

namespace shard {
namespace {

Error tensor_file_fault(Errc code, const std::filesystem::path& path, std::string what, std::string help) {
  return {.code = code, .what = std::move(what), .where = path.string(), .help = std::move(help)};
}

}  // namespace

Result<TensorFile> TensorFile::open(const std::filesystem::path& path) {
  Result<InputFile> opened = InputFile::open(path);
  if (!opened)
    return tensor_file_fault(Errc::no_input, path, "cannot read the weights: " + opened.error().what,
                             "a safetensors file that exists, or its folder");
  if (!opened->regular())
    return tensor_file_fault(Errc::no_input, path, "is not a regular file, and weights are read at many places",
                             "a file; what a pipe or a device gives has to be written to one first");
  TensorFile file(std::move(*opened));
  std::array<std::byte, safetensors::kPrefixBytes> prefix{};
  if (file.bytes() >= safetensors::kPrefixBytes)
    if (Result<void> read = file.read_at(0, prefix); !read) return read.error();
  const Result<std::int64_t> length = safetensors::read_prefix(prefix, file.bytes(), path.string());
  if (!length) return length.error();
  std::string header(static_cast<std::size_t>(*length), '\0');
  if (Result<void> read = file.read_at(safetensors::kPrefixBytes, std::as_writable_bytes(std::span(header))); !read)
    return read.error();
  file.data_begin_ = safetensors::kPrefixBytes + *length;
  Result<std::vector<safetensors::Tensor>> tensors =
      safetensors::parse_header(header, file.bytes() - file.data_begin_, path.string());
  if (!tensors) return tensors.error();
  file.tensors_ = std::move(*tensors);
  return file;
}

Result<void> TensorFile::read(std::int64_t offset, std::span<std::byte> into) const {
  return read_at(data_begin_ + offset, into);
}

Result<void> TensorFile::read_at(std::int64_t offset, std::span<std::byte> into) const {
  const Result<std::size_t> got = file_.read_at(offset, into);
  if (!got)
    return tensor_file_fault(Errc::io, path(), "cannot read the weights: " + got.error().what, "check the file");
  if (*got == into.size()) return {};
  return tensor_file_fault(Errc::malformed, path(),
                           "was changed while it was being read: it had " + std::to_string(bytes()) +
                               " bytes and now ends before byte " +
                               std::to_string(offset + static_cast<std::int64_t>(*got) + 1),
                           "a copy that nobody writes to");
}

}  // namespace shard
