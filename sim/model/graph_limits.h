// Whether a batch can be built for a model at all, checked before build_graph, which only asserts.
#pragma once

#include <cstdint>

#include "sim/model/graph.h"
#include "traces/base/result.h"

namespace shard::model {

/// Largest element count of one value: 2^48, so that all values of any graph together stay far inside 63 bits.
inline constexpr std::int64_t kMaxValueElements = std::int64_t{1} << 48;

/// Errc::contradiction if batch or sequence is below 1, the sequence exceeds Model::max_sequence (mlp: 1), or some
/// value would exceed kMaxValueElements. `where` is the option at fault, "--sequence" or "--micro-batch".
[[nodiscard]] Result<void> check_batch(const Model& model, std::int64_t batch, std::int64_t sequence);

/// Whether sequences of that length are trained: Model::not_trained, or contradiction (78) where attention would have
/// to be cut off at the model's window.
[[nodiscard]] Result<void> check_trained(const Model& model, std::int64_t sequence);

}  // namespace shard::model
