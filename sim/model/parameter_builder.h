// Appends parameters, their initialization and their block to a Model, refusing sizes that no arithmetic here can hold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/model/graph.h"

namespace shard::model {

/// Largest total of parameter elements: 2^53, so that every count of bytes per element stays far inside 63 bits and
/// every element count is exact in a double.
inline constexpr std::int64_t kMaxParameterElements = std::int64_t{1} << 53;

class ParameterBuilder {
 public:
  explicit ParameterBuilder(Model& model) : model_(model) {}

  /// Parameters added from now on belong to this block (-1: none).
  void set_block(std::int32_t block) { block_ = block; }
  /// Nothing is added once the total exceeds kMaxParameterElements. Dimensions must be positive.
  void add(std::string name, std::vector<std::int64_t> shape, Initialization initialization);
  [[nodiscard]] bool too_large() const { return too_large_; }

 private:
  Model& model_;
  std::int32_t block_ = -1;
  std::int64_t total_ = 0;
  bool too_large_ = false;
};

}  // namespace shard::model
