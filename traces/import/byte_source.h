// A stream of bytes out of a file or out of memory, decompressed on the way where it is gzip.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "traces/base/result.h"

namespace shard::import {

/// Reads front to back through a window of fixed size: nothing that the input says makes it allocate. Offsets count
/// decompressed bytes. A fault of the stream (damaged gzip, failed read) ends it early and is kept in fault().
class ByteSource {
 public:
  /// Fails with Errc::no_input (absent, unreadable, a folder).
  [[nodiscard]] static Result<ByteSource> open(const std::filesystem::path& path);
  /// Borrows `bytes`; `label` names them in errors.
  [[nodiscard]] static ByteSource memory(std::span<const std::byte> bytes, std::string_view label);

  ByteSource(ByteSource&&) noexcept;
  ByteSource& operator=(ByteSource&&) noexcept;
  ~ByteSource();

  /// The next byte, or -1 at the end.
  [[nodiscard]] int get() {
    return at_ != end_ || refill() ? static_cast<int>(static_cast<unsigned char>(*at_++)) : -1;
  }
  /// The same, left in place.
  [[nodiscard]] int peek() { return at_ != end_ || refill() ? static_cast<int>(static_cast<unsigned char>(*at_)) : -1; }
  /// Up to the next `bytes` bytes (at most kWindowBytes / 2), left in place; fewer only at the end.
  [[nodiscard]] std::string_view peek(std::size_t bytes);
  /// What is in the window: empty only at the end.
  [[nodiscard]] std::string_view window() {
    return at_ != end_ || refill() ? std::string_view(at_, static_cast<std::size_t>(end_ - at_)) : std::string_view();
  }
  /// Passes over `bytes` bytes of the window.
  void consume(std::size_t bytes) { at_ += bytes; }
  /// Appends the next `bytes` bytes to `out`, or up to the end, which makes it false. `out` grows with what is there.
  [[nodiscard]] bool append(std::string& out, std::uint64_t bytes);
  [[nodiscard]] bool skip(std::uint64_t bytes);

  /// Of the next byte.
  [[nodiscard]] std::uint64_t offset() const { return window_end_ - static_cast<std::uint64_t>(end_ - at_); }
  [[nodiscard]] const std::string& label() const { return label_; }
  /// Why the stream ended before its time; empty where it did not.
  [[nodiscard]] const std::string& fault() const { return fault_; }
  /// Whether offsets count decompressed bytes.
  [[nodiscard]] bool compressed() const;
  /// "FILE: byte N" of the next byte, for errors.
  [[nodiscard]] std::string where() const;

  static constexpr std::size_t kWindowBytes = 1u << 18;

 private:
  struct State;
  ByteSource(std::unique_ptr<State> state, std::string label);
  bool refill();
  /// Bytes put at `out`; 0 at the end.
  std::size_t fill(char* out, std::size_t room);
  std::size_t fill_raw(char* out, std::size_t room);
  std::size_t inflate_some(char* out, std::size_t room);
  void start();

  std::unique_ptr<State> state_;
  std::string label_;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  std::uint64_t window_end_ = 0;  // stream offset of end_
  std::string fault_;
};

}  // namespace shard::import
