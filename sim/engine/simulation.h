// What a simulation tells: memory, communication and time of every class of ranks, phase by phase.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/verdict.h"
#include "sim/engine/phase_run.h"
#include "sim/memory/arena.h"
#include "sim/strategy/strategy.h"
#include "traces/base/ids.h"
#include "traces/base/units.h"

namespace shard::engine {

/// A buffer, or all buffers of one name without its numbers, that is live at a peak.
struct Holder {
  std::string name;
  Category category{};
  Bytes bytes;
  std::int32_t buffers = 1;
};

/// One memory in one phase.
struct MemoryPeak {
  Memory memory = Memory::device;
  Bytes peak;                           ///< extent: highest offset used, alignment included
  Bytes live_peak;                      ///< largest sum of live buffers
  CategoryBytes by_category{};          ///< at the live peak; sums to it
  std::vector<Holder> largest_holders;  ///< at the live peak, largest first
  std::string op;                       ///< that reached the live peak; empty when the phase began with it
};

/// Live device memory after one change of it.
struct MemoryPoint {
  Seconds time;  ///< since the phase began
  CategoryBytes live{};
};

/// Live device memory at a moment of the step that people ask for.
struct Moment {
  std::string name;  ///< "creation", "forward", "backward", "step": after it
  Bytes live;
  Bytes live_peak;  ///< largest until then: "creation" of its phase, the others since the step began
  CategoryBytes by_category{};
};

struct PhaseResult {
  Phase phase{};
  bool in_run = true;  ///< the run asked for has this phase; others are shown, but do not decide what fits
  Seconds seconds;
  Seconds compute_seconds;                ///< while any stream computes
  Seconds communication_seconds;          ///< while any collective runs
  Seconds exposed_communication_seconds;  ///< of these, while nothing computes
  Flops model_flops;                      ///< forward and backward, without recomputation
  Flops compute_flops;                    ///< all arithmetic
  std::array<MemoryPeak, kMemoryCount> memory;
  CollectiveCounts collectives{};
};

/// Ranks with equal plans.
struct ClassResult {
  std::vector<std::int32_t> ranks;
  std::vector<PhaseResult> phases;
  std::vector<Moment> moments;
  /// Where asked for: device memory over the steady step (of a run of one step: the first).
  std::vector<MemoryPoint> series;
  CollectiveCounts collectives{};               ///< of creation and all steps
  std::array<Bytes, kMemoryCount> peak{};       ///< extent over the phases of the run
  std::array<Bytes, kMemoryCount> live_peak{};  ///< over the phases of the run
  std::array<Bytes, kMemoryCount> arena{};      ///< what the plan sets aside: the extent over all phases
  /// The phase of the run whose extent in that memory is largest, among equals the one with the most live; null when
  /// the plan has no phases.
  [[nodiscard]] const PhaseResult* peak_phase(Memory memory = Memory::device) const;
  [[nodiscard]] const PhaseResult* find(Phase phase) const {
    for (const PhaseResult& p : phases)
      if (p.phase == phase) return &p;
    return nullptr;
  }
};

struct Simulation {
  std::string plan_hash;
  std::string cluster;
  plan::Strategy strategy;
  std::int32_t steps = 1;
  std::vector<ClassResult> classes;

  Seconds creation_seconds;  ///< of the slowest class, as all below
  Seconds first_step_seconds;
  Seconds step_seconds;          ///< of a steady step
  Seconds run_seconds;           ///< of all phases of the run
  double tokens_per_second = 0;  ///< of all ranks, steady step; samples for an mlp
  double flops_per_second = 0;   ///< of one device, model flops, steady step
  double time_doubt = 0;         ///< four of five times t are expected between t / (1 + doubt) and t (1 + doubt)
  [[nodiscard]] Seconds low(Seconds time) const { return Seconds{time.count() / (1 + time_doubt)}; }
  [[nodiscard]] Seconds high(Seconds time) const { return Seconds{time.count() * (1 + time_doubt)}; }

  std::optional<Bytes> device_capacity;  ///< none: no limit
  cluster::ByteRange outside;            ///< what a rank takes of a device beside its arena: context and libraries
  bool fits = true;                      ///< unless its verdict is does_not_fit
  cluster::HostRoom host{};              ///< of one host
  Bytes host_peak;                       ///< of one host: the sum over its ranks, pageable and pinned
  Bytes pinned_peak;                     ///< of that host: how much of it is pinned

  /// The class whose extent in that memory is largest.
  [[nodiscard]] const ClassResult& largest(Memory memory = Memory::device) const;
  [[nodiscard]] cluster::Room room() const { return {.capacity = device_capacity, .outside = outside}; }
  /// Of both memories.
  [[nodiscard]] cluster::Verdict verdict() const;
  /// The memory that is too small; of both, the device's. Nothing when it fits, or is tight.
  [[nodiscard]] std::optional<Memory> short_of() const;
  /// Capacity less the largest class's extent and the highest of what lies outside; negative when it is tight or does
  /// not fit.
  [[nodiscard]] std::optional<Bytes> headroom() const {
    if (!device_capacity) return std::nullopt;
    return *device_capacity - largest().peak[0] - outside.high;
  }
};

}  // namespace shard::engine
