// Options that set up PyTorch's caching allocator as PYTORCH_CUDA_ALLOC_CONF does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/cli/command_line.h"
#include "sim/like/pytorch/caching_allocator.h"
#include "traces/base/result.h"

namespace shard::commands {

struct AllocatorFlags {
  std::string conf{};
  std::optional<double> fraction{};
};

/// Declares --allocator-conf, and with `has_device` --memory-fraction, which is of the device's memory.
void add_allocator_options(cli::Group& group, AllocatorFlags& flags, bool has_device);

/// `begin` as the options set it up for a device of `capacity` (none: not known). `notes` receives which settings
/// change no figure. Errors as read_allocator_conf(); Errc::contradiction for a share of a memory that is not known.
[[nodiscard]] Result<CachingAllocatorOptions> allocator_of(const AllocatorFlags& flags, std::optional<Bytes> capacity,
                                                           std::vector<std::string>& notes);

}  // namespace shard::commands
