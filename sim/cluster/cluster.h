// The hardware of a run as the cost model sees it: devices, memories and links, every figure in SI units.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/cluster/kernel_laws.h"
#include "sim/cluster/measured.h"
#include "traces/base/division.h"
#include "traces/base/rank_group.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::cluster {

enum class DeviceKind : std::uint8_t { cpu, cuda };

[[nodiscard]] constexpr const char* to_string(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cpu: return "cpu";
    case DeviceKind::cuda: return "cuda";
  }
  return "?";
}

/// What a collective meets between two neighbours of the ring (alpha-beta model, sim/cost/collective.h).
struct Link {
  Seconds base;                  ///< once per call
  Seconds latency;               ///< per step of the ring
  BytesPerSecond bus_bandwidth;  ///< between hosts: of all adapters of one host together
};

/// The path between host memory and one device, one direction.
struct HostLink {
  Seconds latency;
  BytesPerSecond bandwidth;
};

/// What CUDA's libraries choose kernels, workspaces and reductions by.
struct Card {
  std::int32_t compute_capability = 0;  ///< 10 * major + minor: 90 for 9.0
  std::int32_t multiprocessors = 0;
  std::int32_t threads_per_multiprocessor = 0;
};

/// Equal hosts of equal devices.
struct Cluster {
  std::string name;
  std::string source;  ///< where the figures come from
  DeviceKind device = DeviceKind::cuda;
  std::int32_t devices_per_host = 1;
  std::optional<std::int32_t> hosts;  ///< none: as many as the run needs
  bool ranks_share_device = false;    ///< more ranks than devices are allowed and divide them
  /// Collectives and copies go on while a device computes; false where the thread that computes does it all.
  bool streams_overlap = true;
  std::int32_t cores = 0;    ///< of one cpu device; 0 for cuda
  std::optional<Card> card;  ///< none: not known

  std::optional<Bytes> device_memory;  ///< what a process can allocate; none: no limit
  Bytes device_overhead;               ///< of it taken besides, by context and libraries; 0: not known
  BytesPerSecond memory_bandwidth;     ///< of one device's memory, by its data sheet
  double memory_efficiency = 1;        ///< reached share of it, 0..1
  FlopsPerSecond peak_fp32;            ///< of one device, by its data sheet
  /// Of products and attention in other precisions, dense; none: no faster than fp32.
  std::optional<FlopsPerSecond> peak_tf32;
  std::optional<FlopsPerSecond> peak_bf16;
  std::optional<FlopsPerSecond> peak_fp16;
  double matrix_efficiency = 1;     ///< reached by matrix products, 0..1
  double attention_efficiency = 1;  ///< reached by attention, 0..1
  Seconds launch;                   ///< between two ops of a stream

  std::optional<Bytes> host_memory;                     ///< of one host
  std::optional<BytesPerSecond> host_memory_bandwidth;  ///< of one host of cuda devices; none: cost::kHostMemory
  std::optional<HostLink> host_link;                    ///< none: device memory is host memory
  Link intra_host;
  std::optional<Link> inter_host;  ///< none: one host only
  /// None: all is priced by the figures above; with it what it has no law for.
  std::optional<Measured> measured;
  std::optional<KernelLaws> kernel_laws;  ///< of GPUs: what other frameworks' steps are priced by; none: not known
};

/// How many ranks meet where. Ranks fill hosts in order.
struct Layout {
  std::int32_t ranks = 1;
  std::int32_t hosts = 1;
  std::int32_t ranks_per_device = 1;
  /// The last host may have fewer.
  [[nodiscard]] std::int32_t ranks_per_host() const { return divide_up(ranks, hosts); }
};

/// Valid where check_ranks() is; more ranks than devices share them.
[[nodiscard]] Layout layout(const Cluster& cluster, std::int32_t world_size);

/// How the members of a group meet, where all ranks are laid out as `all`.
[[nodiscard]] Layout layout_of(const RankGroup& group, const Layout& all);

/// Errc::contradiction when the cluster is too small for the ranks or has no link between the hosts they need.
[[nodiscard]] Result<void> check_ranks(const Cluster& cluster, std::int32_t world_size);

}  // namespace shard::cluster
