// Bytes of workspace that an operator needs on a GPU, as pure functions of its shape: plans size buffers with them.
#pragma once

#include <cstdint>

#include "sim/model/direction.h"
#include "sim/model/graph.h"
#include "traces/base/units.h"

namespace shard::plan {

/// What the matrix library may use for one product. Algorithms that need more are left out, so that an arena does not
/// depend on the card that a plan runs on.
inline constexpr Bytes kProductWorkspace{4 * 1024 * 1024};

/// Attention backward keeps one fp32 number per row of scores: the sum over keys of probability x its gradient.
[[nodiscard]] constexpr Bytes attention_delta_bytes(std::int64_t batch, std::int64_t heads, std::int64_t sequence) {
  return Bytes{4 * batch * heads * sequence};
}

/// Bytes of the workspace operand of an operator's op in one direction; 0: it has none. Attention backward, and
/// linear where it has a product.
[[nodiscard]] constexpr Bytes cuda_workspace(model::OperatorKind kind, model::Direction direction,
                                             const model::Attributes& a) {
  switch (model::row(kind).workspace) {
    case model::WorkspaceKind::none:
    case model::WorkspaceKind::table_gradient: return Bytes{0};
    case model::WorkspaceKind::attention:
      return direction == model::Direction::forward ? Bytes{0} : attention_delta_bytes(a.batch, a.heads, a.sequence);
    case model::WorkspaceKind::product: break;
  }
  const bool bias_alone = direction == model::Direction::backward_weight && a.freezes(0);
  return bias_alone ? Bytes{0} : kProductWorkspace;
}

}  // namespace shard::plan
