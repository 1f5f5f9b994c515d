// The conversions of half.h in loops that the compiler vectorises for the machine at hand.
#include "executor/numeric/half.h"

#include <cassert>
#include <cstring>

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

void widen(Dtype from, const std::byte* in, float* out, std::int64_t n) {
  if (n == 0) return;  // memcpy wants memory even then
  switch (from) {
    case Dtype::f32: std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(float)); return;
    case Dtype::bf16: widen(reinterpret_cast<const Bf16*>(in), out, n); return;
    case Dtype::f16: widen(reinterpret_cast<const F16*>(in), out, n); return;
    case Dtype::i32:
    case Dtype::i64: break;
  }
  assert(false && "integers are not widened");
}

void narrow(Dtype to, const float* in, std::byte* out, std::int64_t n) {
  if (n == 0) return;
  switch (to) {
    case Dtype::f32: std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(float)); return;
    case Dtype::bf16: narrow(in, reinterpret_cast<Bf16*>(out), n); return;
    case Dtype::f16: narrow(in, reinterpret_cast<F16*>(out), n); return;
    case Dtype::i32:
    case Dtype::i64: break;
  }
  assert(false && "fp32 is not narrowed to integers");
}

}  // namespace shard
