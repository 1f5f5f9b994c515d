// Reads protobuf's wire format (https://protobuf.dev/programming-guides/encoding) out of a message in memory.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace shard::import {

/// One field of a message. `value` is set for varint and fixed fields, `bytes` for length-delimited ones.
struct ProtoField {
  std::uint32_t number = 0;
  std::uint64_t value = 0;
  std::string_view bytes{};
  bool delimited = false;

  [[nodiscard]] std::int64_t integer() const { return static_cast<std::int64_t>(value); }
  [[nodiscard]] double real() const { return std::bit_cast<double>(value); }
};

/// Fields of a message in turn. Groups (wire types 3 and 4), which nobody writes any more, make it not ok().
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) : rest_(message), size_(message.size()) {}

  /// The next field; false at the end and where the message is malformed.
  [[nodiscard]] bool next(ProtoField& field) {
    if (rest_.empty() || !ok_) return false;
    std::uint64_t tag = 0;
    if (!varint(tag)) return false;
    field = {.number = static_cast<std::uint32_t>(tag >> 3)};
    if (tag >> 3 == 0 || tag >> 32 != 0) return ok_ = false;
    switch (tag & 7) {
      case 0: return varint(field.value);
      case 1: return fixed(8, field.value);
      case 2: {
        std::uint64_t length = 0;
        if (!varint(length)) return false;
        if (length > rest_.size()) return ok_ = false;
        field.bytes = rest_.substr(0, length);
        field.delimited = true;
        rest_.remove_prefix(length);
        return true;
      }
      case 5: return fixed(4, field.value);
      default: return ok_ = false;
    }
  }
  [[nodiscard]] bool ok() const { return ok_; }
  /// Of the next byte, from the beginning of the message.
  [[nodiscard]] std::size_t offset() const { return size_ - rest_.size(); }

  /// A varint out of `rest`, for packed fields and file headers.
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
  std::size_t size_;
  bool ok_ = true;
};

}  // namespace shard::import
