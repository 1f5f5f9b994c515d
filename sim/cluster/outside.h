// What a process takes of its GPU beside the tensors that an allocator or an arena holds: CUDA's context and NCCL.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "sim/cluster/cluster.h"
#include "traces/base/units.h"

namespace shard::cluster {

/// Between these two, both possible.
struct ByteRange {
  Bytes low{};
  Bytes high{};
  friend constexpr ByteRange operator+(ByteRange a, ByteRange b) { return {a.low + b.low, a.high + b.high}; }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

/// When CUDA loads kernels onto the device: each at its first launch (since 11.7, PyTorch 2), or all at the start.
enum class KernelLoading : std::uint8_t { lazy, all };

/// One figure of a library, of cards from one compute capability to another.
struct OutsideRow {
  std::string_view what;  ///< "context", "nccl"
  KernelLoading loading;  ///< of a context
  std::int32_t from = 0;  ///< compute capability, 10 * major + minor
  std::int32_t to = 0;    ///< the last that it holds for
  ByteRange bytes;
  std::string_view source;
};

[[nodiscard]] std::span<const OutsideRow> outside_rows();

/// Of one rank: its context, and with several ranks the buffers of one communicator. Nothing on processors; no context
/// where the cluster's memory was measured without it (device_overhead). A card that is not known has the lowest and
/// highest of all.
[[nodiscard]] ByteRange outside_allocator(const Cluster& cluster, std::int32_t ranks,
                                          KernelLoading loading = KernelLoading::lazy);

}  // namespace shard::cluster
