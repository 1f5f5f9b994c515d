// What the stand-in's functions have in common: success, handles, and how they are exported.
#pragma once

#include <cstdint>

/// Found by programs and libraries under its own name; everything else stays inside.
#define STANDIN extern "C" __attribute__((visibility("default")))

namespace shard::standin {

inline constexpr int kSuccess = 0;

/// A handle that nobody had before, and that points nowhere.
[[nodiscard]] inline void* fresh_handle() {
  static std::uintptr_t next = 4096;
  return reinterpret_cast<void*>(__atomic_add_fetch(&next, 16, __ATOMIC_RELAXED));
}

}  // namespace shard::standin
