// manifest.json: what a checkpoint is of, which files it has, and the hash of every piece of them.
//
// The file is {"checksum": "16 hexadecimal digits", "manifest": BODY} and a line's end, exactly so; the checksum is
// that of BODY's bytes, so that any change of the file is noticed. It is written last: what has none is no checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/result.h"

namespace shard::checkpoint {

inline constexpr const char* kManifestFile = "manifest.json";
/// Of the format; what is newer is refused.
inline constexpr std::int64_t kManifestVersion = 1;
/// A longer manifest is none: of 16 TiB it has 1 GiB.
inline constexpr std::int64_t kMostManifestBytes = std::int64_t{1} << 30;
/// What is hashed, and read, at once. Pieces do not cross its multiples in a file.
inline constexpr std::int64_t kPieceBytes = std::int64_t{1} << 20;

struct Fact {
  std::string name;
  std::string value;
  friend bool operator==(const Fact&, const Fact&) = default;
};

/// Some bytes of a file, and their hash (hash.h).
struct Piece {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::uint64_t hash = 0;
  friend bool operator==(const Piece&, const Piece&) = default;
};

struct FilePieces {
  std::string file;
  std::vector<Piece> pieces;
  friend bool operator==(const FilePieces&, const FilePieces&) = default;
};

struct FileEntry {
  std::string name;
  std::int64_t bytes = 0;
  std::vector<Piece> pieces;  ///< one behind the other, from the file's first byte to its last
  friend bool operator==(const FileEntry&, const FileEntry&) = default;
};

struct Manifest {
  std::int64_t step = 0;
  std::int64_t tokens = 0;
  std::int64_t micro_batches = 0;
  std::vector<Fact> numbers;  ///< what the numbers of the run depend on
  std::vector<Fact> about;    ///< what a reader may want to know
  std::vector<FileEntry> files;
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

/// For Draft::commit(): the pieces of one rank beside those that are there.
void add_pieces(Manifest& manifest, const std::vector<FilePieces>& pieces);

/// A plain name of a file: no folder, not hidden in one.
[[nodiscard]] bool is_file_name(std::string_view name);
/// Do the pieces lie one behind the other and cover the file, none larger than kPieceBytes or across its multiples?
/// Errors: malformed, with the bytes.
[[nodiscard]] Result<void> check_pieces(const FileEntry& file, std::string_view where);

/// Bytes that are not UTF-8 in facts become U+FFFD.
[[nodiscard]] std::string to_text(const Manifest& manifest);
/// `where` names the file in errors. Errors: malformed, for whatever is not as said above.
[[nodiscard]] Result<Manifest> parse(std::string_view text, std::string_view where);
/// The same of BODY alone, whose checksum is right.
[[nodiscard]] Result<Manifest> parse_body(std::string_view body, std::string_view where);

}  // namespace shard::checkpoint
