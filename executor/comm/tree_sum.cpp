// Tree sums in registers for up to eight ranks; blocks that stay in the first-level cache for more.
#include "executor/comm/tree_sum.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

// Iterations touch index i of every array only, also where `out` is a source; the compiler cannot see that.
#if defined(__clang__)
#define SHARD_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define SHARD_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

namespace shard {
namespace {

constexpr std::size_t kInRegisters = 8;
/// Floats per block of a larger tree: 4 KiB, so that the partial sums of every level stay in a 32 KiB cache.
constexpr std::int64_t kBlock = 1024;

template <std::size_t N>
inline float node(const float* const* sources, std::int64_t i) {
  if constexpr (N == 1) {
    return sources[0][i];
  } else {
    constexpr std::size_t kLeft = left_subtree(N);
    return node<kLeft>(sources, i) + node<N - kLeft>(sources + kLeft, i);
  }
}

template <std::size_t N>
void sum_in_registers(const float* const* sources, std::int64_t first, std::int64_t count, float* out) {
  const float* at[N];
  for (std::size_t k = 0; k < N; ++k) at[k] = sources[k] + first;
  SHARD_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < count; ++i) out[i] = node<N>(at, i);
}

using Kernel = void (*)(const float* const*, std::int64_t, std::int64_t, float*);
template <std::size_t... N>
constexpr std::array<Kernel, sizeof...(N)> kernels(std::index_sequence<N...>) {
  return {&sum_in_registers<N + 1>...};
}

/// sources[..][first, first + count) into out[0, count); count <= kBlock when there are more than kInRegisters sources.
void sum_block(std::span<const float* const> sources, std::int64_t first, std::int64_t count, float* out) {
  static constexpr auto kKernels = kernels(std::make_index_sequence<kInRegisters>{});
  if (sources.size() <= kInRegisters) {
    kKernels[sources.size() - 1](sources.data(), first, count, out);
    return;
  }
  const std::size_t left = left_subtree(sources.size());
  alignas(64) float parts[2][kBlock];
  sum_block(sources.first(left), first, count, parts[0]);
  sum_block(sources.subspan(left), first, count, parts[1]);
  const float* const both[2] = {parts[0], parts[1]};
  sum_in_registers<2>(both, 0, count, out);
}

}  // namespace

void tree_sum(std::span<const float* const> sources, float* out, std::int64_t count) {
  if (sources.size() == 1) {
    if (sources[0] != out) std::memcpy(out, sources[0], static_cast<std::size_t>(count) * sizeof(float));
    return;
  }
  if (sources.size() <= kInRegisters) return sum_block(sources, 0, count, out);
  for (std::int64_t first = 0; first < count; first += kBlock)
    sum_block(sources, first, std::min(kBlock, count - first), out + first);
}

}  // namespace shard
