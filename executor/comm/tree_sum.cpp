// Tree sums in registers for up to eight ranks; blocks that stay in the first-level cache for more.
#include "executor/comm/tree_sum.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "executor/numeric/half.h"
#include "executor/numeric/vectorise.h"

namespace shard {
namespace {

constexpr std::size_t kInRegisters = 8;
/// Bytes per block of a larger tree, so that the partial sums of every level stay in a 32 KiB cache.
constexpr std::int64_t kBlockBytes = 4096;

// What a node holds while it is in a register: a 16-bit float as the fp32 of the same value.
SHARD_INLINE std::uint64_t to_register(std::uint64_t x) {
  return x;
}
template <class T>
SHARD_INLINE float to_register(T x) {
  return to_f32(x);
}

/// A node of elements T that stays in a register, and one that is stored.
template <class T>
SHARD_INLINE std::uint64_t inner(std::uint64_t sum) {
  return sum;
}
template <class T>
SHARD_INLINE float inner(float sum) {
  return rounded<T>(sum);
}
template <class T>
SHARD_INLINE T stored(std::uint64_t sum) {
  return sum;
}
template <class T>
SHARD_INLINE T stored(float sum) {
  return from_f32<T>(sum);
}

/// The sum at the root of a tree over N >= 2 leaves, not yet rounded.
template <class T, std::size_t N>
SHARD_INLINE auto root(const T* const* sources, std::int64_t i);

template <class T, std::size_t N>
SHARD_INLINE auto child(const T* const* sources, std::int64_t i) {
  if constexpr (N == 1)
    return to_register(sources[0][i]);
  else
    return inner<T>(root<T, N>(sources, i));
}

template <class T, std::size_t N>
SHARD_INLINE auto root(const T* const* sources, std::int64_t i) {
  constexpr std::size_t kLeft = left_subtree(N);
  return child<T, kLeft>(sources, i) + child<T, N - kLeft>(sources + kLeft, i);
}

template <class T, std::size_t N>
SHARD_INLINE void loop(const std::byte* const* sources, std::int64_t first, std::int64_t count, T* out) {
  const T* at[N];
  for (std::size_t k = 0; k < N; ++k) at[k] = reinterpret_cast<const T*>(sources[k]) + first;
  SHARD_INDEPENDENT  // also where `out` is a source; the compiler cannot see that
      for (std::int64_t i = 0; i < count; ++i) out[i] = stored<T>(root<T, N>(at, i));
}

/// Elements [first, first + count) of `sources`, of which there are 2 to kInRegisters, into out[0, count).
template <class T>
SHARD_INLINE void dispatch(std::span<const std::byte* const> sources, std::int64_t first, std::int64_t count, T* out) {
  static_assert(kInRegisters == 8);
  switch (sources.size()) {
    case 2: return loop<T, 2>(sources.data(), first, count, out);
    case 3: return loop<T, 3>(sources.data(), first, count, out);
    case 4: return loop<T, 4>(sources.data(), first, count, out);
    case 5: return loop<T, 5>(sources.data(), first, count, out);
    case 6: return loop<T, 6>(sources.data(), first, count, out);
    case 7: return loop<T, 7>(sources.data(), first, count, out);
    default: return loop<T, 8>(sources.data(), first, count, out);
  }
}

// fp32 and integers without clones: memory is the limit already.
using Sources = std::span<const std::byte* const>;
void sum_f32(Sources sources, std::int64_t first, std::int64_t count, float* out) {
  dispatch(sources, first, count, out);
}
void sum_i64(Sources sources, std::int64_t first, std::int64_t count, std::uint64_t* out) {
  dispatch(sources, first, count, out);
}
SHARD_CLONES void sum_bf16(Sources sources, std::int64_t first, std::int64_t count, Bf16* out) {
  dispatch(sources, first, count, out);
}
SHARD_CLONES void sum_f16(Sources sources, std::int64_t first, std::int64_t count, F16* out) {
  dispatch(sources, first, count, out);
}

template <class T>
using Kernel = void (*)(Sources, std::int64_t first, std::int64_t count, T* out);

template <class T>
constexpr std::int64_t kBlock = kBlockBytes / static_cast<std::int64_t>(sizeof(T));

/// The same for any number of sources from 1; count <= kBlock when there are more than kInRegisters.
template <class T>
void sum_block(Kernel<T> kernel, Sources sources, std::int64_t first, std::int64_t count, T* out) {
  if (sources.size() == 1) {
    std::copy_n(reinterpret_cast<const T*>(sources[0]) + first, count, out);
    return;
  }
  if (sources.size() <= kInRegisters) return kernel(sources, first, count, out);
  const std::size_t left = left_subtree(sources.size());
  alignas(64) T parts[2][kBlock<T>];
  sum_block(kernel, sources.first(left), first, count, parts[0]);
  sum_block(kernel, sources.subspan(left), first, count, parts[1]);
  const std::byte* const both[2] = {reinterpret_cast<const std::byte*>(parts[0]),
                                    reinterpret_cast<const std::byte*>(parts[1])};
  kernel(Sources(both, 2), 0, count, out);
}

template <class T>
void sum(Kernel<T> kernel, Sources sources, std::byte* to, std::int64_t count) {
  T* const out = reinterpret_cast<T*>(to);
  if (sources.size() <= kInRegisters) return kernel(sources, 0, count, out);
  for (std::int64_t first = 0; first < count; first += kBlock<T>)
    sum_block(kernel, sources, first, std::min(kBlock<T>, count - first), out + first);
}

}  // namespace

void tree_sum(Dtype dtype, std::span<const std::byte* const> sources, std::byte* out, std::int64_t count) {
  if (sources.size() == 1) {
    if (sources[0] != out)
      std::memcpy(out, sources[0], static_cast<std::size_t>(bytes_of(dtype, Elems{count}).count()));
    return;
  }
  switch (dtype) {
    case Dtype::f32: return sum(&sum_f32, sources, out, count);
    case Dtype::bf16: return sum(&sum_bf16, sources, out, count);
    case Dtype::f16: return sum(&sum_f16, sources, out, count);
    case Dtype::i64: return sum(&sum_i64, sources, out, count);
    case Dtype::i32: break;
  }
  assert(false && "not a summable type");
}

}  // namespace shard
