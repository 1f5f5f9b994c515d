// Parts of device memory whose values come from elsewhere, and are fetched when somebody looks at them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace shard::standin {

using Bytes = std::vector<std::byte>;

/// Values that are asked for once, by the first who looks. Synchronised.
class Source {
 public:
  /// `fetch` may wait; none where nobody knows the values. `if_equal`: what they would be if all ranks had sent what
  /// this one has, where it runs alone.
  explicit Source(std::function<std::optional<Bytes>()> fetch, std::optional<Bytes> if_equal = std::nullopt)
      : fetch_(std::move(fetch)), if_equal_(std::move(if_equal)) {}
  [[nodiscard]] const std::optional<Bytes>& values();
  [[nodiscard]] const std::optional<Bytes>& if_equal() const { return if_equal_; }

 private:
  std::once_flag fetched_;
  std::function<std::optional<Bytes>()> fetch_;
  std::optional<Bytes> values_, if_equal_;
};

/// A piece of memory, and where in its source it begins.
struct Promise {
  std::uintptr_t address = 0;
  std::size_t bytes = 0;
  std::shared_ptr<Source> source;
  std::size_t offset = 0;
};

/// Pieces that do not overlap. Not synchronised.
class Promises {
 public:
  void add(const Promise& promise);
  /// What is written to is promised no more: whole pieces, since nobody promises half a number.
  void drop(std::uintptr_t address, std::size_t bytes);
  /// One that a piece has a part of; none is left of it then.
  [[nodiscard]] std::optional<Promise> take(std::uintptr_t address, std::size_t bytes);
  /// The promise of a piece that is wholly within one, as of that piece.
  [[nodiscard]] std::optional<Promise> within(std::uintptr_t address, std::size_t bytes) const;
  /// Those that are wholly within a piece.
  [[nodiscard]] std::vector<Promise> inside(std::uintptr_t address, std::size_t bytes) const;
  /// How many bytes from an address on one promise has.
  [[nodiscard]] std::size_t promised_begin(std::uintptr_t address) const;
  [[nodiscard]] bool touches(std::uintptr_t address, std::size_t bytes) const;

 private:
  using Pieces = std::map<std::uintptr_t, Promise>;  // by address
  [[nodiscard]] Pieces::const_iterator first_in(std::uintptr_t address, std::size_t bytes) const;
  Pieces pieces_;
};

}  // namespace shard::standin
