// Floating-point elements of a safetensors file, widened to fp32 without loss.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "executor/numeric/half.h"
#include "traces/base/result.h"

namespace shard {

/// Elements of a tensor of that dtype (F32, F16 or BF16) from number `first` on. read(byte, into) reads the tensor's
/// bytes from byte `byte` on; its errors are this function's. Holds 32 KiB on the stack.
template <class Read>
[[nodiscard]] Result<void> read_floats(std::string_view dtype, std::int64_t first, std::span<float> values,
                                       const Read& read) {
  if (dtype == "F32") return read(first * static_cast<std::int64_t>(sizeof(float)), std::as_writable_bytes(values));
  constexpr std::size_t kHalf = sizeof(std::uint16_t);
  alignas(kHalf) std::array<std::byte, 32768> stored;
  const auto widen = [&]<class Half>(Half, std::span<float> into) {
    const auto* const halves = reinterpret_cast<const Half*>(stored.data());
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = to_f32(halves[i]);
  };
  while (!values.empty()) {
    const std::span<float> now = values.first(std::min(values.size(), stored.size() / kHalf));
    if (Result<void> r = read(first * static_cast<std::int64_t>(kHalf), std::span(stored).first(now.size() * kHalf));
        !r)
      return r;
    if (dtype == "BF16")
      widen(Bf16{}, now);
    else
      widen(F16{}, now);
    first += static_cast<std::int64_t>(now.size());
    values = values.subspan(now.size());
  }
  return {};
}

}  // namespace shard
