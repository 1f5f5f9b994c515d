// Where tensors begin in the memory of a GPU, as far as algorithms of matrix products are chosen by it.
#pragma once

#include <cstdint>

#include "sim/model/parameters.h"
#include "traces/base/dtype.h"
#include "traces/base/units.h"

namespace shard::plan {

/// What vector loads and the copy engines of tiles need: no algorithm asks for more.
inline constexpr Bytes kVectorBytes{16};

/// Every operand of a product begins at a multiple of this, whatever the strategy: the largest power of two that
/// divides the size of each parameter, 16 bytes at most. Parameters lie back to back in their unit, which begins where
/// a buffer does, at a multiple of 64. So it is the model's alone, and what is chosen by it is the same under every
/// strategy.
[[nodiscard]] inline Bytes product_alignment(const ParameterList& parameters, Dtype storage) {
  std::int64_t bits = kVectorBytes.count();
  for (const Parameter& each : parameters) bits |= each.elems.count() * bytes_per_element(storage);
  return Bytes{bits & -bits};
}

}  // namespace shard::plan
