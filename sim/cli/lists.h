// Several values in the text of one option.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shard::cli {

/// The values of "0,1,2", in order; of a text without `separator` that text alone. A separator that belongs to a value
/// stands behind a backslash, or in a JSON object, which begins its value ({"a": 1, "b": 2}). Any text is safe.
[[nodiscard]] std::vector<std::string> values_in(std::string_view text, char separator = ',');

}  // namespace shard::cli
