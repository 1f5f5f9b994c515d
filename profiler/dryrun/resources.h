// The files that a dry run puts beside the program, which this binary carries with it.
#pragma once

#include <cstddef>
#include <span>

namespace shard::dryrun {

/// The shared library of profiler/standin.
[[nodiscard]] std::span<const std::byte> standin_library();
/// hook.py.
[[nodiscard]] std::span<const std::byte> hook_program();

}  // namespace shard::dryrun
