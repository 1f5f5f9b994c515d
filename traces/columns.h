// Columns of integers as byte planes: what makes a trace compress (FORMAT.md T4).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace shard::sst {

/// Appends columns to a payload. A column of n values of w bytes is w planes of n bytes: all lowest bytes first.
class ColumnWriter {
 public:
  template <class T>
  void plain(std::span<const T> values) {
    using U = std::make_unsigned_t<T>;
    const std::size_t n = values.size();
    const std::size_t at = raw_.size();
    raw_.resize(at + n * sizeof(T));
    for (std::size_t plane = 0; plane < sizeof(T); ++plane) {
      std::byte* out = raw_.data() + at + plane * n;
      for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<std::byte>(static_cast<U>(values[i]) >> (8 * plane));
    }
  }
  /// As plain(), of the difference to the value before (modulo 2^bits; before the first: 0).
  template <class T>
  void delta(std::span<T> values) {
    using U = std::make_unsigned_t<T>;
    U previous = 0;
    for (T& value : values) {
      const U current = static_cast<U>(value);
      value = static_cast<T>(static_cast<U>(current - previous));
      previous = current;
    }
    plain(std::span<const T>(values));
  }
  template <class T>
  void scalar(T value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    raw_.insert(raw_.end(), bytes, bytes + sizeof(T));
  }
  void text(std::string_view text) {
    scalar(static_cast<std::uint32_t>(text.size()));
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    raw_.insert(raw_.end(), bytes, bytes + text.size());
  }
  [[nodiscard]] std::span<const std::byte> bytes() const { return raw_; }
  void clear() { raw_.clear(); }

 private:
  std::vector<std::byte> raw_;
};

/// Takes columns from a payload in the order in which they were appended. Reading past the end yields zeros and makes
/// ok() false; nothing is read outside the payload.
class ColumnReader {
 public:
  explicit ColumnReader(std::span<const std::byte> raw) : raw_(raw) {}

  template <class T>
  void plain(std::span<T> values) {
    using U = std::make_unsigned_t<T>;
    const std::size_t n = values.size();
    const std::byte* in = take(n * sizeof(T));
    if (in == nullptr) return;
    for (std::size_t i = 0; i < n; ++i) {
      U value = 0;
      for (std::size_t plane = 0; plane < sizeof(T); ++plane) {
        value = static_cast<U>(value | static_cast<U>(static_cast<U>(in[plane * n + i]) << (8 * plane)));
      }
      values[i] = static_cast<T>(value);
    }
  }
  template <class T>
  void delta(std::span<T> values) {
    using U = std::make_unsigned_t<T>;
    plain(values);
    U sum = 0;
    for (T& value : values) {
      sum = static_cast<U>(sum + static_cast<U>(value));
      value = static_cast<T>(sum);
    }
  }
  template <class T>
  [[nodiscard]] T scalar() {
    T value{};
    if (const std::byte* in = take(sizeof(T))) std::memcpy(&value, in, sizeof(T));
    return value;
  }
  [[nodiscard]] std::string_view text() {
    const auto length = scalar<std::uint32_t>();
    const std::byte* in = take(length);
    return in == nullptr ? std::string_view() : std::string_view(reinterpret_cast<const char*>(in), length);
  }
  [[nodiscard]] bool ok() const { return ok_; }
  /// Everything was read and nothing is left.
  [[nodiscard]] bool finished() const { return ok_ && raw_.empty(); }

 private:
  const std::byte* take(std::size_t bytes) {
    if (!ok_ || bytes > raw_.size()) {
      ok_ = false;
      return nullptr;
    }
    const std::byte* at = raw_.data();
    raw_ = raw_.subspan(bytes);
    return at;
  }

  std::span<const std::byte> raw_;
  bool ok_ = true;
};

}  // namespace shard::sst
