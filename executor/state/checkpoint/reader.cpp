// A piece that is asked for whole is read to where it is wanted; of others the last one is kept.
#include "executor/state/checkpoint/reader.h"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "executor/state/checkpoint/hash.h"
#include "executor/state/checkpoint/io.h"

namespace shard::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOlder = "`--resume` of an older checkpoint, or copy this one again";

Error reader_fault(const fs::path& where, std::string what) {
  return {Errc::malformed, std::move(what), where.string(), kOlder};
}

}  // namespace

struct Reader::State {
  struct File {
    const FileEntry* entry = nullptr;
    io::Descriptor descriptor;
  };
  struct Place {
    std::size_t file = 0;
    std::int64_t offset = 0;  ///< of the tensor's first byte
  };
  fs::path path;
  Manifest manifest;
  std::vector<File> files;
  std::vector<safetensors::Tensor> tensors;
  std::vector<Place> places;
  std::unordered_map<std::string_view, std::int32_t> numbers;  ///< of names in `tensors`
  std::atomic<std::int64_t> bytes_read = 0;

  std::mutex cache_lock;  ///< of all below
  std::vector<std::byte> cache;
  const Piece* cached = nullptr;

  [[nodiscard]] Result<void> open_files();
  [[nodiscard]] Result<void> read_header(std::size_t number);
  [[nodiscard]] Result<void> read_piece(const File& file, const Piece& piece, std::span<std::byte> into);
  [[nodiscard]] Result<void> read(std::size_t number, std::int64_t offset, std::span<std::byte> into);
  /// " in tensor 'x'", of the first tensor that has bytes there.
  [[nodiscard]] std::string tensor_at(const FileEntry* entry, const Piece& piece) const;
};

Result<void> Reader::State::open_files() {
  files.resize(manifest.files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    files[i].entry = &manifest.files[i];
    const fs::path file = path / files[i].entry->name;
    const int why = io::open(file, O_RDONLY, files[i].descriptor);
    if (why == ENOENT) return reader_fault(file, "is in the checkpoint's manifest and not there");
    if (why != 0) return io::failure(Errc::no_input, "a file of the checkpoint cannot be read", why, file);
    std::int64_t bytes = 0;
    const int unknown = io::size_of(files[i].descriptor, bytes);
    if (unknown == EINVAL) return reader_fault(file, "is no regular file");
    if (unknown != 0) return io::failure(Errc::io, "a file of the checkpoint cannot be read", unknown, file);
    if (bytes != files[i].entry->bytes)
      return reader_fault(file, "has " + std::to_string(bytes) + " bytes; by the checkpoint's manifest it has " +
                                    std::to_string(files[i].entry->bytes));
  }
  return {};
}

Result<void> Reader::State::read_header(std::size_t number) {
  const FileEntry& entry = *files[number].entry;
  const std::string where = (path / entry.name).string();
  std::array<std::byte, safetensors::kPrefixBytes> prefix{};
  if (entry.bytes >= safetensors::kPrefixBytes)
    if (Result<void> got = read(number, 0, prefix); !got) return got;
  const Result<std::int64_t> length = safetensors::read_prefix(prefix, entry.bytes, where);
  if (!length) return length.error();
  std::string header(static_cast<std::size_t>(*length), '\0');
  if (Result<void> got = read(number, safetensors::kPrefixBytes, std::as_writable_bytes(std::span(header))); !got)
    return got;
  const std::int64_t data = safetensors::kPrefixBytes + *length;
  Result<std::vector<safetensors::Tensor>> parsed = safetensors::parse_header(header, entry.bytes - data, where);
  if (!parsed) return parsed.error();
  for (safetensors::Tensor& tensor : *parsed) {
    places.push_back({number, data + tensor.begin});
    tensors.push_back(std::move(tensor));
  }
  return {};
}

std::string Reader::State::tensor_at(const FileEntry* entry, const Piece& piece) const {
  for (std::size_t t = 0; t < places.size(); ++t) {
    const std::int64_t begin = places[t].offset;
    const std::int64_t end = begin + tensors[t].end - tensors[t].begin;
    if (files[places[t].file].entry == entry && begin < piece.offset + piece.bytes && end > piece.offset)
      return ", in tensor " + safetensors::in_quotes(tensors[t].name);
  }
  return "";
}

Result<void> Reader::State::read_piece(const File& file, const Piece& piece, std::span<std::byte> into) {
  const fs::path where = path / file.entry->name;
  std::size_t got = 0;
  if (const int why = io::read_at(file.descriptor, piece.offset, into, got); why != 0)
    return io::failure(Errc::io, "reading failed", why, where);
  bytes_read += static_cast<std::int64_t>(got);
  const std::string bytes =
      "bytes " + std::to_string(piece.offset) + " to " + std::to_string(piece.offset + piece.bytes);
  if (got != into.size()) return reader_fault(where, "was cut short while it was being read: " + bytes);
  if (hash_of(into) != piece.hash)
    return reader_fault(where, bytes + " are not what was saved: their hash differs from the manifest's" +
                                   tensor_at(file.entry, piece));
  return {};
}

