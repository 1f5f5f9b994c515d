// Axis ticks and labels for time and bytes: round steps, enough digits to tell neighbours apart, no more.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "viewer/index/viewport.h"

namespace shard::view {

struct Tick {
  double position = 0;  ///< pixels from the left edge (time) or from the bottom (values)
  std::string label;    ///< empty for a tick between labels
  friend bool operator==(const Tick&, const Tick&) = default;
};

/// Ticks at multiples of 1, 2 or 5 x 10^n ns after `zero_ns`, labelled relative to it ("1.25 ms"), at least
/// `label_width` pixels apart. Labels of one axis share unit and number of decimals.
[[nodiscard]] std::vector<Tick> time_ticks(const Camera& camera, std::int64_t zero_ns, double width,
                                           double label_width = 90);

/// Ticks of an axis from `lowest` to `highest` bytes over `height` pixels, at 1, 2 or 5 x a power of ten of
/// one binary unit ("2 GiB", "500 MiB"). Position 0 is `lowest`.
[[nodiscard]] std::vector<Tick> byte_ticks(std::int64_t lowest, std::int64_t highest, double height,
                                           double label_height = 28);

/// The same for plain numbers ("1.5k", "2M").
[[nodiscard]] std::vector<Tick> value_ticks(double lowest, double highest, double height, double label_height = 28);

/// A duration as people read it, to the nanosecond where that is short: "37 ns", "1.234 us", "12.5 ms", "3.25 s".
[[nodiscard]] std::string duration_text(std::int64_t ns);
/// A time to the nanosecond: "1.234 567 890 s".
[[nodiscard]] std::string exact_time_text(std::int64_t ns);
/// "1.50 GiB", "12 B", "-3.00 MiB".
[[nodiscard]] std::string size_text(std::int64_t bytes);

}  // namespace shard::view
