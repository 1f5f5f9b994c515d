// How long a step takes of which a dry run kept what it gives the GPU: each piece by a law, all of them in virtual
// time.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/steptime/match.h"
#include "profiler/steptime/recorded.h"
#include "profiler/steptime/step_calls.h"
#include "sim/cluster/cluster.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::steptime {

/// A share of the step; together they are the step.
struct Part {
  std::string name;  ///< a law's, "exposed communication", "waiting for the host", ...
  Seconds time;
};

/// Kernels of one name of which no law says anything.
struct NotKnown {
  std::string name;
  std::int64_t kernels = 0;
  Seconds assumed;  ///< together
};

/// Of a kind of work, what has no duration in the recording.
struct NotRecorded {
  Work kind = Work::kernel;
  std::int64_t count = 0;
  Seconds by_law;  ///< together
};

/// A piece of work of the step, on the clock that begins with the step.
struct Shown {
  std::string name;      ///< the kernel's
  std::string op;        ///< the outermost operator around the call; empty: none
  std::string_view law;  ///< a literal
  Work kind = Work::kernel;
  std::int64_t thread = 0, stream = 0;
  std::int64_t bytes = 0;  ///< of a collective, a copy or a fill
  std::array<std::int64_t, 3> grid{}, block{};
  Seconds issued, begin, end;
};

/// When the host gave a piece, as it was and as it is predicted.
struct HostMoment {
  std::int64_t real_ns = 0;  ///< since the epoch, in the dry run
  Seconds predicted;         ///< on the clock that begins with the step
};

struct Forecast {
  std::int64_t step = 0;  ///< which of the run was priced; 0: the run has none, and this is all of it
  Seconds seconds, low, high;
  double coverage = 0;  ///< of the time of all kernels, the share that has a law, or was recorded
  double recorded = 0;  ///< the share that was recorded
  std::array<double, kWaysToFind> recorded_by{};  ///< what it was found by: shares that are `recorded` together
  std::vector<NotRecorded> not_recorded;          ///< where there is a recording; what takes longest first
  std::int64_t kernels = 0, exchanges = 0;
  std::vector<Part> parts;
  std::vector<NotKnown> not_known;  ///< those that were assumed to take longest first
  bool waits_for_stages = false;    ///< messages from rank to rank: how long others let it wait is not in the answer
  std::vector<Shown> shown;
  std::vector<HostMoment> host;  ///< in the order of both clocks
};

struct Where {
  const cluster::Cluster* cluster = nullptr;  ///< with kernel_laws
  std::int64_t world_size = 1;
  std::int64_t step = 0;               ///< the last whose operators are there; 0: the one that most of them began in
  const Recorded* recorded = nullptr;  ///< whose durations stand in for laws where it has them; none: laws alone
};

/// Kernels without a law are assumed to move what their operator's tensors hold, or to take as long as the floor of a
/// kernel; the interval counts them as anything from nothing to three times that. The step is repeated until it is in
/// the steady state. Errors: contradiction where nothing was given to the GPU, and where the recording has none of it.
[[nodiscard]] Result<Forecast> forecast(const WorkList& work, const import::KinetoProgram& operators,
                                        const Where& where);

}  // namespace shard::steptime
