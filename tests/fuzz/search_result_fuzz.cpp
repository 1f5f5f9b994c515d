// Fuzz target: no text makes parse_search_result crash or return points that the viewer cannot show.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/fuzz/limits.h"
#include "tests/fuzz/trace_check.h"
#include "viewer/index/search_result.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shard;
  const fuzz::Limits limits(size);
  const Result<view::SearchResult> result =
      view::parse_search_result({reinterpret_cast<const char*>(data), size}, "fuzz.json");
  if (!result) {
    fuzz::require(!result.error().what.empty() && !result.error().where.empty());
    return 0;
  }
  for (const std::size_t position : result->pareto) fuzz::require(position < result->points.size());
  fuzz::require(std::is_sorted(result->points.begin(), result->points.end(),
                               [](const auto& a, const auto& b) { return a.chunk_elements < b.chunk_elements; }));
  for (const view::SearchPoint& point : result->points) (void)result->waste_share(point);
  return 0;
}
