// Numbers as people read them in the panes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "traces/base/in_words.h"
#include "traces/base/numbers.h"

namespace shard::view {

/// "+1.24 ms", "-3 B", "0": a difference.
[[nodiscard]] std::string with_sign(std::string_view text, double value);
/// 1234567 as "1,234,567".
[[nodiscard]] std::string show_count(std::int64_t count);
/// 0.1234 as "12.3 %".
[[nodiscard]] std::string show_percent(double share);
using shard::in_words;
using shard::show_number;
/// A dotted name without its first parts, as many as it takes to `fits`; at least the last part is kept:
/// "transformer.h.0.attn backward", "attn backward".
[[nodiscard]] std::string_view fitting_tail(std::string_view name, const std::function<bool(std::string_view)>& fits);
/// A name cut in its middle until it `fits`: threads and streams of one process differ at their ends.
[[nodiscard]] std::string ends_of(std::string_view name, const std::function<bool(std::string_view)>& fits);
/// True when every character of `needle` (lower case) occurs in `text` in one piece, letter case aside.
[[nodiscard]] bool contains_text(std::string_view text, std::string_view needle);

}  // namespace shard::view
