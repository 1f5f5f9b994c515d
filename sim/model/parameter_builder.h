// Appends parameters, their initialization and their block to a Model, refusing sizes that no arithmetic here can hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/model/graph.h"

namespace shard::model {

/// Largest total of parameter elements: 2^53, so that every count of bytes per element stays far inside 63 bits and
/// every element count is exact in a double.
inline constexpr std::int64_t kMaxParameterElements = std::int64_t{1} << 53;

/// More tensors than any model has had; keeps a hostile count of layers or heads from filling memory with names.
inline constexpr std::size_t kMaxTensors = 150'000;

class ParameterBuilder {
 public:
  explicit ParameterBuilder(Model& model) : model_(model) {}

  /// Parameters added from now on belong to this block (-1: none).
  void set_block(std::int32_t block) { block_ = block; }
  /// Nothing is added once the total exceeds kMaxParameterElements, or their number kMaxTensors. Dimensions must be
  /// positive.
  void add(std::string name, std::vector<std::int64_t> shape, Initialization initialization);
  [[nodiscard]] bool too_large() const { return too_large_ || too_many_; }
  [[nodiscard]] bool too_many() const { return too_many_; }

 private:
  Model& model_;
  std::int32_t block_ = -1;
  std::int64_t total_ = 0;
  bool too_large_ = false;
  bool too_many_ = false;
};

}  // namespace shard::model
