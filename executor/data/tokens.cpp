// Token files: text as bytes, nanoGPT's bare uint16, llm.c's headed uint16.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "executor/cpu/kernels/init.h"
#include "executor/data/sources.h"
#include "traces/base/input_file.h"

namespace shard::data {
namespace {

/// llm.c data files: 256 int32, of which magic, version, number of tokens; then uint16 tokens.
/// Source: llm.c dev/data/data_common.py.
constexpr std::int32_t kLlmcMagic = 20240520;
constexpr std::int64_t kLlmcHeaderBytes = 1024;

Error fault(Errc code, const std::filesystem::path& path, std::string what, std::string help) {
  return {.code = code, .what = std::move(what), .where = path.string(), .help = std::move(help)};
}

/// A regular file open for reading. Read, not mapped: a mapping of a file that is cut short meanwhile is a SIGBUS.
class File {
 public:
  static Result<File> open(const std::filesystem::path& path) {
    Result<InputFile> file = InputFile::open(path);
    if (!file)
      return fault(Errc::no_input, path, "cannot read the data file: " + file.error().what,
                   "--data text:FILE with a file that exists, or --data random");
    if (!file->regular())
      return fault(Errc::no_input, path, "the data is not a regular file, and is read at many places",
                   "a file; what a pipe or a device gives has to be written to one first");
    if (file->bytes() == 0)
      return fault(Errc::malformed, path, "the data file is empty", "a file with text, or --data random");
    return File(std::move(*file));
  }

  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  [[nodiscard]] std::int64_t bytes() const { return file_.bytes(); }  ///< when it was opened

  [[nodiscard]] Result<void> read(std::int64_t offset, std::span<std::byte> into) const {
    const Result<std::size_t> got = file_.read_at(offset, into);
    if (!got) return fault(Errc::io, path(), "cannot read the data file: " + got.error().what, "check the file");
    if (*got == into.size()) return {};
    return fault(Errc::malformed, path(),
                 "the data file was changed while it was being read: it had " + std::to_string(bytes()) +
                     " bytes and now ends before byte " + std::to_string(offset + static_cast<std::int64_t>(*got) + 1),
                 "a copy that nobody writes to");
  }

 private:
  explicit File(InputFile file) : file_(std::move(file)) {}
  InputFile file_;
};

class Tokens final : public DataSource {
 public:
  Tokens(std::string name, File file, std::int64_t begin, std::int64_t count, TokenForm form, const BatchShape& shape)
      : name_(std::move(name)),
        file_(std::move(file)),
        begin_(begin),
        count_(count),
        form_(form),
        shape_(shape),
        raw_(static_cast<std::size_t>((shape.sequence + 1) * width())) {}

  [[nodiscard]] std::int64_t count() const { return count_; }

  Result<void> fill(cpu::ThreadPool& pool, std::int64_t number, std::span<std::byte> input,
                    std::span<std::byte> target) override {
    const RandomKey key{shape_.seed, RandomStream::tokens, static_cast<std::uint64_t>(number)};
    const auto starts = static_cast<std::int32_t>(std::min<std::int64_t>(count_ - shape_.sequence, INT32_MAX));
    auto* in = reinterpret_cast<std::int32_t*>(input.data());
    auto* out = reinterpret_cast<std::int32_t*>(target.data());
    for (std::int64_t b = 0; b < shape_.batch; ++b) {
      std::int32_t start = 0;
      cpu::random_integers(pool, key, b, 1, starts, &start);
      if (Result<void> r = file_.read(begin_ + start * width(), raw_); !r) return r;
      for (std::int64_t s = 0; s < shape_.sequence; ++s) {
        in[b * shape_.sequence + s] = token(s);
        out[b * shape_.sequence + s] = token(s + 1);
      }
      if (Result<void> r = check(in + b * shape_.sequence, out + (b + 1) * shape_.sequence - 1); !r) return r;
    }
    return {};
  }
  [[nodiscard]] std::string describe() const override { return name_ + ", " + std::to_string(count_) + " tokens"; }

