// One clone for each instruction set.
#include "executor/cpu/kernels/finite.h"

#include "executor/numeric/finite.h"
#include "executor/numeric/vectorise.h"

namespace shard::cpu {

SHARD_CLONES bool finite_range(std::int64_t n, const float* x) {
  return are_finite(x, n);
}

SHARD_CLONES bool finite_range(std::int64_t n, const Bf16* x) {
  return are_finite(x, n);
}

SHARD_CLONES bool finite_range(std::int64_t n, const F16* x) {
  return are_finite(x, n);
}

}  // namespace shard::cpu
