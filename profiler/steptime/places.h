// Kernels of a recording that nobody knows by name, by those that ran before and after them.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "profiler/steptime/recorded.h"
#include "profiler/steptime/work_list.h"

namespace shard::steptime {

/// What lies between two kernels that are known, of one stream.
struct Gap {
  std::int32_t before = 0, after = 0;  ///< kinds of the recording
  std::size_t count = 0;               ///< of kernels between them

  friend auto operator<=>(const Gap&, const Gap&) = default;
};

/// Of the step, what lies in a gap. `name` is none of a product.
struct Piece {
  Work kind = Work::kernel;
  std::array<std::int64_t, 8> numbers{};
  std::string name;

  friend bool operator==(const Piece&, const Piece&) = default;
};

class Places {
 public:
  /// `known`: the kinds that the step has, too. What sums the parts of a product, or adds its bias, belongs to it.
  Places(const Recorded& recorded, const std::set<std::int32_t>& known);

  /// What each took; nullptr where no such gap was recorded, or other kernels were in it: PyTorch's own where a product
  /// is, or kernels of another name.
  [[nodiscard]] const std::vector<Durations>* of(const Gap& gap, const std::vector<Piece>& inside) const;

 private:
  struct Content {
    std::vector<Durations> took;
    std::vector<std::set<std::string>> names;  ///< without templates' arguments
  };
  std::map<Gap, Content> gaps_;
};

}  // namespace shard::steptime
