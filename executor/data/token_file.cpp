// Token files of nanoGPT, llm.c and Megatron-LM, and text.
#include "executor/data/token_file.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace shard::data {
namespace {

namespace fs = std::filesystem;

/// llm.c data files: 256 int32, of which magic, version, number of tokens; then uint16 tokens of GPT-2, or uint32 of
/// Llama 3. Source: llm.c dev/data/data_common.py.
constexpr std::int32_t kLlmcGpt2 = 20240520;
constexpr std::int32_t kLlmcLlama3 = 20240801;
constexpr std::int64_t kLlmcHeaderBytes = 1024;

Error fault(Errc code, const fs::path& path, std::string what, std::string help) {
  return {.code = code, .what = std::move(what), .where = path.string(), .help = std::move(help)};
}

Result<InputFile> open_file(const fs::path& path) {
  Result<InputFile> file = InputFile::open(path);
  if (!file)
    return fault(Errc::no_input, path, "cannot read the data file: " + file.error().what,
                 "--data text:FILE with a file that exists, or --data random");
  if (!file->regular())
    return fault(Errc::no_input, path, "the data is not a regular file, and is read at many places",
                 "a file; what a pipe or a device gives has to be written to one first");
  if (file->bytes() == 0)
    return fault(Errc::malformed, path, "the data file is empty", "a file with text, or --data random");
  return file;
}

Result<void> read_bytes(const InputFile& file, std::int64_t offset, std::span<std::byte> into) {
  const Result<std::size_t> got = file.read_at(offset, into);
  if (!got) return fault(Errc::io, file.path(), "cannot read the data file: " + got.error().what, "check the file");
  if (*got == into.size()) return {};
  return fault(Errc::malformed, file.path(),
               "the data file was changed while it was being read: it had " + std::to_string(file.bytes()) +
                   " bytes and now ends before byte " + std::to_string(offset + static_cast<std::int64_t>(*got) + 1),
               "a copy that nobody writes to");
}

template <class T>
T number_at(std::span<const std::byte> bytes, std::size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <class T>
void widen(std::span<const std::byte> raw, std::span<std::int64_t> into) {
  for (std::size_t i = 0; i < into.size(); ++i)
    into[i] = static_cast<std::int64_t>(number_at<T>(raw, i * sizeof(T)));
}

void widen(TokenType type, std::span<const std::byte> raw, std::span<std::int64_t> into) {
  switch (type) {
    case TokenType::u8: return widen<std::uint8_t>(raw, into);
    case TokenType::u16: return widen<std::uint16_t>(raw, into);
    case TokenType::i16: return widen<std::int16_t>(raw, into);
    case TokenType::i32: return widen<std::int32_t>(raw, into);
    case TokenType::u32: return widen<std::uint32_t>(raw, into);
    case TokenType::i64: return widen<std::int64_t>(raw, into);
  }
}

/// Of all sequences, by the index's table of sizes.
Result<std::int64_t> tokens_of(const InputFile& index, std::int64_t sequences) {
  std::vector<std::byte> block(std::size_t{1} << 20);
  std::int64_t tokens = 0;
  for (std::int64_t done = 0; done < sequences;) {
    const std::int64_t now = std::min<std::int64_t>(sequences - done, static_cast<std::int64_t>(block.size()) / 4);
    const auto raw = std::span(block).first(static_cast<std::size_t>(now) * 4);
    if (Result<void> r = read_bytes(index, kMegatronHeadBytes + 4 * done, raw); !r) return r.error();
    for (std::int64_t i = 0; i < now; ++i) {
      const auto size = number_at<std::int32_t>(raw, static_cast<std::size_t>(i) * 4);
      if (size < 0)
        return fault(Errc::malformed, index.path(),
                     "sequence " + std::to_string(done + i) + " of the index has " + std::to_string(size) + " tokens",
                     "make the dataset again");
      tokens += size;
    }
    done += now;
  }
  return tokens;
}

}  // namespace

std::int64_t width(TokenType type) {
  switch (type) {
    case TokenType::u8: return 1;
    case TokenType::u16:
    case TokenType::i16: return 2;
    case TokenType::i32:
    case TokenType::u32: return 4;
    case TokenType::i64: return 8;
  }
  return 1;
}

Result<MegatronIndex> parse_megatron_index(std::span<const std::byte> head, std::int64_t bytes) {
  const auto malformed = [](std::string what, std::string help) {
    return Error{.code = Errc::malformed, .what = std::move(what), .where = "", .help = std::move(help)};
  };
  constexpr char kMagic[] = "MMIDIDX\0";  // nine bytes with the literal's own end
  if (head.size() < static_cast<std::size_t>(kMegatronHeadBytes) || std::memcmp(head.data(), kMagic, 9) != 0)
    return malformed("is no index of Megatron's indexed datasets", "the .idx that preprocess_data.py wrote");
  if (const auto version = number_at<std::uint64_t>(head, 9); version != 1)
    return malformed("is an index of version " + std::to_string(version) + "; version 1 is known",
                     "make the dataset again");
  MegatronIndex index;
  switch (const auto code = number_at<std::uint8_t>(head, 17)) {
    case 1: index.type = TokenType::u8; break;
    case 3: index.type = TokenType::i16; break;
    case 4: index.type = TokenType::i32; break;
    case 5: index.type = TokenType::i64; break;
    case 8: index.type = TokenType::u16; break;
    default:
      return malformed("holds elements of type code " + std::to_string(code) + ", which are no tokens",
                       "uint8, int16, uint16, int32 or int64");
  }
  const auto sequences = number_at<std::uint64_t>(head, 18);
  const auto documents = number_at<std::uint64_t>(head, 26);
  // A size and a place for each sequence, and a number for each document's end.
  const auto most = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0));
  if (sequences > most || documents > most ||
      static_cast<std::uint64_t>(kMegatronHeadBytes) + 12 * sequences + 8 * documents != most)
    return malformed("says " + std::to_string(sequences) + " sequences and " + std::to_string(documents) +
                         " ends of documents, for which it has the wrong size: " + std::to_string(bytes) + " bytes",
                     "copy the file again");
  index.sequences = static_cast<std::int64_t>(sequences);
  return index;
}

