// Point-to-point messages between ranks: all that collectives out of messages ask of a network.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/ids.h"
#include "traces/base/result.h"

namespace shard {

/// A message that has been posted; kNoMessage once it is known to be complete.
using MessageId = std::uint32_t;
inline constexpr MessageId kNoMessage = ~MessageId{0};

/// One rank's end of the network. Nothing blocks unless it says so. Used by one thread; lost_peer() by any.
class MessagePort {
 public:
  MessagePort() = default;
  MessagePort(const MessagePort&) = delete;
  MessagePort& operator=(const MessagePort&) = delete;
  virtual ~MessagePort() = default;

  [[nodiscard]] virtual Rank rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Of the communicator that is made of it.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Tags are from 0 to 2^tag_bits() - 1.
  [[nodiscard]] virtual int tag_bits() const = 0;

  /// Messages of one pair and tag arrive in the order in which they were sent; both ends post the same sizes, from 1
  /// to 2^30 bytes. The bytes belong to the message until it is complete.
  [[nodiscard]] virtual MessageId send(Rank to, int tag, const std::byte* at, std::int64_t bytes) = 0;
  [[nodiscard]] virtual MessageId receive(Rank from, int tag, std::byte* at, std::int64_t bytes) = 0;
  /// Moves what can be moved, a few MiB at most, where that does not happen by itself; true when something moved.
  [[nodiscard]] virtual Result<bool> progress() = 0;
  /// Whether a message is complete; then the id is given up. What MPI reports here is a lost peer or link.
  [[nodiscard]] virtual Result<bool> finish(MessageId id) = 0;
  /// The same, and the id stays.
  [[nodiscard]] virtual bool is_complete(MessageId id) const = 0;

  /// Every rank's text. Blocking, at most for `deadline`; fails as soon as there is news().
  [[nodiscard]] virtual Result<std::vector<std::string>> exchange(std::string_view own,
                                                                  std::chrono::milliseconds deadline) = 0;
  /// Tells all others that this rank stops, and why. Once; takes 0.2 s at most.
  virtual void abort(std::string_view reason) = 0;
  /// A peer that stopped or is gone.
  [[nodiscard]] virtual std::optional<Error> news() = 0;
  [[nodiscard]] virtual std::optional<Error> lost_peer() = 0;
  /// The end; `properly`: all ranks have come to it.
  virtual void leave(bool properly) = 0;
};

}  // namespace shard
