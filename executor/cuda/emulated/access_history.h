// Who wrote and read each byte last, and whether a next access is ordered behind them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "executor/cuda/emulated/op_record.h"

namespace shard::cuda::emulated {

/// When and whose: the tick-th piece of work of a lane (a stream, or a graph's node). Work of a lane is in order.
struct Stamp {
  std::int32_t lane = -1;
  std::int64_t tick = 0;
  Op op{};
};

/// Two accesses of which at least one writes, with nothing that orders them.
struct Conflict {
  Stamp before{};
  bool before_writes = false;
  Access access{};  ///< the later one, cut to the bytes they share
};

class AccessHistory {
 public:
  using Ordered = std::function<bool(const Stamp& before)>;

  /// Takes the access down. The first conflict where `ordered` denies that what was there comes before it.
  std::optional<Conflict> add(const Access& access, const Stamp& stamp, const Ordered& ordered);

  /// Of these bytes, the first access that is not ordered before; they are forgotten.
  std::optional<Conflict> forget(const std::byte* begin, const std::byte* end, const Ordered& ordered);

  /// Everything, in order of addresses; what was read and written is written.
  [[nodiscard]] std::vector<Access> summary() const;

 private:
  struct Cell {
    const std::byte* end = nullptr;
    Stamp writer{};
    std::vector<Stamp> readers;  // since it was written, the last of each lane
  };
  using Cells = std::map<const std::byte*, Cell>;
  void split(const std::byte* at);

  Cells cells_;  // by their beginning; apart from each other
};

}  // namespace shard::cuda::emulated
