// Which parts of device memory have values: those that were copied there, until a kernel writes to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace shard::standin {

/// Not synchronised. What has no value is zeros, in memory too.
class Values {
 public:
  /// Longer pieces have no values: nobody decides anything by them, and host memory is dear.
  static constexpr std::size_t kLongest = std::size_t{1} << 20;
  /// But those that the host computes itself, such as the experts of many tokens.
  static constexpr std::size_t kLongestComputed = std::size_t{32} << 20;

  /// A piece gets values, which the caller writes. False where all pieces together would be too many.
  bool note(std::uintptr_t address, std::size_t bytes);
  /// A piece has none any more.
  void drop(std::uintptr_t address, std::size_t bytes);
  /// What was copied in one piece around an address has none any more.
  void drop_at(std::uintptr_t address);
  /// Whether a piece has values. A number where a block may begin in a long piece is not of it: blocks are used again,
  /// and the kernel that wrote the number to it was not seen.
  [[nodiscard]] bool knows(std::uintptr_t address, std::size_t bytes) const;
  /// How much of a piece has values, from its begin on: an object lies in a buffer as long as the longest of all
  /// ranks'.
  [[nodiscard]] std::size_t known_begin(std::uintptr_t address, std::size_t bytes) const;

  [[nodiscard]] bool empty() const { return pieces_.empty(); }

 private:
  using Pieces = std::map<std::uintptr_t, std::size_t>;  // by address
  [[nodiscard]] Pieces::const_iterator around(std::uintptr_t address) const;

  Pieces pieces_;
  std::size_t bytes_ = 0;
};

}  // namespace shard::standin
