// One byte more than allowed is asked for.
#include "traces/base/read_file.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>

#include "traces/base/input_file.h"

namespace shard {
namespace {

std::string size_text(std::size_t bytes) {
  if (bytes >= 1U << 30U && bytes % (1U << 30U) == 0) return std::to_string(bytes >> 30U) + " GiB";
  if (bytes >= 1U << 20U && bytes % (1U << 20U) == 0) return std::to_string(bytes >> 20U) + " MiB";
  return std::to_string(bytes) + " bytes";
}

/// What nameless pipes said that were read (a shell's <(...)): a second reader would find the end at once, and take it
/// for an empty file. One with a name may have another writer by then.
class Pipes {
 public:
  [[nodiscard]] std::optional<std::string> said(std::uint64_t pipe) {
    const std::scoped_lock lock(mutex_);
    const auto known = said_.find(pipe);
    return known == said_.end() ? std::nullopt : std::optional(known->second);
  }
  void keep(std::uint64_t pipe, const std::string& text) {
    const std::scoped_lock lock(mutex_);
    said_[pipe] = text;
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::string> said_;
};

Pipes& pipes() {
  static Pipes all;
  return all;
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path, std::string_view what, Bytes most,
                              std::string_view too_large) {
  const auto bound = static_cast<std::size_t>(most.count());
  const std::string named(what);
  const auto unreadable = [&](Error error) {
    error.what = "cannot read the " + named + ": " + error.what;
    return error;
  };
  const auto larger = [&] {
    return Error{Errc::malformed, "is larger than " + size_text(bound) + ", so it is no " + named, path.string(),
                 std::string(too_large)};
  };
  Result<InputFile> file = InputFile::open_stream(path);
  if (!file) return unreadable(file.error());
  const std::optional<std::uint64_t> pipe = file->nameless_pipe();
  if (pipe)
    if (std::optional<std::string> said = pipes().said(*pipe)) return said->size() > bound ? larger() : Result(*said);
  const auto size = static_cast<std::size_t>(file->bytes());
  if (size > bound) return larger();
  std::string text;
  constexpr std::size_t kPiece = 1u << 16;
  if (file->regular()) text.reserve(size + kPiece);
  while (true) {
    const std::size_t before = text.size();
    text.resize(before + std::min(kPiece, bound + 1 - before));
    const Result<std::size_t> got = file->read(std::as_writable_bytes(std::span(text).subspan(before)));
    if (!got) return unreadable(got.error());
    text.resize(before + *got);
    if (*got == 0) {
      if (pipe) pipes().keep(*pipe, text);
      return text;
    }
    if (text.size() > bound) return larger();
  }
}

}  // namespace shard
