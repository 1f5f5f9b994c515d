// What a rank and the parent that started it say to each other over a local SOCK_SEQPACKET socket.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace shard {

/// One packet: this head, then `bytes` bytes of text, or a WireBeat.
struct WireHead {
  enum Kind : std::int32_t {
    hello = 1,    ///< rank to parent: number is the rank
    streams = 2,  ///< parent to rank: carries the descriptors of stdout and stderr, and its recorder where it has one
    end = 3,      ///< rank to parent: number is the exit code, text the message
    beat = 4,     ///< rank to parent, again and again: it lives, and where its run is
    stop = 5,     ///< parent to rank: number is the signal that asks the run to end
  };
  std::int32_t kind = 0;
  std::int32_t number = 0;
  std::uint32_t bytes = 0;
};
inline constexpr std::size_t kWireText = 16 * 1024;

struct WireBeat {
  std::int64_t step = 0;
  std::int32_t part = 0;            ///< RunPart
  std::array<char, 36> blocking{};  ///< the call that it waits in, zero-terminated; "" for none
};

}  // namespace shard
