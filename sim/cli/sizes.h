// Sizes as people type and read them: 32Mi, 64M, 1.5Gi, 512k, plain numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "traces/base/numbers.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::cli {

/// "2**16", as Python has it; nothing for anything else, and where it is above 2^63.
[[nodiscard]] std::optional<std::int64_t> power_in(std::string_view text);

/// A non-negative whole number with an optional suffix: k M G T are powers of 1000, Ki Mi Gi Ti powers of 1024 (letter
/// case does not matter). A fraction of up to six digits is taken where the product is whole: 1.5Gi, not 0.3.
/// Errc::usage on junk and above 2^60 (kMaxTotalElems), for every option alike; `where` names the option and where its
/// value came from.
[[nodiscard]] Result<std::int64_t> parse_count(std::string_view text, std::string_view where);

/// As parse_count.
[[nodiscard]] Result<Elems> parse_elems(std::string_view text, std::string_view where);
/// As parse_count, with an optional B or b after the suffix: 40GB is 40 * 10^9 and 40GiB is 40 * 2^30.
[[nodiscard]] Result<Bytes> parse_bytes(std::string_view text, std::string_view where);

/// The shortest text that parse_count reads back as the same number: "32Mi", "64M", "1000k", "1001".
[[nodiscard]] std::string short_count(std::int64_t count);

/// "128.0 MiB"; below 0.1 MiB "640 B".
[[nodiscard]] std::string mib(Bytes bytes);

/// "33,554,432 elements (32Mi, 128.0 MiB)": elements and memory, with `bytes_per_element` bytes each.
[[nodiscard]] std::string elements_and_mib(Elems count, std::int64_t bytes_per_element);

using shard::duration;

}  // namespace shard::cli