Result<void> Reader::State::read(std::size_t number, std::int64_t offset, std::span<std::byte> into) {
  if (into.empty()) return {};
  const File& file = files[number];
  auto piece = std::prev(std::ranges::upper_bound(file.entry->pieces, offset, {}, &Piece::offset));
  for (; !into.empty(); ++piece) {
    const std::int64_t skipped = offset - piece->offset;
    const auto now = static_cast<std::size_t>(std::min(piece->bytes - skipped, static_cast<std::int64_t>(into.size())));
    if (static_cast<std::int64_t>(now) == piece->bytes) {
      if (Result<void> got = read_piece(file, *piece, into.first(now)); !got) return got;
    } else {
      const std::lock_guard hold(cache_lock);
      if (cached != &*piece) {
        cached = nullptr;
        cache.resize(static_cast<std::size_t>(piece->bytes));
        if (Result<void> got = read_piece(file, *piece, cache); !got) return got;
        cached = &*piece;
      }
      std::memcpy(into.data(), cache.data() + skipped, now);
    }
    into = into.subspan(now);
    offset += static_cast<std::int64_t>(now);
  }
  return {};
}

Result<Manifest> read_manifest(const fs::path& checkpoint) {
  const fs::path path = checkpoint / kManifestFile;
  io::Descriptor file;
  const int why = io::open(path, O_RDONLY, file);
  if (why == ENOENT || why == ENOTDIR)
    return Error{Errc::no_input, std::string("is no checkpoint: it has no ") + kManifestFile, checkpoint.string(),
                 "a folder step-NUMBER that was saved whole"};
  const auto cannot = [&](int fault) {
    return io::failure(fault == why ? Errc::no_input : Errc::io, "the manifest of the checkpoint cannot be read", fault,
                       path);
  };
  if (why != 0) return cannot(why);
  std::int64_t bytes = 0;
  const int unknown = io::size_of(file, bytes);
  if (unknown == EINVAL) return reader_fault(path, "is no regular file");
  if (unknown != 0) return cannot(unknown);
  if (bytes > kMostManifestBytes)
    return reader_fault(path, "has " + std::to_string(bytes) + " bytes, more than a manifest");
  std::string text(static_cast<std::size_t>(bytes), '\0');
  std::size_t got = 0;
  if (const int fault = io::read_at(file, 0, std::as_writable_bytes(std::span(text)), got); fault != 0)
    return cannot(fault);
  text.resize(got);
  return parse(text, path.string());
}

Reader::Reader(std::unique_ptr<State> state) : state_(std::move(state)) {}
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

Result<Reader> Reader::open(const fs::path& checkpoint) {
  auto state = std::make_unique<State>();
  state->path = checkpoint;
  Result<Manifest> manifest = read_manifest(checkpoint);
  if (!manifest) return manifest.error();
  state->manifest = std::move(*manifest);
  if (Result<void> opened = state->open_files(); !opened) return opened.error();
  for (std::size_t i = 0; i < state->files.size(); ++i)
    if (state->files[i].entry->name.ends_with(".safetensors"))
      if (Result<void> read = state->read_header(i); !read) return read.error();
  for (std::size_t t = 0; t < state->tensors.size(); ++t) {
    const std::string& name = state->tensors[t].name;
    if (!state->numbers.emplace(name, static_cast<std::int32_t>(t)).second)
      return reader_fault(checkpoint, "two files have a tensor " + safetensors::in_quotes(name));
  }
  return Reader(std::move(state));
}

const fs::path& Reader::path() const {
  return state_->path;
}

const Manifest& Reader::manifest() const {
  return state_->manifest;
}

std::int32_t Reader::tensors() const {
  return static_cast<std::int32_t>(state_->tensors.size());
}

std::optional<std::int32_t> Reader::find(std::string_view tensor) const {
  const auto found = state_->numbers.find(tensor);
  return found == state_->numbers.end() ? std::nullopt : std::optional(found->second);
}

const safetensors::Tensor& Reader::tensor(std::int32_t number) const {
  return state_->tensors[static_cast<std::size_t>(number)];
}

const FileEntry& Reader::file_of(std::int32_t number) const {
  return *state_->files[state_->places[static_cast<std::size_t>(number)].file].entry;
}

Result<void> Reader::read(std::int32_t tensor, std::int64_t byte_offset, std::span<std::byte> into) const {
  const auto t = static_cast<std::size_t>(tensor);
  assert(t < state_->tensors.size() && byte_offset >= 0);
  assert(byte_offset + static_cast<std::int64_t>(into.size()) <= state_->tensors[t].end - state_->tensors[t].begin);
  return state_->read(state_->places[t].file, state_->places[t].offset + byte_offset, into);
}

Result<std::string> Reader::small_file(std::string_view name) const {
  for (std::size_t i = 0; i < state_->files.size(); ++i) {
    const FileEntry& entry = *state_->files[i].entry;
    if (entry.name != name) continue;
    std::string text(static_cast<std::size_t>(entry.bytes), '\0');
    if (Result<void> got = state_->read(i, 0, std::as_writable_bytes(std::span(text))); !got) return got.error();
    return text;
  }
  return Error{Errc::no_input, "the checkpoint has no file " + safetensors::in_quotes(name), state_->path.string(), ""};
}

Result<void> Reader::verify(const std::function<void()>& after_piece) const {
  std::vector<std::byte> buffer(static_cast<std::size_t>(kPieceBytes));
  for (const State::File& file : state_->files)
    for (const Piece& piece : file.entry->pieces) {
      if (Result<void> right =
              state_->read_piece(file, piece, std::span(buffer).first(static_cast<std::size_t>(piece.bytes)));
          !right)
        return right;
      if (after_piece) after_piece();
    }
  return {};
}

std::int64_t Reader::bytes_read() const {
  return state_->bytes_read;
}

}  // namespace shard::checkpoint
