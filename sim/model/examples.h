// The example models that the program knows by name wherever it runs.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace shard::model {

/// A file of examples/models/, embedded when the program is built.
struct ExampleModel {
  std::string_view name;         ///< the file's name without ".json"
  std::string_view config_json;  ///< its text
};

/// Sorted by name.
[[nodiscard]] std::span<const ExampleModel> example_models();
[[nodiscard]] std::optional<ExampleModel> find_example_model(std::string_view name);

}  // namespace shard::model
