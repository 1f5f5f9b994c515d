// A limit of address space (ulimit -v) is met with words: libraries that run into it crash.
#pragma once

#include <optional>
#include <string>

#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard {

/// The limit of this process, which its children inherit.
[[nodiscard]] std::optional<Bytes> address_space_limit();

/// What computing takes beside arenas: libraries, their generated code and buffers, and per thread more than one a
/// stack and the C library's heap.
[[nodiscard]] Bytes address_space_of_computing(int threads);
/// What a rank under MPI takes beside arenas, all in all.
[[nodiscard]] Bytes address_space_of_rank(int threads);

/// Errc::unavailable when the limit does not leave `needed` for a process that has `used`.
[[nodiscard]] Result<void> check_address_space(Bytes used, Bytes needed, const std::string& what);

/// Of this process, now.
[[nodiscard]] Bytes address_space_used();

}  // namespace shard
