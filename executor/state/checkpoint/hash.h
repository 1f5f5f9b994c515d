// The hash of what is saved: 64 bits of XXH3, which finds what disks and copies do, not what an enemy does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace shard::checkpoint {

/// XXH3_64bits(), no seed (https://github.com/Cyan4973/xxHash; `xxhsum -H3` prints the same).
[[nodiscard]] std::uint64_t hash_of(std::span<const std::byte> bytes);
[[nodiscard]] std::uint64_t hash_of(std::string_view text);
/// 16 hexadecimal digits, lower case, and back.
[[nodiscard]] std::string hash_text(std::uint64_t hash);
[[nodiscard]] std::optional<std::uint64_t> parse_hash(std::string_view text);

/// The same hash of bytes as they come.
class RunningHash {
 public:
  RunningHash();
  RunningHash(RunningHash&&) noexcept;
  RunningHash& operator=(RunningHash&&) noexcept;
  ~RunningHash();
  void restart();
  void add(std::span<const std::byte> bytes);
  [[nodiscard]] std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shard::checkpoint
