// Token files: text as bytes, nanoGPT's bare uint16, llm.c's headed uint16.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "executor/cpu/kernels/init.h"
#include "executor/data/sources.h"

namespace shard::data {
namespace {

/// llm.c data files: 256 int32, of which magic, version, number of tokens; then uint16 tokens.
/// Source: llm.c dev/data/data_common.py.
constexpr std::int32_t kLlmcMagic = 20240520;
constexpr std::int64_t kLlmcHeaderBytes = 1024;

Error fault(Errc code, const std::filesystem::path& path, std::string what, std::string help) {
  return {.code = code, .what = std::move(what), .where = path.string(), .help = std::move(help)};
}

/// A whole file mapped for reading; unmapped when it goes.
class Mapping {
 public:
  Mapping() = default;
  Mapping(const std::byte* data, std::int64_t bytes) : data_(data), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept { *this = std::move(other); }
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping() {
    if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), static_cast<std::size_t>(bytes_));
  }
  [[nodiscard]] const std::byte* data() const { return data_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  const std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

Result<Mapping> map(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return fault(Errc::no_input, path, std::string("cannot read the data file: ") + std::strerror(errno),
                 "--data text:FILE with a file that exists, or --data random");
  struct stat info {};
  const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  if (!regular || info.st_size == 0) {
    close(fd);
    return regular ? fault(Errc::malformed, path, "the data file is empty", "a file with text, or --data random")
                   : fault(Errc::no_input, path, "the data is not a regular file", "name one file");
  }
  void* data = mmap(nullptr, static_cast<std::size_t>(info.st_size), PROT_READ, MAP_SHARED, fd, 0);
  const int why = errno;
  close(fd);
  if (data == MAP_FAILED)
    return fault(Errc::no_input, path, std::string("cannot map the data file: ") + std::strerror(why),
                 "check the file");
  return Mapping(static_cast<const std::byte*>(data), info.st_size);
}

class Tokens final : public DataSource {
 public:
  Tokens(std::string name, Mapping file, std::int64_t begin, std::int64_t count, TokenForm form,
         const BatchShape& shape)
      : name_(std::move(name)), file_(std::move(file)), begin_(begin), count_(count), form_(form), shape_(shape) {}

  [[nodiscard]] std::int32_t token(std::int64_t i) const {
    if (form_ == TokenForm::bytes) return static_cast<std::int32_t>(file_.data()[begin_ + i]);
    std::uint16_t value = 0;
    std::memcpy(&value, file_.data() + begin_ + 2 * i, 2);
    return value;
  }
  [[nodiscard]] std::int64_t count() const { return count_; }

  void fill(cpu::ThreadPool& pool, std::int64_t number, std::span<std::byte> input,
            std::span<std::byte> target) override {
    const cpu::RandomKey key{shape_.seed, cpu::RandomStream::tokens, static_cast<std::uint64_t>(number)};
    const auto starts = static_cast<std::int32_t>(std::min<std::int64_t>(count_ - shape_.sequence, INT32_MAX));
    auto* in = reinterpret_cast<std::int32_t*>(input.data());
    auto* out = reinterpret_cast<std::int32_t*>(target.data());
    for (std::int64_t b = 0; b < shape_.batch; ++b) {
      std::int32_t start = 0;
      cpu::random_integers(pool, key, b, 1, starts, &start);
      for (std::int64_t s = 0; s < shape_.sequence; ++s) {
        in[b * shape_.sequence + s] = token(start + s);
        out[b * shape_.sequence + s] = token(start + s + 1);
      }
    }
  }
  [[nodiscard]] std::string describe() const override { return name_ + ", " + std::to_string(count_) + " tokens"; }

 private:
  std::string name_;
  Mapping file_;
  std::int64_t begin_;
  std::int64_t count_;
  TokenForm form_;
  BatchShape shape_;
};

}  // namespace

Result<std::unique_ptr<DataSource>> open_tokens(const std::filesystem::path& path, TokenForm form,
                                                const model::Model& model, const BatchShape& shape) {
  Result<Mapping> file = map(path);
  if (!file) return file.error();
  const std::int64_t bytes = file->bytes();
  std::int64_t begin = 0;
  std::int64_t count = bytes;
  if (form == TokenForm::uint16) {
    std::int32_t head[3] = {};
    if (bytes >= kLlmcHeaderBytes) std::memcpy(head, file->data(), sizeof head);
    const bool headed = head[0] == kLlmcMagic;
    begin = headed ? kLlmcHeaderBytes : 0;
    if ((bytes - begin) % 2 != 0)
      return fault(
          Errc::malformed, path,
          "a file of uint16 tokens has an odd number of bytes (" + std::to_string(bytes) + "): it is truncated",
          "copy the file again; for plain text use --data text:" + path.string());
    count = (bytes - begin) / 2;
    if (headed && head[2] > count)
      return fault(
          Errc::malformed, path,
          "the header promises " + std::to_string(head[2]) + " tokens, the file holds " + std::to_string(count),
          "copy the file again");
    if (headed && head[2] >= 0) count = head[2];
  }
  if (count <= shape.sequence)
    return fault(Errc::malformed, path,
                 "the file holds " + std::to_string(count) + " tokens, one sequence and its target need " +
                     std::to_string(shape.sequence + 1),
                 count > 1 ? "--sequence " + std::to_string(count - 1) : "a longer file");
  const char* prefix = form == TokenForm::bytes ? "text:" : "";
  auto source = std::make_unique<Tokens>(prefix + path.string(), std::move(*file), begin, count, form, shape);
  if (model.vocabulary < (form == TokenForm::bytes ? 256 : 65536))
    for (std::int64_t i = 0; i < count; ++i)
      if (source->token(i) >= model.vocabulary)
        return fault(Errc::contradiction, path,
                     "token " + std::to_string(source->token(i)) + " at position " + std::to_string(i) +
                         " is beyond the vocabulary of " + std::to_string(model.vocabulary) + " of model " + model.name,
                     "a model whose vocab_size is at least " + std::to_string(source->token(i) + 1));
  return std::unique_ptr<DataSource>(std::move(source));
}

}  // namespace shard::data
