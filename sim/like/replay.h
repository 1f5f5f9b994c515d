// Replays a program through the model of a caching allocator: what memory it takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/verdict.h"
#include "sim/like/predicted_snapshot.h"
#include "sim/like/program/program.h"
#include "sim/like/pytorch/caching_allocator.h"
#include "traces/base/result.h"

namespace shard::like {

/// A live block.
struct Block {
  std::string name;
  Category category{};
  Bytes requested;
  Bytes taken;  ///< the block's real size, which the framework's statistics count
};

/// What the framework prints at a mark. Maxima are those since the program began, or since the last mark where that one
/// says so.
struct Moment {
  std::string name;
  Bytes max_allocated;
  Bytes max_reserved;
  Bytes allocated;
  Bytes reserved{0};
  std::string op;             ///< that first reached max_allocated
  std::vector<Block> blocks;  ///< live then, in the order taken; `taken` sums to max_allocated
};

/// Maxima of a phase.
struct PhasePeaks {
  Phase phase{};
  Bytes allocated{0}, active{0}, reserved{0};
};

/// Calls and bytes (full buffer per call) of one kind of collective in one phase.
struct CollectiveSum {
  Phase phase{};
  Collective kind{};
  std::int64_t count = 0;
  Bytes bytes{};
};

/// What memory a program takes on a device, whoever wrote the program.
struct MemoryAnswer {
  std::int32_t rank = 0;          ///< whose device it is
  std::vector<Moment> moments{};  ///< in the order of the marks; of a program without any, its end
  std::vector<PhasePeaks> phases{};
  /// Peaks are the program's, over all phases; current values those at its end.
  AllocatorStatistics statistics{};
  /// When `reserved` was first at its peak: what of it no block took, and the largest piece of that.
  Bytes inactive{0}, largest_gap{0};
  Bytes host_peak{0}, pinned_peak{0};        ///< of the host's memory, which no caching allocator gives
  Bytes host_together{0};                    ///< the most of both at once
  Bytes optimizer_state{0};                  ///< as requested
  std::vector<CollectiveSum> collectives{};  ///< phase by phase
  std::optional<Bytes> device_capacity{};    ///< none: no limit
  cluster::ByteRange outside{};              ///< of the allocator: context and libraries
  cluster::HostRoom host{};                  ///< of the host that its ranks share
  double uncertainty = 0;                    ///< how far its rules' peaks were off where they were compared, as a share
  bool fits = true;  ///< the device, with the cache emptied when a segment is refused, as the framework does
  /// Of every event, where it was asked for; without a limit where it does not fit.
  std::shared_ptr<const PredictedSnapshot> snapshot{};

  [[nodiscard]] Bytes peak_allocated() const { return statistics.allocated.peak; }
  [[nodiscard]] Bytes peak_active() const { return statistics.active.peak; }
  [[nodiscard]] Bytes peak_reserved() const { return statistics.reserved.peak; }

  [[nodiscard]] cluster::Room room() const {
    return {.capacity = device_capacity, .outside = outside, .uncertainty = uncertainty};
  }
  /// The device that it was predicted for, of which at_most() was left to the allocator.
  void put_into(const cluster::Room& device) {
    device_capacity = device.capacity;
    outside = device.outside;
    uncertainty = device.uncertainty;
  }
  /// Of a host: every rank as this one, which has most.
  [[nodiscard]] Bytes host_of_all() const { return host_together * host.ranks; }
  [[nodiscard]] Bytes pinned_of_all() const { return pinned_peak * host.ranks; }
  [[nodiscard]] cluster::Verdict verdict_of_device() const {
    return fits ? cluster::verdict_of(peak_reserved(), room()) : cluster::Verdict::does_not_fit;
  }
  /// Of both memories.
  [[nodiscard]] cluster::Verdict verdict() const {
    return host.holds(host_of_all()) ? verdict_of_device() : cluster::Verdict::does_not_fit;
  }
  /// The memory that is too small; of both, the device's. Nothing when it fits, or is tight.
  [[nodiscard]] std::optional<Memory> short_of() const {
    if (verdict_of_device() == cluster::Verdict::does_not_fit) return Memory::device;
    if (host.holds(host_of_all())) return std::nullopt;
    return pinned_peak > host_peak ? Memory::pinned : Memory::host;
  }
};

struct ReplayOptions {
  CachingAllocatorOptions allocator{};
  std::optional<Bytes> device_capacity{};  ///< none: no limit
  bool snapshot = false;                   ///< every event is wanted
};

/// Where `device_capacity`, or the share of it that the allocator is allowed, does not suffice, figures are those
/// without limit and `fits` is false. Fails with Errc::does_not_fit only beyond 32 TiB, more than there are addresses.
[[nodiscard]] Result<MemoryAnswer> replay(const Program& program, const ReplayOptions& options);

}  // namespace shard::like
