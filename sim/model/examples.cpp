// Lookup among the embedded files.
#include "sim/model/examples.h"

namespace shard::model {

std::optional<ExampleModel> find_example_model(std::string_view name) {
  for (const ExampleModel& example : example_models()) {
    if (example.name == name) return example;
  }
  return std::nullopt;
}

}  // namespace shard::model
