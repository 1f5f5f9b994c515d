// How many bytes operator new has given out, in a program that links counting_new.cpp and allocates on one thread.
#pragma once

#include <cstddef>

namespace shard::test {

/// Most bytes allocated at one time since forget_peak().
[[nodiscard]] std::size_t peak_allocated();
/// Starts again from what is allocated now, which it returns.
std::size_t forget_peak();

}  // namespace shard::test
