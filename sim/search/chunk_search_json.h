// A chunk search's result as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "sim/search/chunk_search.h"

namespace shard {

/// One object: schema_version, rule, world_size, parameter_count, total_elements, bytes_per_element,
///   chunk {chunk_elements, chunk_count, waste_elements, reported_waste_elements (null where the peer's formula has no
///     meaning), gather_working_set_elements, keep_gathered, filtered_parameters, candidates, and for rule
///     variable module_boundaries, max_chunk_elements},
///   chunks [{chunk_elements, used_elements, waste_elements, first_parameter, parameter_count}] for rule variable,
///   curve [{chunk_elements, chunk_count, waste_elements, gather_working_set_elements, and where they were forecast
///     peak_device_bytes, step_seconds}],
///   rules {exact, gemini, gemini-v0.1.9, variable: as chunk, or {error} where the options rule one out},
///   why, seconds.
[[nodiscard]] nlohmann::ordered_json to_json(const ChunkSearchResult& result);

}  // namespace shard
