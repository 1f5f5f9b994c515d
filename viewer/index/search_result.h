// The JSON of `shardscope search --json`: points to plot over chunk size, the answer, and the Pareto front.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/result.h"

namespace shard::view {

struct SearchPoint {
  std::string label;  ///< of a strategy; empty for a plain chunk size
  std::int64_t chunk_elements = 0, chunk_count = 0;
  std::int64_t waste_elements = 0;
  std::int64_t gather_working_set_elements = 0;
  std::optional<std::int64_t> peak_device_bytes;
  std::optional<double> step_seconds;

  friend bool operator==(const SearchPoint&, const SearchPoint&) = default;
};

struct SearchResult {
  std::string rule;
  std::int64_t world_size = 1;
  std::int64_t total_elements = 0;
  std::int64_t bytes_per_element = 4;
  /// Rule variable's is `variable`. Of other rules: without peak and time unless the file or a point of that chunk size
  /// has them.
  SearchPoint answer;
  /// Chunks of different sizes, whatever rule was asked for: no point of the curve. chunk_elements is the largest.
  std::optional<SearchPoint> variable;
  std::vector<SearchPoint> points;  ///< of one chunk size each, ascending
  std::vector<std::size_t> pareto;  ///< positions in points that nothing beats in waste, peak and time at once
  std::string why;
  /// The answer has chunks of different sizes.
  [[nodiscard]] bool answer_is_variable() const { return rule == "variable"; }
  [[nodiscard]] double waste_share(const SearchPoint& point) const;
};

/// Errc::no_input where the file is absent; Errc::malformed, with byte or key, where it is no result of a search.
[[nodiscard]] Result<SearchResult> load_search_result(const std::filesystem::path& path);
[[nodiscard]] Result<SearchResult> parse_search_result(std::string_view text, std::string_view label = "search result");

/// Positions of points that no other point beats: not worse in any of waste, peak and time, better in one. Points are
/// compared with those that have the same of the three values.
[[nodiscard]] std::vector<std::size_t> pareto_front(const std::vector<SearchPoint>& points);

}  // namespace shard::view
