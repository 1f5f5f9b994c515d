// How the times of one document lie on another's axis: step by step, op by op, or by the clocks.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "viewer/index/document.h"

namespace shard::view {

enum class AlignMode : std::uint8_t {
  step,     ///< every step begins with its counterpart, and runs at its own speed where there is room
  stretch,  ///< in every step, each op begins with its counterpart
  clock,    ///< by the traces' own clocks (wall time where both know it)
};
[[nodiscard]] const char* to_string(AlignMode mode);

/// A time of the first document and the time of the other one that is drawn there.
struct Knot {
  std::int64_t first_ns = 0, other_ns = 0;
  friend bool operator==(const Knot&, const Knot&) = default;
};

/// Rises without a jump: straight between knots, at the other's own speed before the first and after the last.
struct Alignment {
  AlignMode mode = AlignMode::step;
  std::vector<Knot> knots;                  ///< rising in both; neighbours may share other_ns: there the other rests
  std::vector<Knot> begins;                 ///< of the steps that lie on each other, in order
  std::int32_t step = -1, other_step = -1;  ///< the first steady (else first) steps that lie on each other; -1: none
  double scale = 1;                         ///< how much longer the other took from begin to end of these
  std::int64_t step_count = 0;              ///< phases and steps that lie on each other
  std::int64_t joined_op_count = 0;         ///< ops of the reference step that both have

  [[nodiscard]] std::int64_t to_other(std::int64_t time_ns) const;
  [[nodiscard]] std::int64_t to_first(std::int64_t other_ns) const;
  [[nodiscard]] TimeRange to_other(TimeRange range) const;  ///< never empty where `range` is not
  /// Columns keep what is drawn in them; where the speed changes within the view they are of unequal length.
  [[nodiscard]] PixelRange to_other(const PixelRange& view) const;
  /// "3 steps begin together; step 3 on step 1, 1.03 times as long".
  [[nodiscard]] std::string text() const;
};

/// By AlignMode.
using Alignments = std::array<Alignment, 3>;

/// Steps are paired by phase and number where both have some of a number, else by phase and order; creation counts as a
/// step. A step begins with the first of the ops that both have in it (of all its spans where they share none): those
/// of the first rank that both have, for all ranks. Ops are the same by id within one plan, else by name. Without steps
/// the documents begin together. Costs one pass over the spans of each.
[[nodiscard]] Alignments align(const Document& first, const Document& other);
[[nodiscard]] Alignment align(const Document& first, const Document& other, AlignMode mode);

/// How much later (earlier: below zero) than in the first document each op of the other begins, in nanoseconds since
/// the begin of its step, over the first one's axis; of `by_op`, an alignment of AlignMode::stretch. It begins anew
/// with each step: what is left at a step's end is by how much the step took longer. Empty without steps.
[[nodiscard]] StepCurve lateness(const Alignment& by_op);

}  // namespace shard::view
