// Protobuf's wire format (https://protobuf.dev/programming-guides/encoding), read and written: the little that traces
// of Perfetto and files of TensorBoard need.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace shard {

/// How a field's value follows its tag. Groups (3 and 4) nobody writes any more.
enum class ProtoWire : std::uint8_t { varint = 0, fixed64 = 1, delimited = 2, fixed32 = 5 };

/// One message under construction; fields are appended in the order of the calls.
class ProtoMessage {
 public:
  /// int32, int64, uint32, uint64, bool and enum fields. Negative numbers take ten bytes, as protobuf does.
  void varint(std::uint32_t field, std::int64_t value) {
    tag(field, ProtoWire::varint);
    raw(static_cast<std::uint64_t>(value));
  }
  void fixed64(std::uint32_t field, std::uint64_t value) {
    tag(field, ProtoWire::fixed64);
    for (int shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(value >> shift & 0xff);
  }
  void number(std::uint32_t field, double value) { fixed64(field, std::bit_cast<std::uint64_t>(value)); }
  void number32(std::uint32_t field, float value) {
    tag(field, ProtoWire::fixed32);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>(bits >> shift & 0xff);
  }
  /// string, bytes and embedded messages.
  void text(std::uint32_t field, std::string_view value) {
    tag(field, ProtoWire::delimited);
    raw(value.size());
    bytes_ += value;
  }
  void message(std::uint32_t field, const ProtoMessage& value) { text(field, value.bytes_); }

  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }

 private:
  void tag(std::uint32_t field, ProtoWire wire) { raw(std::uint64_t{field} << 3 | static_cast<std::uint64_t>(wire)); }
  void raw(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7f) | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

/// One field of a message. `value` is set for varint and fixed fields, `bytes` for length-delimited ones.
struct ProtoField {
  std::uint32_t number = 0;
  std::uint64_t value = 0;
  std::string_view bytes{};
  bool delimited = false;

  [[nodiscard]] std::int64_t integer() const { return static_cast<std::int64_t>(value); }
  [[nodiscard]] double real() const { return std::bit_cast<double>(value); }
};

/// Fields of a message in memory in turn. Groups make it not ok().
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) : rest_(message) {}

  /// The next field; false at the end and where the message is malformed.
  [[nodiscard]] bool next(ProtoField& field) {
    if (rest_.empty() || !ok_) return false;
    std::uint64_t tag = 0;
    if (!varint(tag)) return false;
    field = {.number = static_cast<std::uint32_t>(tag >> 3)};
    if (tag >> 3 == 0 || tag >> 32 != 0) return ok_ = false;
    switch (static_cast<ProtoWire>(tag & 7)) {
      case ProtoWire::varint: return varint(field.value);
      case ProtoWire::fixed64: return fixed(8, field.value);
      case ProtoWire::fixed32: return fixed(4, field.value);
      case ProtoWire::delimited: {
        std::uint64_t length = 0;
        if (!varint(length)) return false;
        if (length > rest_.size()) return ok_ = false;
        field.bytes = rest_.substr(0, length);
        field.delimited = true;
        rest_.remove_prefix(length);
        return true;
      }
    }
    return ok_ = false;
  }
  [[nodiscard]] bool ok() const { return ok_; }

  /// A varint from the front of `rest`, for packed fields and file headers.
  [[nodiscard]] static bool take_varint(std::string_view& rest, std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest.front());
      rest.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

 private:
  bool varint(std::uint64_t& value) { return ok_ = take_varint(rest_, value); }
  bool fixed(std::size_t bytes, std::uint64_t& value) {
    if (rest_.size() < bytes) return ok_ = false;
    value = 0;
    std::memcpy(&value, rest_.data(), bytes);
    rest_.remove_prefix(bytes);
    return true;
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace shard
