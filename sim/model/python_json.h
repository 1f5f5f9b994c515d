// JSON as Python writes it, made JSON: Mamba's and others' config.json say "time_step_limit": [0.0, Infinity].
#pragma once

#include <string>
#include <string_view>

namespace shard::model {

/// The text with null in place of the numbers that only Python's json has (NaN, Infinity, -Infinity), outside of
/// strings. Any text is safe; where none of them is, it comes back as it was.
[[nodiscard]] std::string without_infinities(std::string_view text);

}  // namespace shard::model
