// The conversions of half.h in loops that the compiler vectorises for the machine at hand.
#include "executor/numeric/half.h"

#include "executor/numeric/vectorise.h"

namespace shard {
namespace {

SHARD_CLONES void widen_bf16(const Bf16* __restrict in, float* __restrict out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = to_f32(in[i]);
}
SHARD_CLONES void widen_f16(const F16* __restrict in, float* __restrict out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = to_f32(in[i]);
}
SHARD_CLONES void narrow_bf16(const float* __restrict in, Bf16* __restrict out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = to_bf16(in[i]);
}
SHARD_CLONES void narrow_f16(const float* __restrict in, F16* __restrict out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = to_f16(in[i]);
}

}  // namespace

void widen(const Bf16* in, float* out, std::int64_t n) {
  widen_bf16(in, out, n);
}
void widen(const F16* in, float* out, std::int64_t n) {
  widen_f16(in, out, n);
}
void narrow(const float* in, Bf16* out, std::int64_t n) {
  narrow_bf16(in, out, n);
}
void narrow(const float* in, F16* out, std::int64_t n) {
  narrow_f16(in, out, n);
}

}  // namespace shard
