// What is said about one span, one unit and the plan, in tooltips, details and reports.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "viewer/index/document.h"

namespace shard::view {

/// Names and values of all that is known about a span, the important first.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> span_facts(const Document& document, std::uint32_t span);

/// What the trace says of a unit's size; nothing of units that it does not list.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> unit_facts(const Document& document, UnitId unit);

/// What the trace says of its plan: the strategy's telling fields, and the capacities of memories.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> plan_facts(const Document& document);

}  // namespace shard::view
