// The example clusters that the program knows by name wherever it runs.
#pragma once

#include <span>
#include <string_view>

namespace shard::cluster {

/// A file of examples/clusters/, embedded when the program is built.
struct ExampleCluster {
  std::string_view name;  ///< the file's name without ".json"
  std::string_view json;  ///< its text
};

/// Sorted by name.
[[nodiscard]] std::span<const ExampleCluster> example_clusters();

}  // namespace shard::cluster
