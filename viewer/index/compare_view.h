// Two documents on one time axis: how one lines up with the other, and where they differ in memory and time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/compare.h"
#include "viewer/index/document.h"

namespace shard::view {

enum class AlignMode : std::uint8_t {
  step,     ///< the reference steps begin together, at one speed
  stretch,  ///< the reference steps begin and end together
  clock,    ///< by the traces' own clocks (wall time where both know it)
};
[[nodiscard]] const char* to_string(AlignMode mode);

/// other_ns = other_anchor_ns + (time_ns - anchor_ns) * scale: times of the first document into times of the other.
struct Alignment {
  AlignMode mode = AlignMode::step;
  std::int64_t anchor_ns = 0, other_anchor_ns = 0;
  double scale = 1;
  std::int32_t step = -1, other_step = -1;  ///< the reference steps; -1 where there is none
  std::int64_t joined_op_count = 0;         ///< ops of the reference step that both have
  /// What the other document is shifted by, on the first one's axis.
  [[nodiscard]] std::int64_t offset_ns() const { return anchor_ns - other_anchor_ns; }

  [[nodiscard]] std::int64_t to_other(std::int64_t time_ns) const;
  [[nodiscard]] std::int64_t to_first(std::int64_t other_ns) const;
  [[nodiscard]] TimeRange to_other(TimeRange range) const;  ///< never empty where `range` is not
  [[nodiscard]] PixelRange to_other(const PixelRange& view) const { return {to_other(view.time), view.width}; }
  /// "offset +1.25 ms, scale 1.034 (steady step 3 on step 1)".
  [[nodiscard]] std::string text() const;
};

/// Lines up by the first steady step that both have by number, else by the first steady (or first) step of each. Its
/// begin and end are those of the ops (by rank and OpId) that both have in it; of all its spans where no op is shared.
/// Without steps the documents' begins and ends are used.
[[nodiscard]] Alignment align(const Document& first, const Document& other, AlignMode mode);

/// One row of the table of residuals: other - first.
struct Residual {
  OpComparison op;
  double seconds = 0;                                   ///< second - first, per step
  std::int64_t bytes = 0;                               ///< per step, likewise
  std::optional<std::uint32_t> first_span, other_span;  ///< to jump to
};

/// A comparison ready to show. `comparison.first` is the predicted one where there is one; `swapped` says that this is
/// the other document. Residuals are always other - first *document*.
struct CompareView {
  Comparison comparison;
  bool swapped = false;
  Alignment alignment;
  std::vector<Residual> by_time;   ///< largest difference first
  std::vector<Residual> by_bytes;  ///< ops whose bytes differ, largest first
};

/// Fails as compare_traces() does (Errc::contradiction, with the reason) where the plans differ and `force` is not set.
[[nodiscard]] Result<CompareView> compare_documents(const Document& first, const Document& other, AlignMode mode,
                                                    bool force = false, std::size_t max_ops = 200);

/// other - first, in bytes, over the first document's axis; exact: a step at every event of either, extremes kept
/// between them. Empty where either is missing.
[[nodiscard]] StepCurve memory_difference(const MemorySeries* first, const MemorySeries* other,
                                          const Alignment& alignment);

}  // namespace shard::view
