// What ranks say to each other over TCP: greetings, frames, the table of addresses. Nothing that comes is trusted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/result.h"

namespace shard::tcp {

/// The first thing that whoever connects says, and what it is answered. Bytes in the order of the machine: ranks of one
/// run are of one program, and another order is another magic.
struct Greeting {
  static constexpr std::uint64_t kMagic = 0x3150435444524853;  // "SHRDTCP1"
  std::uint64_t magic = kMagic;
  std::uint64_t job = 0;   ///< a hash of what the launcher calls the run
  std::uint64_t plan = 0;  ///< a hash of the plan's
  std::int32_t rank = 0;
  std::int32_t world = 0;
  std::uint32_t port = 0;  ///< where this rank listens for higher ones
  std::uint32_t zero = 0;
};
inline constexpr std::size_t kGreetingBytes = sizeof(Greeting);

/// Before everything else.
struct FrameHead {
  enum Kind : std::uint32_t {
    welcome = 1,  ///< a Greeting follows
    refused = 2,  ///< why, as text; tag is the Errc's exit code
    table = 3,    ///< see write_table
    grant = 4,    ///< there is room for a message of that tag, of `bytes` bytes; nothing follows
    data = 5,     ///< that message
    text = 6,     ///< of an exchange
    abort = 7,    ///< why this rank stops, as text
    bye = 8,      ///< this rank leaves, as all do
  };
  static constexpr std::uint32_t kMagic = 0x4D524653;
  std::uint32_t magic = kMagic;
  std::uint32_t kind = 0;
  std::int64_t bytes = 0;
  std::int32_t tag = 0;
  std::int32_t zero = 0;
};
inline constexpr std::size_t kHeadBytes = sizeof(FrameHead);

/// What texts may have at most: of a reason, and of an exchange.
inline constexpr std::int64_t kMostReason = 1000;
inline constexpr std::int64_t kMostText = std::int64_t{64} << 20;
/// And a message.
inline constexpr std::int64_t kMostData = std::int64_t{1} << 30;

[[nodiscard]] std::string bytes_of(const Greeting& greeting);
/// Nothing where it is no greeting.
[[nodiscard]] std::optional<Greeting> read_greeting(std::span<const std::byte> bytes);
/// Nothing where it is no head of a frame, or says more bytes than its kind may have.
[[nodiscard]] std::optional<FrameHead> read_head(std::span<const std::byte> bytes);
[[nodiscard]] std::string frame(FrameHead::Kind kind, std::string_view text, std::int32_t tag = 0);

/// Where a rank listens. An empty address: where rank 0 is.
struct Endpoint {
  std::string address;  ///< numbers, no name
  std::uint16_t port = 0;
};
/// "RANK ADDRESS PORT\n" for every rank but 0; "*" for an empty address; port 0 for the last, whom nobody calls.
[[nodiscard]] std::string write_table(std::span<const Endpoint> ranks);
/// One for each of `world` ranks, the first of no meaning. Errc::malformed where it is not complete and in order.
[[nodiscard]] Result<std::vector<Endpoint>> read_table(std::string_view text, int world);

/// Texts by rank as one, and back; nothing where it is not of so many.
[[nodiscard]] std::string pack_texts(std::span<const std::string> texts);
[[nodiscard]] std::optional<std::vector<std::string>> unpack_texts(std::string_view packed, int world);

/// Of what a run is told apart by.
[[nodiscard]] std::uint64_t hash_of(std::string_view text);

}  // namespace shard::tcp
