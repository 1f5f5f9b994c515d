// Which contributions make up the gradient of each value and parameter of a graph, as numbers to compare. P12, P13.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/ir/plan.h"

namespace shard::plan::verification {

/// A value's gradient is the sum of its uses' contributions, in any order: a sum of hashes. A parameter's is made by
/// its uses from the last to the first: a hash of that sequence. 64 bits: a wrong sum passes with a chance of 2^-64.
class GraphGradients {
 public:
  explicit GraphGradients(const Plan& plan);

  /// The hash of what operator `source` contributes to the gradient of its input `index`.
  [[nodiscard]] static std::uint64_t contribution(std::int32_t source, std::int32_t index);
  /// `history` with the contribution of operator `source` to its parameter `index` behind it; 0 is no history.
  [[nodiscard]] static std::uint64_t appended(std::uint64_t history, std::int32_t source, std::int32_t index);

  [[nodiscard]] std::uint64_t of_value(model::ValueId v) const { return values_[static_cast<std::size_t>(v.value)]; }
  /// Whether a parameter that is trained lies under v; otherwise nothing contributes to its gradient.
  [[nodiscard]] bool trains(model::ValueId v) const { return trains_[static_cast<std::size_t>(v.value)]; }
  [[nodiscard]] std::uint64_t of_parameter(model::ParamId p) const {
    return parameters_[static_cast<std::size_t>(p.value)];
  }

 private:
  std::vector<std::uint64_t> values_;
  std::vector<std::uint64_t> parameters_;
  std::vector<bool> trains_;
};

}  // namespace shard::plan::verification
