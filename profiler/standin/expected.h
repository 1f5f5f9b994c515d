// What the host knows better than a guess: how many elements a kernel will find, and which memory no kernel writes to.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shard::standin {

/// The next number of 4 or 8 bytes that this thread reads of a device and nobody knows; below zero: nothing. Until then
/// what is asked by single bytes (whether numbers of repeats are not negative) holds. Of the calling thread alone, as
/// what follows.
void expect(std::int64_t count);

/// Writes the number that this thread was told to expect to `to`, 4 or 8 bytes, and forgets it, or that a byte's
/// question holds; false where there is none.
[[nodiscard]] bool take_expected(void* to, std::size_t bytes);

/// Whether somebody said that no kernel writes to the piece that has this address. Thread-safe.
[[nodiscard]] bool only_read(const void* address);

}  // namespace shard::standin