  /// Reads the whole file once: is every token in the model's vocabulary?
  Result<void> check_all(const model::Model& model) {
    if (model.vocabulary >= (form_ == TokenForm::bytes ? 256 : 65536)) return {};
    std::vector<std::byte> block(std::size_t{1} << 20);
    std::int64_t done = 0;
    while (done < count_) {
      const std::int64_t now = std::min<std::int64_t>(count_ - done, static_cast<std::int64_t>(block.size()) / width());
      const auto raw = std::span(block).first(static_cast<std::size_t>(now * width()));
      if (Result<void> r = file_.read(begin_ + done * width(), raw); !r) return r;
      for (std::int64_t i = 0; i < now; ++i)
        if (const std::int32_t value = token(raw, i); value >= model.vocabulary)
          return fault(Errc::contradiction, file_.path(),
                       "token " + std::to_string(value) + " at position " + std::to_string(done + i) +
                           " is beyond the vocabulary of " + std::to_string(model.vocabulary) + " of model " +
                           model.name,
                       "a model whose vocab_size is at least " + std::to_string(value + 1));
      done += now;
    }
    vocabulary_ = model.vocabulary;
    return {};
  }

 private:
  [[nodiscard]] std::int64_t width() const { return form_ == TokenForm::bytes ? 1 : 2; }
  [[nodiscard]] std::int32_t token(std::span<const std::byte> raw, std::int64_t i) const {
    if (form_ == TokenForm::bytes) return static_cast<std::int32_t>(raw[static_cast<std::size_t>(i)]);
    std::uint16_t value = 0;
    std::memcpy(&value, raw.data() + 2 * i, 2);
    return value;
  }
  [[nodiscard]] std::int32_t token(std::int64_t i) const { return token(raw_, i); }
  /// What was written into the file since it was checked must not become an index beyond the embedding.
  [[nodiscard]] Result<void> check(const std::int32_t* first, const std::int32_t* last_target) const {
    const bool fits = *last_target < vocabulary_ &&
                      std::all_of(first, first + shape_.sequence, [&](std::int32_t t) { return t < vocabulary_; });
    if (fits) return {};
    return fault(Errc::malformed, file_.path(),
                 "the data file was changed while it was being read: a token is beyond the vocabulary of " +
                     std::to_string(vocabulary_),
                 "a copy that nobody writes to");
  }

  std::string name_;
  File file_;
  std::int64_t begin_;
  std::int64_t count_;
  TokenForm form_;
  BatchShape shape_;
  std::int64_t vocabulary_ = INT32_MAX;  ///< where not every value of the form is a token
  std::vector<std::byte> raw_;           ///< of one sequence and its last target
};

}  // namespace

Result<std::unique_ptr<DataSource>> open_tokens(const std::filesystem::path& path, TokenForm form,
                                                const model::Model& model, const BatchShape& shape) {
  Result<File> file = File::open(path);
  if (!file) return file.error();
  const std::int64_t bytes = file->bytes();
  std::int64_t begin = 0;
  std::int64_t count = bytes;
  if (form == TokenForm::uint16) {
    std::int32_t head[3] = {};
    if (bytes >= kLlmcHeaderBytes)
      if (Result<void> r = file->read(0, std::as_writable_bytes(std::span(head))); !r) return r.error();
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
  const std::int64_t all = count;
  const auto first = static_cast<std::int64_t>(shape.begin * static_cast<double>(all));
  count = static_cast<std::int64_t>(shape.end * static_cast<double>(all)) - first;
  begin += first * (form == TokenForm::uint16 ? 2 : 1);
  if (count <= shape.sequence && count < all)
    return fault(Errc::contradiction, path,
                 "of " + std::to_string(all) + " tokens this part holds " + std::to_string(count) +
                     ", and one sequence and its target need " + std::to_string(shape.sequence + 1),
                 "a longer file, or another share of it");
  if (count <= shape.sequence)
    return fault(Errc::malformed, path,
                 "the file holds " + std::to_string(count) + " tokens, one sequence and its target need " +
                     std::to_string(shape.sequence + 1),
                 count > 1 ? "--sequence " + std::to_string(count - 1) : "a longer file");
  const std::string place = count == all ? "" : " from token " + std::to_string(first) + " on";
  const std::string name = (form == TokenForm::bytes ? "text:" : "") + path.string() + place;
  auto source = std::make_unique<Tokens>(name, std::move(*file), begin, count, form, shape);
  if (Result<void> r = source->check_all(model); !r) return r.error();
  return std::unique_ptr<DataSource>(std::move(source));
}

}  // namespace shard::data
