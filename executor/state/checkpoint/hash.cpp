// The library's state is aligned to 64 bytes, which the new of C++17 knows.
#include "executor/state/checkpoint/hash.h"

#define XXH_INLINE_ALL  // header only
#include <xxhash.h>

#include <charconv>

namespace shard::checkpoint {

struct RunningHash::State {
  XXH3_state_t xxh;
};

std::uint64_t hash_of(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t hash_of(std::string_view text) {
  return hash_of(std::as_bytes(std::span(text)));
}

std::string hash_text(std::uint64_t hash) {
  std::string text(16, '0');
  for (std::size_t i = 16; i-- > 0; hash >>= 4U) text[i] = "0123456789abcdef"[hash & 15U];
  return text;
}

std::optional<std::uint64_t> parse_hash(std::string_view text) {
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string_view::npos) return std::nullopt;
  std::uint64_t hash = 0;
  std::from_chars(text.data(), text.data() + text.size(), hash, 16);
  return hash;
}

RunningHash::RunningHash() : state_(std::make_unique<State>()) {
  restart();
}
RunningHash::RunningHash(RunningHash&&) noexcept = default;
RunningHash& RunningHash::operator=(RunningHash&&) noexcept = default;
RunningHash::~RunningHash() = default;

void RunningHash::restart() {
  XXH3_64bits_reset(&state_->xxh);
}

void RunningHash::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state_->xxh, bytes.data(), bytes.size());
}

std::uint64_t RunningHash::value() const {
  return XXH3_64bits_digest(&state_->xxh);
}

}  // namespace shard::checkpoint
