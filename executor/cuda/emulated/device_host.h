// What kernels are written with, as the C++ compiler has it: threads of a block take turns; included by device.h alone.
#pragma once

#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "executor/cuda/api/api.h"
#include "executor/cuda/emulated/block.h"
#include "executor/cuda/emulated/launch_call.h"

#define SHARD_KERNEL static void
#define SHARD_DEVICE [[gnu::always_inline]] inline

namespace shard::cuda {

struct Launch;

/// The block's shared memory, Launch::shared_bytes of it, aligned to 16; holds nothing yet.
template <class T>
SHARD_DEVICE T* shared() {
  return reinterpret_cast<T*>(emulated::shared_memory());
}

// Names and meaning are CUDA's. Where a call stands is told by its default arguments.
// NOLINTBEGIN(bugprone-reserved-identifier)
inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  emulated::wait_for_block({file, line});
}
inline void __syncwarp(std::uint32_t mask = 0xFFFFFFFFU, const char* file = __builtin_FILE(),
                       int line = __builtin_LINE()) {
  emulated::exchange(emulated::Exchange::nothing, mask, 0, 0, 32, {file, line});
}

namespace emulated {
template <class T>
T exchange_value(Exchange how, std::uint32_t mask, T value, std::uint32_t number, int width, const Where& where) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  word = exchange(how, mask, word, number, static_cast<std::uint32_t>(width), where);
  std::memcpy(&value, &word, sizeof value);
  return value;
}
}  // namespace emulated

template <class T>
T __shfl_xor_sync(std::uint32_t mask, T value, int lane_mask, int width = 32, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  return emulated::exchange_value(emulated::Exchange::across, mask, value, static_cast<std::uint32_t>(lane_mask), width,
                                  {file, line});
}
template <class T>
T __shfl_down_sync(std::uint32_t mask, T value, unsigned delta, int width = 32, const char* file = __builtin_FILE(),
                   int line = __builtin_LINE()) {
  return emulated::exchange_value(emulated::Exchange::down, mask, value, delta, width, {file, line});
}
template <class T>
T __shfl_sync(std::uint32_t mask, T value, int lane, int width = 32, const char* file = __builtin_FILE(),
              int line = __builtin_LINE()) {
  return emulated::exchange_value(emulated::Exchange::from, mask, value, static_cast<std::uint32_t>(lane), width,
                                  {file, line});
}
// NOLINTEND(bugprone-reserved-identifier)

// CUDA's overloads, which callers pick by casting the address.
inline int atomicAdd(int* address, int value) {
  return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}
inline unsigned atomicAdd(unsigned* address, unsigned value) {
  return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}
inline unsigned long long atomicAdd(unsigned long long* address, unsigned long long value) {
  return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}

namespace emulated {
template <class T>
T atomic_min(T* address, T value) {
  T old = __atomic_load_n(address, __ATOMIC_RELAXED);
  while (value < old && !__atomic_compare_exchange_n(address, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}
}  // namespace emulated
inline int atomicMin(int* address, int value) {
  return emulated::atomic_min(address, value);
}
inline unsigned atomicMin(unsigned* address, unsigned value) {
  return emulated::atomic_min(address, value);
}
inline long long atomicMin(long long* address, long long value) {
  return emulated::atomic_min(address, value);
}
inline unsigned long long atomicMin(unsigned long long* address, unsigned long long value) {
  return emulated::atomic_min(address, value);
}

/// Enqueues kernel(args...). A launch that fails is told by Api::end_op. Arguments that are pointers, and
/// MemberPointers, are of the device or pinned; a pointer inside any other argument stays the device's, and faults
/// where it is followed.
template <class... P, class... A>
void launch(emulated::LaunchFrom from, const Launch& sizes, void (*kernel)(P...), A... args) {
  emulated::LaunchCall call(from, sizes);
  // Braces: the arguments are looked at in their order.
  std::tuple<P...> values{call.argument(static_cast<P>(args))...};
  call.enqueue([kernel, values] { std::apply(kernel, values); });
}

}  // namespace shard::cuda
