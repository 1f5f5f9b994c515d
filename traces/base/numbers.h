// Numbers as people read them, in every output: thousands apart, no exponents.
#pragma once

#include <cstdint>
#include <string>

#include "traces/base/units.h"

namespace shard {

/// "62,418,944".
[[nodiscard]] std::string with_commas(std::int64_t number);

/// Rounded to `digits` significant digits, whole numbers to one: "44,440", "12.13", "0.0418". With an exponent only
/// where the value is not what people count: below a millionth, above 10^15.
[[nodiscard]] std::string show_number(double value, int digits = 4);

/// With so many digits behind the point: "12.50".
[[nodiscard]] std::string show_fixed(double value, int decimals);

/// The shortest digits that give the same number back: "0.1", "1e-30".
[[nodiscard]] std::string shortest(double value);
[[nodiscard]] std::string shortest(float value);

/// "27.16 GiB", "16.00 MiB"; below 0.1 MiB "640 B".
[[nodiscard]] std::string show_bytes(Bytes bytes);

/// In MiB whatever the size, where several stand in a column: "0.02 MiB", "28672.00 MiB".
[[nodiscard]] std::string show_mib(Bytes bytes, int decimals = 2);

/// In GiB whatever the size: "119.69 GiB"; what two digits behind the point do not show is "<0.01 GiB".
[[nodiscard]] std::string show_gib(Bytes bytes);

/// To the byte: "40,174,671,360 B".
[[nodiscard]] std::string show_exact(Bytes bytes);

/// How the sizes of one answer are written.
using ShowBytes = std::string (*)(Bytes);

/// The one unit of an answer whose largest figure this is: GiB, or MiB below one.
[[nodiscard]] ShowBytes one_unit(Bytes largest);

/// Time in a unit that keeps `digits` digits: "412 us", "1.24 ms", "3.07 s", "4 min 12 s", "2 h 5 min", "497 days 1 h".
[[nodiscard]] std::string duration(Seconds time, int digits = 3);

/// A time and between what it is expected, in the unit that the middle asks for: "412 ms (360 to 480)", "1.2 s (0.9
/// to 1.6)".
[[nodiscard]] std::string duration_between(Seconds middle, Seconds low, Seconds high);

/// "1.07x", "-" where the first is 0.
[[nodiscard]] std::string show_ratio(double first, double second);

}  // namespace shard
