// Neighbouring elements that a thread takes together, moved 128 bits at a time where they are aligned.
#pragma once

#include <cstddef>
#include <cstdint>

#include "executor/cuda/kernels/device.h"
#include "executor/numeric/half.h"

namespace shard::cuda {

inline constexpr int kPack = 8;  ///< elements: 128 bits in 16-bit types, twice that in fp32

template <class T>
struct alignas(16) Pack {
  T e[kPack];
};

/// Whether packs may begin at these addresses. Null is as good as any.
template <class... T>
[[nodiscard]] bool aligned_packs(const T*... data) {
  return ((reinterpret_cast<std::uintptr_t>(data) % alignof(Pack<float>) == 0) && ...);
}

/// Of rows of `columns`, each beginning with a pack.
template <class... T>
[[nodiscard]] bool aligned_rows(std::int64_t columns, const T*... data) {
  return columns % kPack == 0 && aligned_packs(data...);
}

[[nodiscard]] constexpr std::int64_t packs_of(std::int64_t n) {
  return (n + kPack - 1) / kPack;
}

/// Threads of a block that takes a row: whole warps, a pack to a thread until there are kThreads of them.
[[nodiscard]] constexpr std::uint32_t row_threads(std::int64_t columns) {
  const std::int64_t warps = (packs_of(columns) + kWarp - 1) / kWarp;
  const std::int64_t most = kThreads / kWarp;
  return static_cast<std::uint32_t>((warps < 1 ? 1 : warps < most ? warps : most) * kWarp);
}

// Below, x or y is where the pack begins, of whose elements the first `count` are there (any number above kPack: all of
// them). `aligned`: aligned_packs() or aligned_rows(). What is not there is loaded as 0 and not stored.

template <class T>
SHARD_DEVICE void load_pack(const T* x, std::int64_t count, bool aligned, float (&values)[kPack]) {
  if (aligned && count >= kPack) {
    const Pack<T> pack = *reinterpret_cast<const Pack<T>*>(x);
    for (int k = 0; k < kPack; ++k) values[k] = to_f32(pack.e[k]);
  } else {
    for (int k = 0; k < kPack; ++k) values[k] = k < count ? to_f32(x[k]) : 0.0F;
  }
}

template <class T>
SHARD_DEVICE void store_pack(const float (&values)[kPack], std::int64_t count, bool aligned, T* y) {
  if (aligned && count >= kPack) {
    Pack<T> pack;
    for (int k = 0; k < kPack; ++k) pack.e[k] = from_f32<T>(values[k]);
    *reinterpret_cast<Pack<T>*>(y) = pack;
  } else {
    for (int k = 0; k < kPack; ++k)
      if (k < count) y[k] = from_f32<T>(values[k]);
  }
}

/// The bits, whatever they stand for.
template <class T>
SHARD_DEVICE void copy_pack(const T* x, std::int64_t count, bool aligned, T* y) {
  if (aligned && count >= kPack) {
    *reinterpret_cast<Pack<T>*>(y) = *reinterpret_cast<const Pack<T>*>(x);
  } else {
    for (int k = 0; k < kPack; ++k)
      if (k < count) y[k] = x[k];
  }
}

template <class T>
SHARD_DEVICE void zero_pack(std::int64_t count, bool aligned, T* y) {
  if (aligned && count >= kPack) {
    *reinterpret_cast<Pack<T>*>(y) = Pack<T>{};
  } else {
    for (int k = 0; k < kPack; ++k)
      if (k < count) y[k] = T{};
  }
}

}  // namespace shard::cuda
