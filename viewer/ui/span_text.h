// What is said about one span, in a tooltip and in the details.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "viewer/index/document.h"

namespace shard::view {

/// Names and values of all that is known about a span, the important first.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> span_facts(const Document& document, std::uint32_t span);

}  // namespace shard::view
