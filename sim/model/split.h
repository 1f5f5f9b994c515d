// Tensor parallelism: which part of each parameter a rank holds, and the model that one such rank computes with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "traces/base/division.h"
#include "traces/base/result.h"
#include "traces/base/word.h"

namespace shard::model {

struct Model;

/// How T ranks share one model.
///   megatron    Shoeybi et al., Megatron-LM (arXiv 1909.08053), section 3: the first product of attention and of the
///               MLP by output columns (q, k and v by heads), the second by input rows, tables and logits by vocabulary
///   colossalai  the layout of Colossal-AI's tutorial on Gemini: tables by hidden column, all attention projections and
///               the first product of the MLP by output column, the second by input row; attention is not split
enum class TensorLayout : std::uint8_t { megatron, colossalai };

[[nodiscard]] constexpr Word word(TensorLayout v) {
  switch (v) {
    case TensorLayout::megatron: return {"megatron", "heads, MLP and vocabulary; two sums each way per block"};
    case TensorLayout::colossalai:
      return {"colossalai", "as its Gemini tutorial: columns, gathered after every product"};
  }
  return {};
}
[[nodiscard]] constexpr const char* to_string(TensorLayout v) {
  return word(v).text;
}

/// One parameter's cut. Along `axis` the whole is `pieces` equal parts (packed q|k|v: 3); rank t of T holds the t-th
/// T-th of each, rounded up: what lies behind the last rows of a vocabulary that T does not divide is padding.
struct ParameterSplit {
  std::vector<std::int64_t> whole{};  ///< shape of the whole parameter
  std::int32_t axis = -1;             ///< -1: every rank holds all of it
  std::int64_t pieces = 1;
  [[nodiscard]] bool cut() const { return axis >= 0; }
};

/// How a Model is a rank's part of another one.
struct TensorSplit {
  std::int32_t degree = 1;  ///< T; 1: the model is whole
  TensorLayout layout = TensorLayout::megatron;
  std::vector<ParameterSplit> parameters{};  ///< one per parameter where degree > 1, else none
};

/// Whether `degree` ranks can share the model: contradiction (78) naming the option and what it does not divide.
[[nodiscard]] Result<void> check_split(const Model& whole, std::int32_t degree, TensorLayout layout);

/// What each of `degree` ranks computes with: parameters in the same order and with the same names, cut; heads and
/// intermediate divided in the megatron layout; vocabulary, hidden and layers those of the whole. The same for all
/// ranks: which rows and columns they are is where ranks differ. Needs check_split(); degree 1 returns the model.
[[nodiscard]] Model split_model(const Model& whole, std::int32_t degree, TensorLayout layout);

/// The row or column of the whole that index `local` of the cut axis is on tensor rank `rank`; -1: padding.
[[nodiscard]] std::int64_t whole_index(const ParameterSplit& split, std::int32_t degree, std::int32_t rank,
                                       std::int64_t local);

/// Calls run(local, whole, n) for the longest stretches of n elements that begin at element `local` of a rank's part
/// and at element `whole` of the whole parameter, covering [first, first + count) of the part in order, padding left
/// out.
template <class Run>
void for_each_run(const ParameterSplit& split, std::int32_t degree, std::int32_t rank, std::int64_t first,
                  std::int64_t count, const Run& run) {
  if (!split.cut()) return run(first, first, count);
  std::int64_t inner = 1;
  for (std::size_t d = static_cast<std::size_t>(split.axis) + 1; d < split.whole.size(); ++d) inner *= split.whole[d];
  const std::int64_t along = split.whole[static_cast<std::size_t>(split.axis)];
  const std::int64_t piece = along / split.pieces;
  const std::int64_t own = divide_up(piece, degree);
  const std::int64_t real = std::clamp<std::int64_t>(piece - rank * own, 0, own) * inner;
  const std::int64_t block = own * inner;  // one rank's part of one piece, at one place of the axes before
  for (std::int64_t b = first / block; b * block < first + count; ++b) {
    const std::int64_t begin = std::max(first, b * block);
    const std::int64_t end = std::min(first + count, b * block + real);
    if (begin >= end) continue;
    const std::int64_t row = b / split.pieces;
    const std::int64_t start = (row * along + b % split.pieces * piece + rank * own) * inner;
    run(begin, start + begin - b * block, end - begin);
  }
}

}  // namespace shard::model
