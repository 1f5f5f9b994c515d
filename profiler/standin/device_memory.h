// Device memory that is address space alone: it costs no host memory until somebody writes to it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "profiler/standin/promises.h"

namespace shard::standin {

/// Synchronised. Addresses matter since PyTorch's allocator chooses free blocks of one size by them, and with them what
/// is split off: traces/base/segment_placement.h has both ways that are known, card().upwards says which.
///
/// nullptr where the card of that number has no such room left, or the process no such address space.
[[nodiscard]] void* allocate(std::size_t bytes, int device = 0);
/// What was written to it is forgotten. False for what was not allocated.
bool release(void* address);

[[nodiscard]] bool is_device(const void* address);
/// Of device memory that is given out, as far as that is known.
[[nodiscard]] bool is_given(const void* address);
/// The card that an address was given out for; 0 for others.
[[nodiscard]] int device_of(const void* address);
[[nodiscard]] std::size_t used_bytes(int device = 0);
/// Begin and length of what was allocated around an address; nullptr where nothing was.
[[nodiscard]] std::pair<void*, std::size_t> block_around(const void* address);

/// Address space without memory, and memory without an address (the driver's virtual memory management).
/// `device`: the card whose memory another process has there.
[[nodiscard]] void* reserve(std::size_t bytes, int device = 0);
/// A card's room comes to stand at an address that was reserved, and goes; what was written there is forgotten.
void place(void* address, std::size_t bytes, int device);
void unplace(void* address, std::size_t bytes);
/// What reserve() gave for so many bytes, which it may give again.
void unreserve(void* address, std::size_t bytes);
/// False where the card has no such room left.
[[nodiscard]] bool take(std::size_t bytes, int device);
void give_back(std::size_t bytes, int device);

/// What was written is forgotten.
void forget(void* address, std::size_t bytes);

/// As cudaMemcpy and cudaMemset do, as far as anybody could look at it (values.h). What has no value reads as zeros.
void copy(void* to, const void* from, std::size_t bytes);
/// The same of up to Values::kLongestComputed bytes.
void copy_computed(void* to, const void* from, std::size_t bytes);
void fill(void* to, int value, std::size_t bytes);

/// A piece has a source's values, until something else is written to it. They are fetched when the host looks at them,
/// without any lock held; a copy within device memory copies the promise.
void promise(void* to, std::size_t bytes, std::shared_ptr<Source> source);
[[nodiscard]] bool is_promised(const void* address, std::size_t bytes);

/// What a piece of host or device memory holds, up to Values::kLongest bytes; what was promised is fetched. None where
/// that is not known. `known_begin`: it is enough that the begin is known, the rest reads as zeros.
[[nodiscard]] std::optional<Bytes> values_of(const void* from, std::size_t bytes, bool known_begin = false);
/// The same without fetching anything: of what is promised, what it would be if all ranks were equal.
[[nodiscard]] std::optional<Bytes> values_if_equal(const void* from, std::size_t bytes);
/// Something that nobody knows is written to a piece.
void forget_values(void* to, std::size_t bytes);
[[nodiscard]] bool has_values(const void* from, std::size_t bytes);
/// Whether every byte of a piece has a value or will have one, that is promised.
[[nodiscard]] bool will_have_values(const void* from, std::size_t bytes);

/// A kernel writes to what begins there, nobody knows what: to so many bytes at least. What was copied in one piece
/// with the first of them has no values any more either.
void written_by_kernel(const void* address, std::size_t bytes);

}  // namespace shard::standin
