// Element types of buffers: what an element is stored as, and how many bytes it takes.
#pragma once

#include <cstdint>

#include "traces/base/units.h"

namespace shard {

/// Stored in plans' text and in traces by name; enumerators append only.
enum class Dtype : std::uint8_t { f32 = 0, i32 = 1, f16 = 2, bf16 = 3, i64 = 4 };

[[nodiscard]] constexpr std::int64_t bytes_per_element(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
    case Dtype::i32: return 4;
    case Dtype::f16:
    case Dtype::bf16: return 2;
    case Dtype::i64: return 8;
  }
  return 0;
}
[[nodiscard]] constexpr Bytes bytes_of(Dtype dtype, Elems elems) {
  return Bytes{elems.count() * bytes_per_element(dtype)};
}
/// Floating point with 16 bits: computed with in fp32, stored rounded to nearest even.
[[nodiscard]] constexpr bool is_half(Dtype dtype) {
  return dtype == Dtype::f16 || dtype == Dtype::bf16;
}
[[nodiscard]] constexpr const char* to_string(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return "f32";
    case Dtype::i32: return "i32";
    case Dtype::f16: return "f16";
    case Dtype::bf16: return "bf16";
    case Dtype::i64: return "i64";
  }
  return "?";
}

}  // namespace shard
