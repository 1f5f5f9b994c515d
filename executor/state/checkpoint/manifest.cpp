// Written by hand, so that the bytes are ours; read as a document, after the checksum.
#include "executor/state/checkpoint/manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>
#include <utility>

#include "executor/state/checkpoint/hash.h"
#include "executor/state/safetensors.h"

namespace shard::checkpoint {
namespace {

using nlohmann::json;
using safetensors::in_quotes;

constexpr std::string_view kManifestBegin = R"({"checksum": ")";
constexpr std::string_view kManifestMiddle = R"(", "manifest": )";
constexpr std::string_view kManifestEnd = "}\n";
constexpr std::size_t kManifestDepth = 8;

Error manifest_fault(std::string_view where, std::string what) {
  return {Errc::malformed, std::move(what), std::string(where),
          "`--resume` of an older checkpoint, or copy this one again"};
}

std::string manifest_string(const std::string& text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string facts_text(const std::vector<Fact>& facts) {
  std::string text = "[";
  for (const Fact& fact : facts)
    text += (text.size() > 1 ? ",[" : "[") + manifest_string(fact.name) + ',' + manifest_string(fact.value) + ']';
  return text + ']';
}

/// Deeper than any manifest: documents of brackets take many times their bytes.
bool nests_deeply(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kManifestDepth) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

/// A whole number from 0 to 2^63.
std::optional<std::int64_t> whole_number(const json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  const auto number = value.get<std::uint64_t>();
  if (number > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

/// Reads members of the document; keeps the first fault.
struct ManifestBody {
  const json& body;
  std::string fault{};

  const json* member(const json& of, const char* name) {
    const auto found = of.find(name);
    if (found != of.end()) return &*found;
    if (fault.empty()) fault = "has no " + in_quotes(name);
    return nullptr;
  }
  std::int64_t number(const char* name) {
    const json* const value = member(body, name);
    const std::optional<std::int64_t> number = value == nullptr ? std::nullopt : whole_number(*value);
    if (!number && fault.empty()) fault = in_quotes(name) + " is no whole number from 0";
    return number.value_or(0);
  }
  std::vector<Fact> facts(const char* name) {
    std::vector<Fact> facts;
    const json* const list = member(body, name);
    if (list == nullptr) return facts;
    bool right = list->is_array();
    for (std::size_t i = 0; right && i < list->size(); ++i) {
      const json& fact = (*list)[i];
      right = fact.is_array() && fact.size() == 2 && fact[0].is_string() && fact[1].is_string();
      if (right) facts.push_back({fact[0].get<std::string>(), fact[1].get<std::string>()});
    }
    if (!right && fault.empty()) fault = in_quotes(name) + " is no list of names and values";
    return facts;
  }
};

Result<std::vector<Piece>> parse_pieces(const json& list, const std::string& file, std::string_view where) {
  std::vector<Piece> pieces;
  pieces.reserve(list.size());
  for (const json& entry : list) {
    std::optional<std::int64_t> offset, bytes;
    std::optional<std::uint64_t> hash;
    if (entry.is_array() && entry.size() == 3 && entry[2].is_string()) {
      offset = whole_number(entry[0]);
      bytes = whole_number(entry[1]);
      hash = parse_hash(entry[2].get_ref<const std::string&>());
    }
    if (!offset || !bytes || !hash)
      return manifest_fault(where, "piece " + std::to_string(pieces.size()) + " of file " + in_quotes(file) +
                                       " is no offset, size and hash of 16 digits");
    pieces.push_back({*offset, *bytes, *hash});
  }
  return pieces;
}

Result<std::vector<FileEntry>> parse_files(const json& list, std::string_view where) {
  if (!list.is_array()) return manifest_fault(where, "'files' is no list");
  std::vector<FileEntry> files;
  std::unordered_set<std::string> names;
  std::int64_t total = 0;
  for (const json& entry : list) {
    const auto is = [&](const char* key, auto test) { return entry.contains(key) && test(entry[key]); };
    const bool right = entry.is_object() && is("name", [](const json& v) { return v.is_string(); }) &&
                       is("bytes", [](const json& v) { return whole_number(v).has_value(); }) &&
                       is("pieces", [](const json& v) { return v.is_array(); });
    if (!right)
      return manifest_fault(where, "file " + std::to_string(files.size()) + " has no name, bytes from 0 and pieces");
    FileEntry file{.name = entry["name"].get<std::string>(), .bytes = *whole_number(entry["bytes"]), .pieces = {}};
    if (!is_file_name(file.name) || file.name == kManifestFile)
      return manifest_fault(where, in_quotes(file.name) + " is no name of a file of a checkpoint");
    if (!names.insert(file.name).second) return manifest_fault(where, "file " + in_quotes(file.name) + " stands twice");
    if (file.bytes > INT64_MAX - total) return manifest_fault(where, "the files have more than 2^63 bytes");
    total += file.bytes;
    Result<std::vector<Piece>> pieces = parse_pieces(entry["pieces"], file.name, where);
    if (!pieces) return pieces.error();
    file.pieces = std::move(*pieces);
    if (Result<void> right_pieces = check_pieces(file, where); !right_pieces) return right_pieces.error();
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

void add_pieces(Manifest& manifest, const std::vector<FilePieces>& pieces) {
  for (const FilePieces& more : pieces) {
    auto file = std::ranges::find(manifest.files, more.file, &FileEntry::name);
    if (file == manifest.files.end())
      file = manifest.files.insert(file, FileEntry{.name = more.file, .bytes = 0, .pieces = {}});
    file->pieces.insert(file->pieces.end(), more.pieces.begin(), more.pieces.end());
  }
}

bool is_file_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

Result<void> check_pieces(const FileEntry& file, std::string_view where) {
  std::int64_t at = 0;
  const auto bytes_of_file = [&](std::int64_t begin, std::int64_t end) {
    return "bytes " + std::to_string(begin) + " to " + std::to_string(end) + " of file " + in_quotes(file.name);
  };
  for (const Piece& piece : file.pieces) {
    if (piece.offset < 0 || piece.bytes <= 0 || piece.bytes > kPieceBytes || piece.offset > file.bytes - piece.bytes)
      return manifest_fault(where, "a piece of " + std::to_string(piece.bytes) + " bytes at byte " +
                                       std::to_string(piece.offset) + " cannot be one of file " + in_quotes(file.name) +
                                       ", which has " + std::to_string(file.bytes));
    const std::int64_t end = piece.offset + piece.bytes;
    if (piece.offset / kPieceBytes != (end - 1) / kPieceBytes)
      return manifest_fault(where, bytes_of_file(piece.offset, end) + " are a piece across a multiple of 1 MiB");
    if (piece.offset > at) return manifest_fault(where, bytes_of_file(at, piece.offset) + " are in no piece");
    if (piece.offset < at)
      return manifest_fault(where, bytes_of_file(piece.offset, std::min(at, end)) + " are in two pieces");
    at = end;
  }
  if (at != file.bytes) return manifest_fault(where, bytes_of_file(at, file.bytes) + " are in no piece");
  return {};
}

std::string to_text(const Manifest& manifest) {
  std::string body = R"({"format":"shardscope checkpoint","version":)" + std::to_string(kManifestVersion) +
                     R"(,"step":)" + std::to_string(manifest.step) + R"(,"tokens":)" + std::to_string(manifest.tokens) +
                     R"(,"micro_batches":)" + std::to_string(manifest.micro_batches) + R"(,"numbers":)" +
                     facts_text(manifest.numbers) + R"(,"about":)" + facts_text(manifest.about) + R"(,"files":[)";
  for (std::size_t i = 0; i < manifest.files.size(); ++i) {
    const FileEntry& file = manifest.files[i];
    body += (i == 0 ? "\n" : ",\n") + std::string(R"({"name":)") + manifest_string(file.name) + R"(,"bytes":)" +
            std::to_string(file.bytes) + R"(,"pieces":[)";
    for (std::size_t p = 0; p < file.pieces.size(); ++p) {
      const Piece& piece = file.pieces[p];
      body += (p == 0 ? "[" : ",[") + std::to_string(piece.offset) + ',' + std::to_string(piece.bytes) + ",\"" +
              hash_text(piece.hash) + "\"]";
    }
    body += "]}";
  }
  body += "]}";
  return std::string(kManifestBegin) + hash_text(hash_of(body)) + std::string(kManifestMiddle) + body +
         std::string(kManifestEnd);
}

Result<Manifest> parse(std::string_view text, std::string_view where) {
  const std::size_t head = kManifestBegin.size() + 16 + kManifestMiddle.size();
  const bool framed = text.size() >= head + kManifestEnd.size() && text.starts_with(kManifestBegin) &&
                      text.substr(kManifestBegin.size() + 16).starts_with(kManifestMiddle) &&
                      text.ends_with(kManifestEnd);
  const std::optional<std::uint64_t> checksum =
      framed ? parse_hash(text.substr(kManifestBegin.size(), 16)) : std::nullopt;
  if (!checksum)
    return manifest_fault(where, "is no manifest of a checkpoint, or is cut short: it has " +
                                     std::to_string(text.size()) + " bytes and not both its checksum and its end");
  const std::string_view body = text.substr(head, text.size() - head - kManifestEnd.size());
  if (const std::uint64_t is = hash_of(body); is != *checksum)
    return manifest_fault(
        where, "was changed or is damaged: its checksum is " + hash_text(is) + ", and it says " + hash_text(*checksum));
  return parse_body(body, where);
}

Result<Manifest> parse_body(std::string_view body, std::string_view where) {
  if (nests_deeply(body)) return manifest_fault(where, "nests deeper than a manifest");
  const json document = json::parse(body, nullptr, false);
  if (!document.is_object()) return manifest_fault(where, "has a manifest that is no JSON object");
  ManifestBody read{document};
  const json* const format = read.member(document, "format");
  if (format == nullptr || *format != "shardscope checkpoint")
    return manifest_fault(where, "is no manifest of a checkpoint of Shardscope");
  const std::int64_t version = read.number("version");
  if (read.fault.empty() && version > kManifestVersion)
    return Error{Errc::malformed,
                 "has version " + std::to_string(version) + " of the format; this program reads version " +
                     std::to_string(kManifestVersion),
                 std::string(where), "a newer shardscope"};
  if (read.fault.empty() && version < 1) read.fault = "has version 0 of the format, which there is not";
  Manifest manifest;
  manifest.step = read.number("step");
  manifest.tokens = read.number("tokens");
  manifest.micro_batches = read.number("micro_batches");
  manifest.numbers = read.facts("numbers");
  manifest.about = read.facts("about");
  const json* const files = read.member(document, "files");
  if (!read.fault.empty()) return manifest_fault(where, read.fault);
  Result<std::vector<FileEntry>> entries = parse_files(*files, where);
  if (!entries) return entries.error();
  manifest.files = std::move(*entries);
  return manifest;
}

}  // namespace shard::checkpoint
