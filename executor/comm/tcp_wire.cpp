// Reading checks every length before it is used.
#include "executor/comm/tcp_wire.h"

#include <charconv>
#include <cstring>

namespace shard::tcp {
namespace {

std::int64_t most_of(std::uint32_t kind) {
  switch (kind) {
    case FrameHead::welcome: return static_cast<std::int64_t>(kGreetingBytes);
    case FrameHead::refused:
    case FrameHead::abort: return kMostReason;
    case FrameHead::table:
    case FrameHead::text: return kMostText;
    case FrameHead::grant:
    case FrameHead::data: return kMostData;
    case FrameHead::bye: return 0;
    default: return -1;
  }
}

template <class T>
std::optional<T> read_as(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  if (value.magic != T::kMagic) return std::nullopt;
  return value;
}

/// The word up to `end`, which is taken off `rest` with it; nothing where there is no `end`.
std::optional<std::string_view> take(std::string_view& rest, char end) {
  const std::size_t at = rest.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view word = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  return word;
}

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string bytes_of(const Greeting& greeting) {
  return {reinterpret_cast<const char*>(&greeting), sizeof greeting};
}

std::optional<Greeting> read_greeting(std::span<const std::byte> bytes) {
  return read_as<Greeting>(bytes);
}

std::optional<FrameHead> read_head(std::span<const std::byte> bytes) {
  const std::optional<FrameHead> head = read_as<FrameHead>(bytes);
  if (!head || head->bytes < 0 || head->bytes > most_of(head->kind)) return std::nullopt;
  return head;
}

std::string frame(FrameHead::Kind kind, std::string_view text, std::int32_t tag) {
  if (kind == FrameHead::abort || kind == FrameHead::refused) text = text.substr(0, kMostReason);
  FrameHead head;
  head.kind = kind;
  head.bytes = static_cast<std::int64_t>(text.size());
  head.tag = tag;
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  return bytes.append(text);
}

std::string write_table(std::span<const Endpoint> ranks) {
  std::string text;
  for (std::size_t rank = 1; rank < ranks.size(); ++rank)
    text.append(std::to_string(rank))
        .append(" ")
        .append(ranks[rank].address.empty() ? "*" : ranks[rank].address)
        .append(" ")
        .append(std::to_string(ranks[rank].port))
        .append("\n");
  return text;
}

Result<std::vector<Endpoint>> read_table(std::string_view text, int world) {
  const auto bad = [](int rank) {
    return Error{Errc::malformed, "rank 0 says nowhere that rank " + std::to_string(rank) + " is", "", ""};
  };
  std::vector<Endpoint> ranks(1);
  for (int rank = 1; rank < world; ++rank) {
    const std::optional<std::string_view> who = take(text, ' ');
    const std::optional<std::string_view> address = take(text, ' ');
    const std::optional<std::string_view> port = take(text, '\n');
    if (!who || !address || !port || number(*who) != rank || address->empty()) return bad(rank);
    const std::optional<int> where = number(*port);
    if (!where || *where < 0 || *where > 65535) return bad(rank);
    ranks.push_back({*address == "*" ? std::string() : std::string(*address), static_cast<std::uint16_t>(*where)});
  }
  if (!text.empty()) return bad(world);
  return ranks;
}

std::string pack_texts(std::span<const std::string> texts) {
  std::string packed;
  for (const std::string& text : texts) {
    const auto bytes = static_cast<std::uint64_t>(text.size());
    packed.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
    packed.append(text);
  }
  return packed;
}

std::optional<std::vector<std::string>> unpack_texts(std::string_view packed, int world) {
  std::vector<std::string> texts;
  for (int rank = 0; rank < world; ++rank) {
    std::uint64_t bytes = 0;
    if (packed.size() < sizeof bytes) return std::nullopt;
    std::memcpy(&bytes, packed.data(), sizeof bytes);
    packed.remove_prefix(sizeof bytes);
    if (bytes > packed.size()) return std::nullopt;
    texts.emplace_back(packed.substr(0, bytes));
    packed.remove_prefix(bytes);
  }
  if (!packed.empty()) return std::nullopt;
  return texts;
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a, 64 bits
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
  return hash;
}

}  // namespace shard::tcp
