// What is packed already: arenas that ranks of several classes have in common are packed once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/memory/pack.h"
#include "sim/memory/pack_apart.h"

namespace shard::plan {

/// Not synchronised; holds what it was asked for until it goes.
class Packings {
 public:
  /// pack() of them. The events acquire and release in turn.
  [[nodiscard]] const std::vector<Bytes>& pack(const std::vector<Bytes>& items, const std::vector<PackEvent>& events);
  /// pack_apart() of the request. Both are valid until the next call.
  [[nodiscard]] const std::optional<std::vector<Bytes>>& pack_apart(const PackApart& request);

 private:
  struct Packed {
    std::vector<Bytes> items;
    std::vector<PackEvent> events;
    std::vector<Bytes> offsets;
  };
  struct Apart {
    std::vector<Bytes> items;
    std::vector<PackEvent> events;
    std::vector<std::int32_t> after;
    std::vector<std::uint8_t> may_move;
    std::vector<Bytes> offsets;
    Bytes limit;
    std::optional<std::vector<Bytes>> moved;
  };
  std::vector<Packed> packed_;
  std::vector<Apart> apart_;
};

}  // namespace shard::plan
