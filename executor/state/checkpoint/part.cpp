// The hash is of what was given, not of what the file says, so that reading again shows what the disk did.
#include "executor/state/checkpoint/part.h"

#include <fcntl.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

#include "executor/state/checkpoint/hash.h"
#include "executor/state/checkpoint/io.h"

namespace shard::checkpoint {

namespace fs = std::filesystem;

struct Part::State {
  /// One file and the piece of it that grows.
  struct File {
    fs::path path;
    io::Descriptor descriptor;  ///< from the first write on
    std::vector<Piece> pieces;
    std::int64_t begin = 0;
    std::int64_t end = 0;  ///< of the growing piece; nothing of it yet where it is `begin`
    RunningHash hash;

    void close_piece() {
      if (end > begin) pieces.push_back({begin, end - begin, hash.value()});
      begin = end;
      hash.restart();
    }
    void add(std::int64_t offset, std::span<const std::byte> bytes);
    [[nodiscard]] Result<void> read_again(std::span<std::byte> buffer) const;
  };
  std::vector<Layout::Place> places;
  std::vector<File> files;
};

void Part::State::File::add(std::int64_t offset, std::span<const std::byte> bytes) {
  if (offset != end) {
    close_piece();
    begin = end = offset;
  }
  while (!bytes.empty()) {
    const std::int64_t room = kPieceBytes - end % kPieceBytes;
    const auto now = bytes.first(std::min(bytes.size(), static_cast<std::size_t>(room)));
    hash.add(now);
    end += static_cast<std::int64_t>(now.size());
    bytes = bytes.subspan(now.size());
    if (end % kPieceBytes == 0) close_piece();
  }
}

Result<void> Part::State::File::read_again(std::span<std::byte> buffer) const {
  for (const Piece& piece : pieces) {
    const std::span<std::byte> into = buffer.first(static_cast<std::size_t>(piece.bytes));
    std::size_t got = 0;
    if (const int why = io::read_at(descriptor, piece.offset, into, got); why != 0)
      return io::failure(Errc::io, "what was written cannot be read", why, path);
    if (got != into.size() || hash_of(into) != piece.hash)
      return Error{Errc::io,
                   "what was written reads differently: bytes " + std::to_string(piece.offset) + " to " +
                       std::to_string(piece.offset + piece.bytes),
                   path.string(), "another disk"};
  }
  return {};
}

Part::Part(std::unique_ptr<State> state) : state_(std::move(state)) {}
Part::Part(Part&&) noexcept = default;
Part& Part::operator=(Part&&) noexcept = default;
Part::~Part() = default;

Result<Part> Part::open(const fs::path& draft, const Layout& layout) {
  std::error_code fault;
  if (!fs::is_directory(draft, fault))
    return Error{Errc::no_input, "the checkpoint that the first rank began is not there", draft.string(),
                 "a folder that every rank's host sees under this name"};
  auto state = std::make_unique<State>();
  state->places = layout.places;
  state->files.resize(layout.files.size());
  for (std::size_t i = 0; i < layout.files.size(); ++i) state->files[i].path = draft / layout.files[i].name;
  return Part(std::move(state));
}

Result<void> Part::write(std::int32_t tensor, std::int64_t byte_offset, std::span<const std::byte> bytes) {
  assert(tensor >= 0 && static_cast<std::size_t>(tensor) < state_->places.size());
  const Layout::Place& place = state_->places[static_cast<std::size_t>(tensor)];
  assert(byte_offset >= 0 && byte_offset + static_cast<std::int64_t>(bytes.size()) <= place.bytes);
  if (bytes.empty()) return {};
  State::File& file = state_->files[static_cast<std::size_t>(place.file)];
  if (!file.descriptor.is_open())
    if (const int why = io::open(file.path, O_RDWR, file.descriptor); why != 0)
      return io::failure(Errc::io, "cannot be opened to be written", why, file.path);
  const std::int64_t offset = place.offset + byte_offset;
  if (const int why = io::write_at(file.descriptor, offset, bytes); why != 0)
    return io::failure(Errc::io, "writing failed", why, file.path);
  file.add(offset, bytes);
  return {};
}

Result<std::vector<FilePieces>> Part::finish() {
  std::vector<FilePieces> all;
  std::vector<std::byte> buffer(static_cast<std::size_t>(kPieceBytes));
  for (State::File& file : state_->files)
    if (file.descriptor.is_open()) io::start_writing(file.descriptor);
  for (State::File& file : state_->files) {
    if (!file.descriptor.is_open()) continue;
    file.close_piece();
    // While the disk works.
    if (Result<void> same = file.read_again(buffer); !same) return same.error();
    if (const int why = io::sync(file.descriptor); why != 0)
      return io::failure(Errc::io, "what was written does not reach the disk", why, file.path);
    all.push_back({file.path.filename().string(), std::move(file.pieces)});
    file.pieces.clear();
    file.descriptor = {};
  }
  return all;
}

std::string pack(const std::vector<FilePieces>& pieces) {
  std::string text;
  for (const FilePieces& file : pieces) {
    text += file.file + ' ' + std::to_string(file.pieces.size()) + '\n';
    for (const Piece& piece : file.pieces)
      text += std::to_string(piece.offset) + ' ' + std::to_string(piece.bytes) + ' ' + hash_text(piece.hash) + '\n';
  }
  return text;
}

namespace {

/// What stands before the next `end`, which is passed over.
std::optional<std::string_view> part_word(std::string_view& text, char end) {
  const std::size_t at = text.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view word = text.substr(0, at);
  text.remove_prefix(at + 1);
  return word;
}

std::optional<std::int64_t> part_number(std::string_view& text, char end) {
  const std::optional<std::string_view> word = part_word(text, end);
  std::int64_t number = 0;
  if (!word || word->empty()) return std::nullopt;
  const auto [stop, fault] = std::from_chars(word->data(), word->data() + word->size(), number);
  if (fault != std::errc{} || stop != word->data() + word->size()) return std::nullopt;
  return number;
}

}  // namespace

Result<std::vector<FilePieces>> unpack(std::string_view text) {
  const Error broken{Errc::internal, "the pieces of a checkpoint that another rank sent are cut short or damaged", "",
                     ""};
  std::vector<FilePieces> all;
  while (!text.empty()) {
    const std::optional<std::string_view> name = part_word(text, ' ');
    const std::optional<std::int64_t> count = name ? part_number(text, '\n') : std::nullopt;
    if (!count || *count < 0) return broken;
    FilePieces file{std::string(*name), {}};
    for (std::int64_t i = 0; i < *count; ++i) {
      const std::optional<std::int64_t> offset = part_number(text, ' ');
      const std::optional<std::int64_t> bytes = offset ? part_number(text, ' ') : std::nullopt;
      const std::optional<std::string_view> word = bytes ? part_word(text, '\n') : std::nullopt;
      const std::optional<std::uint64_t> hash = word ? parse_hash(*word) : std::nullopt;
      if (!hash) return broken;
      file.pieces.push_back({*offset, *bytes, *hash});
    }
    all.push_back(std::move(file));
  }
  return all;
}

}  // namespace shard::checkpoint
