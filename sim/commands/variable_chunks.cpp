// From text to a bound, and from positions among the trained parameters to the model's.
#include "sim/commands/variable_chunks.h"

#include <algorithm>
#include <vector>

#include "sim/chunk/layout.h"
#include "sim/cli/contradiction.h"
#include "sim/cli/sizes.h"
#include "sim/model/parameters.h"

namespace shard::commands {

Result<std::optional<VariableChunks>> parse_variable_chunks(std::string_view text, std::string_view where) {
  constexpr std::string_view kName = "variable";
  if (text == kName) return std::optional(VariableChunks{});
  if (!text.starts_with(kName) || text[kName.size()] != ':') return std::optional<VariableChunks>{};
  const Result<Elems> largest = cli::parse_elems(text.substr(kName.size() + 1), where);
  if (!largest) return largest.error();
  if (largest->count() < 1 || *largest > kMaxTotalElems)
    return cli::contradiction(
        std::string(where) + " bounds chunks by " + std::to_string(largest->count()) + " elements, not by 1 to 2^60",
        "--chunk-size variable, or variable:32Mi");
  return std::optional(VariableChunks{.largest = *largest});
}

void use_variable_chunks(const model::Model& model, std::span<const std::size_t> starts, Elems largest,
                         plan::Strategy& strategy) {
  std::vector<std::int32_t> trained;
  std::vector<std::int32_t> frozen;
  std::vector<Elems> frozen_sizes;
  for (std::size_t p = 0; p < model.parameters.size(); ++p) {
    const auto id = static_cast<std::int32_t>(p);
    if (model.is_frozen(model::ParamId{id})) {
      frozen.push_back(id);
      frozen_sizes.push_back(model.parameters[p].elems);
    } else {
      trained.push_back(id);
    }
  }
  strategy.chunk_elems = largest;
  strategy.chunk_starts.clear();
  for (const std::size_t start : starts) strategy.chunk_starts.push_back(trained[start]);
  if (!frozen.empty())
    for (const Chunk& chunk : layout_uniform(frozen_sizes, largest, 1).chunks)
      strategy.chunk_starts.push_back(frozen[chunk.first_parameter]);
  std::ranges::sort(strategy.chunk_starts);
}

}  // namespace shard::commands
