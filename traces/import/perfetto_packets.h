// The outermost layer of a Perfetto trace: packets one after the other, some of them compressed together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "traces/import/byte_source.h"
#include "traces/reader.h"

namespace shard::import {

class PerfettoPackets {
 public:
  explicit PerfettoPackets(ByteSource& source) : source_(source) {}

  /// The next packet, which stays until the one after it; false at the end, or where what follows cannot be made out.
  [[nodiscard]] bool next(std::string_view& packet);
  /// Where it begins.
  [[nodiscard]] std::uint64_t at() const { return at_; }
  /// Ends the reading.
  void stop(std::uint64_t at, std::string why);
  /// Why it ended early.
  [[nodiscard]] const std::optional<Truncated>& stopped() const { return stopped_; }

 private:
  bool varint(std::uint64_t& value);
  /// One field of the outermost message; `found` where it is a packet.
  bool field(bool& found);
  bool cut();

  ByteSource& source_;
  std::string buffer_;
  std::uint64_t at_ = 0;
  std::optional<Truncated> stopped_;
};

/// The packets of a compressed_packets field, one message. Empty where they are damaged from the start; `ok` says
/// whether they came to their end.
[[nodiscard]] std::string inflated_packets(std::string_view bytes, bool& ok);

}  // namespace shard::import
