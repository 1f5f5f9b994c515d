// Overflow-checked appending of parameters.
#include "sim/model/parameter_builder.h"

#include <utility>

namespace shard::model {

void ParameterBuilder::add(std::string name, std::vector<std::int64_t> shape, Initialization initialization) {
  if (model_.parameters.size() >= kMaxTensors) too_many_ = true;
  if (too_large()) return;
  std::int64_t elements = 1;
  for (std::int64_t dimension : shape) {
    // A quotient rather than a product: it cannot overflow.
    if (dimension > kMaxParameterElements / elements) too_large_ = true;
    if (too_large_) return;
    elements *= dimension;
  }
  total_ += elements;
  if (total_ > kMaxParameterElements) too_large_ = true;
  if (too_large_) return;
  model_.parameters.push_back(Parameter{std::move(name), std::move(shape), Elems{elements}});
  model_.initialization.push_back(initialization);
  model_.parameter_block.push_back(block_);
}

}  // namespace shard::model
