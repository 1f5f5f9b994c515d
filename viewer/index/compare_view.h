// Where two documents on one time axis differ in memory and time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/compare.h"
#include "viewer/index/alignment.h"
#include "viewer/index/document.h"

namespace shard::view {

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
  Alignments alignments;
  std::vector<Residual> by_time;   ///< largest difference first
  std::vector<Residual> by_bytes;  ///< ops whose bytes differ, largest first
};

/// Fails as compare_traces() does (Errc::contradiction, with the reason) where the plans differ and `force` is not set.
[[nodiscard]] Result<CompareView> compare_documents(const Document& first, const Document& other, bool force = false,
                                                    std::size_t max_ops = 200);

/// How live memory of two documents differs: a curve on the first one's axis, and what led to each of its points.
struct MemoryDifference {
  StepCurve curve;                  ///< other - first, in bytes; empty where either has no events
  std::optional<MemoryByOp> by_op;  ///< its points are the curve's; none: they share no op, and times decide
};

/// In plan order (traces/memory_by_op.h), drawn where the first one's event is, of what only the other has where that
/// lies. Traces that share no op are subtracted at equal times: exact, a step at every event of either.
[[nodiscard]] MemoryDifference memory_difference(const Document& first, const MemorySeries* first_series,
                                                 const Document& other, const MemorySeries* other_series,
                                                 const Alignment& alignment);

/// The second of these by itself.
[[nodiscard]] StepCurve memory_difference_by_time(const MemorySeries* first, const MemorySeries* other,
                                                  const Alignment& alignment);

}  // namespace shard::view
