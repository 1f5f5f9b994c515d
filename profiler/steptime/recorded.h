// How long operators' kernels took in a run that was recorded, by operator and the tensors that it was called with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "traces/import/kineto_program.h"

namespace shard::steptime {

class Recorded {
 public:
  /// Of a recording with shapes and kernels. Collectives are left out: they wait for other ranks.
  explicit Recorded(const import::KinetoProgram& recording);

  /// Seconds that all kernels of one such call took, on average; none: there was none.
  [[nodiscard]] std::optional<double> of(const import::KinetoOperator& called) const;
  /// Operators that are told apart.
  [[nodiscard]] std::size_t count() const { return by_call_.size(); }

 private:
  struct Sum {
    double seconds = 0;
    std::int64_t calls = 0;
  };
  std::unordered_map<std::string, Sum> by_call_;
};

}  // namespace shard::steptime
