// Options as a list of CBOR, which takes whatever bytes paths have.
#include "executor/commands/same_options.h"

#define XXH_INLINE_ALL  // header only
#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "traces/base/input_file.h"

namespace shard::commands {
namespace {

/// A file up to this size is read whole; of a larger one so many parts, evenly from its beginning to its end.
constexpr std::uint64_t kReadWhole = 64 << 20;
constexpr std::uint64_t kParts = 1024;
constexpr std::size_t kPartBytes = 64 << 10;

/// Of size and content; nothing where it is no regular file that can be read: a pipe is not waited for, and what is
/// wrong with the file is said where it is opened.
std::optional<std::string> content_of(const std::filesystem::path& path) {
  std::error_code error;
  // Not opened to see what it is: whoever writes to a pipe would lose its reader.
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  const Result<InputFile> file = InputFile::open(path);
  if (!file) return std::nullopt;
  const auto size = static_cast<std::uint64_t>(file->bytes());
  std::uint64_t hash = size;
  std::vector<std::byte> part(kPartBytes);
  const std::uint64_t step = size <= kReadWhole ? kPartBytes : (size - kPartBytes) / (kParts - 1);
  for (std::uint64_t at = 0; at < size; at += step) {
    const Result<std::size_t> got = file->read_at(static_cast<std::int64_t>(at), part);
    if (!got) return std::nullopt;
    hash = XXH3_64bits_withSeed(part.data(), *got, hash);
  }
  return std::to_string(hash);
}

/// With the files' contents in place of their names, which may be others on other machines.
std::string by_content(const cli::Settled& option) {
  std::string contents;
  for (const std::filesystem::path& path : option.files) {
    const std::optional<std::string> content = content_of(path);
    if (!content) return option.value;
    contents += " " + *content;
  }
  if (option.files.empty()) return option.value;
  // "text:FILE" is read otherwise than "FILE".
  const std::string path = option.files.front().string();
  const bool prefixed = option.files.size() == 1 && option.value.ends_with(path);
  return (prefixed ? option.value.substr(0, option.value.size() - path.size()) : std::string()) + contents;
}

std::string text_of(const std::vector<cli::Settled>& options) {
  nlohmann::json list = nlohmann::json::array();
  for (const cli::Settled& option : options) list.push_back({option.name, by_content(option), option.shown});
  const std::vector<std::uint8_t> bytes = nlohmann::json::to_cbor(list);
  return {bytes.begin(), bytes.end()};
}

/// Nothing where it is no such list.
std::optional<std::vector<cli::Settled>> read_text(const std::string& text) {
  const nlohmann::json list = nlohmann::json::from_cbor(text, true, false);
  if (!list.is_array()) return std::nullopt;
  std::vector<cli::Settled> options;
  for (const nlohmann::json& each : list) {
    const auto is_text = [](const nlohmann::json& part) { return part.is_string(); };
    if (!each.is_array() || each.size() != 3 || !std::ranges::all_of(each, is_text)) return std::nullopt;
    options.push_back({.name = each[0], .value = each[1], .shown = each[2]});
  }
  return options;
}

/// Of the first rank that differs from rank 0.
std::optional<Error> different_options(const std::vector<std::string>& all) {
  const auto first = read_text(all.front());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const std::string who = "rank " + std::to_string(rank);
    const auto own = read_text(all[rank]);
    if (!first || !own || !std::ranges::equal(*own, *first, {}, &cli::Settled::name, &cli::Settled::name))
      return Error{Errc::contradiction, who + " has other options than rank 0: it is of another version", "options",
                   "start all ranks with the same program"};
    for (std::size_t i = 0; i < own->size(); ++i) {
      const cli::Settled& here = (*own)[i];
      const cli::Settled& there = (*first)[i];
      if (here.value == there.value) continue;
      const std::string other = here.shown == there.shown ? "the same, of other content" : there.shown;
      return Error{Errc::contradiction, who + " was started with " + here.shown + ", rank 0 with " + other,
                   "--" + here.name, "start all ranks with the same options"};
    }
  }
  return std::nullopt;
}

/// Every rank's text, and what is wrong with them, which is the same on all ranks.
Result<void> agree(const std::string& own, Communicator& communicator,
                   const std::function<std::optional<Error>(const std::vector<std::string>& all)>& fault) {
  const auto all = communicator.exchange(own);
  if (!all) return all.error();
  std::optional<Error> error = fault(*all);
  if (!error) return {};
  // A rank that went now would be news to those that still wait for the texts: it, and not what differs, would be
  // their error. Whatever comes of this exchange, this rank knows its own.
  static_cast<void>(communicator.exchange({}));
  return std::move(*error);
}

}  // namespace

Result<void> all_say(
    const std::string& own, Communicator& communicator,
    const std::function<Error(std::int32_t rank, const std::string& said, const std::string& first)>& differs) {
  return agree(own, communicator, [&](const std::vector<std::string>& all) -> std::optional<Error> {
    for (std::size_t rank = 1; rank < all.size(); ++rank)
      if (all[rank] != all.front()) return differs(static_cast<std::int32_t>(rank), all[rank], all.front());
    return std::nullopt;
  });
}

Result<void> same_options(const cli::Command& command, Communicator& communicator) {
  return agree(text_of(command.settled()), communicator, different_options);
}

}  // namespace shard::commands
