// What holds most of a memory at a moment: buffers that differ only in the numbers of their layers, together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/engine/simulation.h"
#include "sim/ir/plan.h"

namespace shard::engine {

/// Of one plan, which must outlive it. Finds what buffers have in common once, however many moments are asked about.
class Holders {
 public:
  explicit Holders(const plan::Plan& plan) : plan_(plan), group_of_(plan.buffers.size(), -1) {}
  /// The `count` groups of most bytes, the largest first, of the live buffers. `live`: by BufferId. A group of one
  /// buffer has that buffer's name, others the pattern.
  [[nodiscard]] std::vector<Holder> largest(const std::vector<bool>& live, std::size_t count);

 private:
  struct Group {
    std::string pattern;
    Category category{};
  };
  [[nodiscard]] std::size_t group_of(std::size_t buffer);

  const plan::Plan& plan_;
  std::vector<std::int32_t> group_of_;  ///< by buffer, -1: not known yet
  std::vector<Group> groups_;
  std::unordered_map<std::string, std::int32_t> known_;  ///< by category and pattern
};

}  // namespace shard::engine
