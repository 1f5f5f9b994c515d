// Fuzz target: no text makes parse_config crash, hang or return a model that breaks its own invariants.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sim/model/config.h"
#include "sim/model/family.h"
#include "sim/model/graph.h"
#include "tests/fuzz/limits.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const shard::fuzz::Limits limits(size);
  const auto result = shard::model::parse_config(text, "fuzz", "fuzz.json");
  if (!result) {
    if (result.error().what.empty() || result.error().where.empty()) std::abort();
    return 0;
  }
  const shard::model::Model& model = result->model;
  if (model.parameters.empty() || model.parameters.size() != model.initialization.size() ||
      model.parameters.size() != model.parameter_block.size() || model.parameter_elements() <= 0) {
    std::abort();
  }
  // Only small models: the graph of a large one is merely slow.
  if (model.layers <= 64 && !model.not_simulated) {
    const shard::model::Model part = shard::model::simulated_part(model);
    const shard::model::Graph graph = shard::model::build_graph(part, 1, 1);
    if (!graph.loss.valid()) std::abort();
  }
  return 0;
}
