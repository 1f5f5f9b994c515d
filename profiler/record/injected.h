// The library that is put into a program to profile, which this binary carries with it.
#pragma once

#include <cstddef>
#include <span>

namespace shard::profiler {

/// Empty where this program was built without CUPTI.
[[nodiscard]] std::span<const std::byte> injected_library();

}  // namespace shard::profiler
