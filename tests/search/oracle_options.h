// What a row of the recorded searches (tests/data/chunk_oracle) asked for.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/search/chunk_search.h"

namespace shard::testing {

inline ChunkSearchOptions options_of(const nlohmann::json& row) {
  ChunkSearchOptions options;
  options.world_size = row.at("world_size");
  if (row.at("algo").get<std::string>().starts_with("old")) {
    options.rule = ChunkRule::gemini_v019;
    options.search_range = Elems{row.at("search_range_elems")};
    options.grids = row.at("n_grids");
  } else {
    options.rule = ChunkRule::gemini;
    options.search_range = Elems{row.at("search_range_m").get<std::int64_t>() << 20};
    options.search_interval = Elems{row.at("interval")};
    options.min_chunk = Elems{row.at("min_chunk_size_m").get<std::int64_t>() << 20};
  }
  return options;
}

}  // namespace shard::testing
