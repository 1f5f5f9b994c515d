// Writes protobuf's wire format (https://protobuf.dev/programming-guides/encoding): the little that exporting needs.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace shard {

/// One message under construction; fields are appended in the order of the calls.
class ProtoMessage {
 public:
  /// int32, int64, uint32, uint64, bool and enum fields. Negative numbers take ten bytes, as protobuf does.
  void varint(std::uint32_t field, std::int64_t value) {
    tag(field, 0);
    raw(static_cast<std::uint64_t>(value));
  }
  void fixed64(std::uint32_t field, std::uint64_t value) {
    tag(field, 1);
    for (int shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(value >> shift & 0xff);
  }
  void number(std::uint32_t field, double value) { fixed64(field, std::bit_cast<std::uint64_t>(value)); }
  /// string, bytes and embedded messages.
  void text(std::uint32_t field, std::string_view value) {
    tag(field, 2);
    raw(value.size());
    bytes_ += value;
  }
  void message(std::uint32_t field, const ProtoMessage& value) { text(field, value.bytes_); }

  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }

 private:
  void tag(std::uint32_t field, std::uint32_t wire_type) { raw(std::uint64_t{field} << 3 | wire_type); }
  void raw(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7f) | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace shard
