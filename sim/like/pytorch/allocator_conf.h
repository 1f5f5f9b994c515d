// What PYTORCH_CUDA_ALLOC_CONF says to the caching allocator.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/like/pytorch/caching_allocator.h"
#include "traces/base/result.h"

namespace shard {

/// Settings, and which of them change no figure, with the reason.
struct AllocatorConf {
  CachingAllocatorOptions options;
  std::vector<std::string> without_effect;
  std::string without_limit{};  ///< a reason, too, unless the process is limited to a share of the device; empty: none
};

/// `text` as the environment variable has it: "max_split_size_mb:128,expandable_segments:True". Begins from the
/// defaults. Known are max_split_size_mb, max_non_split_rounding_mb, roundup_power2_divisions (one number, or
/// [256:1,512:2,>:8] by MiB), garbage_collection_threshold, expandable_segments, backend:native, and what concerns
/// pinned memory and locks, which changes nothing here. Errc::usage for a key or value that PyTorch refuses, and
/// Errc::contradiction for backend:cudaMallocAsync, which is another allocator.
/// Source: c10/core/AllocatorConfig.cpp of PyTorch 2.11.
[[nodiscard]] Result<AllocatorConf> read_allocator_conf(std::string_view text);

}  // namespace shard
