// What a rank and the parent that started it say to each other over a local SOCK_SEQPACKET socket.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shard {

/// One packet: this head, then `bytes` bytes of text.
struct WireHead {
  enum Kind : std::int32_t {
    hello = 1,    ///< rank to parent: number is the rank
    streams = 2,  ///< parent to rank: carries the descriptors of stdout and stderr
    end = 3,      ///< rank to parent: number is the exit code, text the message
  };
  std::int32_t kind = 0;
  std::int32_t number = 0;
  std::uint32_t bytes = 0;
};
inline constexpr std::size_t kWireText = 16 * 1024;

}  // namespace shard