Result<TokenFile> TokenFile::open_text(const fs::path& path) {
  Result<InputFile> file = open_file(path);
  if (!file) return file.error();
  const std::int64_t bytes = file->bytes();
  return TokenFile(std::move(*file), 0, bytes, TokenType::u8);
}

namespace {

/// Of Megatron's index beside the file.
Result<std::pair<TokenType, std::int64_t>> indexed(const fs::path& index_path, const InputFile& data) {
  Result<InputFile> file = open_file(index_path);
  if (!file) return file.error();
  std::byte head[kMegatronHeadBytes] = {};
  const auto known = std::span(head).first(
      static_cast<std::size_t>(std::min<std::int64_t>(file->bytes(), kMegatronHeadBytes)));
  if (Result<void> r = read_bytes(*file, 0, known); !r) return r.error();
  const Result<MegatronIndex> index = parse_megatron_index(known, file->bytes());
  if (!index) {
    Error error = index.error();
    error.where = index_path.string();
    return error;
  }
  const Result<std::int64_t> tokens = tokens_of(*file, index->sequences);
  if (!tokens) return tokens.error();
  if (const std::int64_t bytes = *tokens * width(index->type); bytes != data.bytes())
    return fault(Errc::malformed, data.path(),
                 "the index beside it says " + std::to_string(*tokens) + " tokens of " +
                     std::to_string(width(index->type)) + " bytes, the file has " + std::to_string(data.bytes()) +
                     " bytes",
                 "copy both files again");
  return std::pair(index->type, *tokens);
}

}  // namespace

Result<TokenFile> TokenFile::open_tokens(const fs::path& path) {
  Result<InputFile> file = open_file(path);
  if (!file) return file.error();
  fs::path index = path;
  if (std::error_code fault; fs::exists(index.replace_extension(".idx"), fault)) {
    const auto found = indexed(index, *file);
    if (!found) return found.error();
    return TokenFile(std::move(*file), 0, found->second, found->first);
  }
  const std::int64_t bytes = file->bytes();
  std::int32_t head[3] = {};
  if (bytes >= kLlmcHeaderBytes)
    if (Result<void> r = read_bytes(*file, 0, std::as_writable_bytes(std::span(head))); !r) return r.error();
  const bool headed = head[0] == kLlmcGpt2 || head[0] == kLlmcLlama3;
  const TokenType type = head[0] == kLlmcLlama3 ? TokenType::u32 : TokenType::u16;
  const std::int64_t begin = headed ? kLlmcHeaderBytes : 0;
  if ((bytes - begin) % width(type) != 0)
    return fault(Errc::malformed, path,
                 (type == TokenType::u16 ? "a file of uint16 tokens has an odd number of bytes ("
                                         : "a file of uint32 tokens does not end with one (") +
                     std::to_string(bytes) + "): it is truncated",
                 "copy the file again; for plain text use --data text:" + path.string());
  std::int64_t count = (bytes - begin) / width(type);
  if (headed && head[2] > count)
    return fault(Errc::malformed, path,
                 "the header promises " + std::to_string(head[2]) + " tokens, the file holds " + std::to_string(count),
                 "copy the file again");
  if (headed && head[2] >= 0) count = head[2];
  return TokenFile(std::move(*file), begin, count, type);
}

void TokenFile::keep(double begin, double end) {
  const auto at = [&](double share) { return static_cast<std::int64_t>(share * static_cast<double>(count_)); };
  const std::int64_t first = at(begin);
  const std::int64_t last = at(end);
  begin_ += first * width(type_);
  count_ = std::max<std::int64_t>(0, last - first);
}

Result<void> TokenFile::read(std::int64_t first, std::span<std::int64_t> into) const {
  std::vector<std::byte> raw(into.size() * static_cast<std::size_t>(width(type_)));
  if (Result<void> r = read_bytes(file_, begin_ + first * width(type_), raw); !r) return r;
  widen(type_, raw, into);
  return {};
}

Result<void> TokenFile::check_all(const model::Model& model) const {
  const std::int64_t largest = type_ == TokenType::u8 ? 255 : type_ == TokenType::u16 ? 65535 : INT64_MAX;
  if (model.vocabulary > largest) return {};
  std::vector<std::int64_t> block(std::size_t{1} << 18);
  for (std::int64_t done = 0; done < count_;) {
    const auto now = std::min<std::int64_t>(count_ - done, static_cast<std::int64_t>(block.size()));
    const auto tokens = std::span(block).first(static_cast<std::size_t>(now));
    if (Result<void> r = read(done, tokens); !r) return r;
    const auto wrong = std::ranges::find_if(tokens, [&](std::int64_t t) { return t < 0 || t >= model.vocabulary; });
    if (wrong != tokens.end())
      return fault(Errc::contradiction, path(),
                   "token " + std::to_string(*wrong) + " at position " +
                       std::to_string(done + (wrong - tokens.begin())) + " is beyond the vocabulary of " +
                       std::to_string(model.vocabulary) + " of model " + model.name,
                   "a model whose vocab_size is at least " + std::to_string(*wrong + 1));
    done += now;
  }
  return {};
}

}  // namespace shard::data
