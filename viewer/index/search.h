// Finds spans by name or op, and steps from one to the next.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "viewer/index/document.h"

namespace shard::view {

/// The names that contain a text, letter case ignored (ASCII).
struct NameMatch {
  std::vector<NameId> names;       ///< in order
  std::vector<std::uint8_t> hits;  ///< by NameId: 1 where it matches
  std::int64_t span_count = 0;

  [[nodiscard]] bool empty() const { return span_count == 0; }
  [[nodiscard]] bool contains(NameId name) const {
    return name.valid() && static_cast<std::size_t>(name.value) < hits.size() &&
           hits[static_cast<std::size_t>(name.value)] != 0;
  }
};

/// An empty text matches nothing.
[[nodiscard]] NameMatch find_names(const Document& document, std::string_view text);

/// Matching spans are in one order: by begin, then by index. These step to the nearest after (or before) a span; with
/// no span given, to the first that begins at or after (the last that begins at or before) the time. They do not wrap.
[[nodiscard]] std::optional<std::uint32_t> next_match(const Document& document, const NameMatch& match,
                                                      std::int64_t time_ns,
                                                      std::optional<std::uint32_t> after = std::nullopt);
[[nodiscard]] std::optional<std::uint32_t> previous_match(const Document& document, const NameMatch& match,
                                                          std::int64_t time_ns,
                                                          std::optional<std::uint32_t> before = std::nullopt);

/// The first span of an op, by begin; of one rank where that is valid, and not before a time.
[[nodiscard]] std::optional<std::uint32_t> find_op(const Document& document, OpId op, Rank rank = {},
                                                   std::int64_t not_before_ns = INT64_MIN);

/// The span of `to` that is the same op of the same rank, phase and micro-step as a span of `from`: that of the same
/// step, else of the first step that has it.
[[nodiscard]] std::optional<std::uint32_t> counterpart(const Document& from, std::uint32_t span, const Document& to);

}  // namespace shard::view
