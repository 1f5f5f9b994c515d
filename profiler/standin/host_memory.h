// Pinned host memory: ordinary memory that is known to be pinned, and counted.
#pragma once

#include <cstddef>

namespace shard::standin {

/// Whole pages; nullptr where there are none. Synchronised, as all here.
[[nodiscard]] void* allocate_pinned(std::size_t bytes);
/// False for what was not allocated so.
bool release_pinned(void* address);

/// Memory of the program's own (cudaHostRegister), and no more.
void pin(void* address, std::size_t bytes);
bool unpin(void* address);

[[nodiscard]] bool is_pinned(const void* address);

}  // namespace shard::standin
