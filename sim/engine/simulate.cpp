// Phases in order, steady steps multiplied.
#include "sim/engine/simulate.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "sim/engine/engine.h"
#include "sim/engine/summary.h"
#include "sim/engine/trace_events.h"
#include "sim/ir/run.h"
#include "sim/record/header.h"
#include "traces/base/parallel.h"

namespace shard::engine {
namespace {

/// How often a run has a phase.
std::int64_t repetitions(Phase phase, const SimulateOptions& options) {
  switch (phase) {
    case Phase::creation:
    case Phase::first_step: return 1;
    case Phase::steady_step: return options.steps - 1;
    case Phase::digest: return options.digest ? 1 : 0;
    case Phase::save:
    case Phase::load:
    case Phase::evaluate: return 0;
  }
  return 0;
}

Result<std::vector<PhaseRun>> run_phases(const plan::Plan& plan, const cluster::Cluster& cluster) {
  Engine engine(plan, cluster);
  std::vector<PhaseRun> runs;
  runs.reserve(plan.phases.size());
  for (const plan::PhaseOps& phase : plan.phases) {
    if (Result<void> r = plan::run(phase, engine); !r) {
      Error e = r.error();
      e.where = std::string(to_string(phase.phase)) + ", rank " + std::to_string(plan.rank) + ", " + e.where;
      return e;
    }
    runs.push_back(engine.take());
  }
  return runs;
}

/// False where 63 bits do not hold the sum.
bool add(CollectiveCounts& total, const CollectiveCounts& part, std::int64_t times) {
  for (std::size_t k = 0; k < total.size(); ++k) {
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(part[k].bytes.count(), times, &bytes) ||
        __builtin_add_overflow(bytes, total[k].bytes.count(), &bytes))
      return false;
    total[k].count += part[k].count * times;
    total[k].bytes = Bytes{bytes};
  }
  return true;
}

Result<ClassResult> result_of(const plan::Plan& plan, const std::vector<PhaseRun>& runs,
                              const SimulateOptions& options) {
  ClassResult result;
  Holders holders(plan);
  const Phase shown = options.steps > 1 && plan.find(Phase::steady_step) ? Phase::steady_step : Phase::first_step;
  for (const PhaseRun& run : runs) {
    PhaseResult phase = summarize(plan, run, holders, options.holders);
    const std::int64_t times = repetitions(run.phase, options);
    phase.in_run = times > 0;
    // The digest is a check after the training, of no interest to what the training costs.
    if (run.phase != Phase::digest && !add(result.collectives, run.collectives, times))
      return Error{Errc::contradiction,
                   "a rank sends more than 2^63 bytes in a run of " + std::to_string(options.steps) + " steps",
                   "--steps", "--steps 1"};
    for (std::size_t m = 0; m < phase.memory.size() && phase.in_run; ++m) {
      result.peak[m] = std::max(result.peak[m], phase.memory[m].peak);
      result.live_peak[m] = std::max(result.live_peak[m], phase.memory[m].live_peak);
    }
    result.phases.push_back(std::move(phase));
    if (run.phase == Phase::creation) result.moments.push_back(moment_after(run, "creation"));
    if (run.phase == shown) {
      for (Moment& moment : moments_of_step(plan, run)) result.moments.push_back(std::move(moment));
      if (options.series) result.series = device_series(plan, run);
    }
  }
  std::copy(std::begin(plan.arena_bytes), std::end(plan.arena_bytes), result.arena.begin());
  return result;
}

/// One class of ranks, simulated; its phases are kept where they are to be written.
struct ClassRun {
  std::optional<Error> error;
  ClassResult result;
  std::vector<PhaseRun> phases;
};

ClassRun run_class(const plan::Plan& plan, const cluster::Cluster& cluster, const SimulateOptions& options) {
  Result<std::vector<PhaseRun>> phases = run_phases(plan, cluster);
  if (!phases) return {.error = phases.error(), .result = {}, .phases = {}};
  Result<ClassResult> result = result_of(plan, *phases, options);
  if (!result) return {.error = result.error(), .result = {}, .phases = {}};
  if (options.trace == nullptr) phases->clear();
  return {.error = {}, .result = std::move(*result), .phases = std::move(*phases)};
}

Seconds slowest(const Simulation& simulation, Phase phase) {
  Seconds most;
  for (const ClassResult& c : simulation.classes) {
    if (const PhaseResult* p = c.find(phase)) most = std::max(most, p->seconds);
  }
  return most;
}

/// Writes a rank's whole run: phases in order, the steady step as often as the run has it. All ranks begin a phase
/// together, when the slowest has ended the one before: their collectives tie them to each other.
void write_rank(Writer& writer, const plan::Plan& plan, const std::vector<PhaseRun>& runs, const Simulation& simulation,
                const ClassResult& result, const SimulateOptions& options, Rank rank) {
  record::Recorder recorder(plan, rank, writer);
  Seconds begin;
  for (const PhaseRun& run : runs) {
    const std::int64_t times = repetitions(run.phase, options);
    const Seconds length = slowest(simulation, run.phase);
    for (std::int64_t i = 0; i < times; ++i) {
      std::int64_t step = 0;
      if (run.phase == Phase::steady_step) step = 1 + i;
      if (run.phase == Phase::steady_step && step >= options.trace_steps) break;
      if (run.phase == Phase::digest) step = options.steps - 1;
      const Seconds own = begin + static_cast<double>(i) * length - run.interval.begin;
      write_phase(recorder, run, step, own);
    }
    begin += static_cast<double>(times) * length;
    if (times > 0) write_peaks(recorder, run);
  }
  write_collectives(recorder, result.collectives);
}

/// A machine that was calibrated says how far its own steps were off; of a description by data sheets nothing is known
/// but that shares of its peaks are guesses, which were twice too slow and too fast.
double doubt_of_times(const cluster::Cluster& cluster) {
  constexpr double kNotCalibrated = 1, kNotSaid = 0.25;
  if (!cluster.measured) return kNotCalibrated;
  return cluster.measured->step_error > 0 ? cluster.measured->step_error : kNotSaid;
}

void finish_time(Simulation& s, const SimulateOptions& options) {
  s.creation_seconds = slowest(s, Phase::creation);
  s.first_step_seconds = slowest(s, Phase::first_step);
  s.step_seconds = slowest(s, Phase::steady_step);
  s.run_seconds = s.creation_seconds + s.first_step_seconds + static_cast<double>(s.steps - 1) * s.step_seconds;
  if (options.digest) s.run_seconds += slowest(s, Phase::digest);
  if (s.step_seconds <= Seconds{0}) return;
  s.tokens_per_second =
      static_cast<double>(s.strategy.global_batch) * static_cast<double>(s.strategy.sequence) / s.step_seconds.count();
  for (const ClassResult& c : s.classes) {
    if (const PhaseResult* p = c.find(Phase::steady_step)) {
      s.flops_per_second = std::max(s.flops_per_second, p->model_flops.count() / s.step_seconds.count());
    }
  }
}

std::optional<Bytes> device_capacity(const cluster::Cluster& cluster, const SimulateOptions& options) {
  return options.device_capacity ? options.device_capacity : cluster.device_memory;
}
std::optional<Bytes> host_capacity(const cluster::Cluster& cluster, const SimulateOptions& options) {
  return options.host_capacity ? options.host_capacity : cluster.host_memory;
}

void finish_capacity(Simulation& s, const cluster::Cluster& cluster, const SimulateOptions& options) {
  s.device_capacity = device_capacity(cluster, options);
  s.outside = cluster::outside_allocator(cluster, s.strategy.world_size);
  s.host = cluster::host_room(cluster, s.strategy.world_size, options.host_capacity);
  const cluster::Layout layout = cluster::layout(cluster, s.strategy.world_size);
  const std::int32_t ranks_per_host = layout.ranks_per_host();
  struct Host {
    Bytes all{0};
    Bytes pinned{0};
  };
  std::vector<Host> hosts(static_cast<std::size_t>(layout.hosts));
  for (const ClassResult& c : s.classes)
    for (const std::int32_t rank : c.ranks) {
      Host& host = hosts[static_cast<std::size_t>(rank / ranks_per_host)];
      const Bytes pinned = c.peak[static_cast<std::size_t>(Memory::pinned)];
      host.all += c.peak[static_cast<std::size_t>(Memory::host)] + pinned;
      host.pinned += pinned;
    }
  const Host& fullest = *std::ranges::max_element(hosts, {}, &Host::all);
  s.host_peak = fullest.all;
  s.pinned_peak = fullest.pinned;
  s.fits = s.verdict() != cluster::Verdict::does_not_fit;
}

}  // namespace

Result<Simulation> simulate(const plan::PlanSet& plans, const cluster::Cluster& cluster,
                            const SimulateOptions& options) {
  if (options.steps < 1) {
    return Error{Errc::contradiction, "a run of " + std::to_string(options.steps) + " steps", "--steps", "--steps 1"};
  }
  assert(!plans.classes.empty());
  assert((options.trace == nullptr || plans.classes.front().micro_step_times.empty()) &&
         "a trace has every micro-step");
  Simulation s;
  s.plan_hash = plans.hash;
  s.cluster = cluster.name;
  s.strategy = plans.classes.front().strategy;
  s.steps = options.steps;
  if (Result<void> r = cluster::check_ranks(cluster, s.strategy.world_size); !r) return r.error();

  std::vector<ClassRun> runs(plans.classes.size());
  for_each_index(runs.size(), plan::is_worth_a_thread(plans.classes.front()),
                 [&](std::size_t c) { runs[c] = run_class(plans.classes[c], cluster, options); });
  std::vector<std::vector<PhaseRun>> runs_of_class;
  for (ClassRun& run : runs) {
    if (run.error) return *run.error;
    s.classes.push_back(std::move(run.result));
    if (options.trace != nullptr) runs_of_class.push_back(std::move(run.phases));
  }
  for (std::size_t rank = 0; rank < plans.class_of_rank.size(); ++rank)
    s.classes[static_cast<std::size_t>(plans.class_of_rank[rank])].ranks.push_back(static_cast<std::int32_t>(rank));
  for (std::size_t c = 0; c < runs_of_class.size(); ++c) {
    const ClassResult& result = s.classes[c];
    for (const std::int32_t rank : result.ranks) {
      if (rank >= options.trace_ranks && rank != result.ranks.front()) continue;
      write_rank(*options.trace, plans.classes[c], runs_of_class[c], s, result, options, Rank{rank});
    }
  }
  s.time_doubt = doubt_of_times(cluster);
  finish_time(s, options);
  finish_capacity(s, cluster, options);
  return s;
}

Result<Bytes> peak_device_bytes(const std::shared_ptr<const model::Model>& model, const plan::Strategy& strategy,
                                const cluster::Cluster& cluster, const SimulateOptions& options) {
  const Result<plan::PlanSet> plans = plan::compile(model, strategy, plan::MicroSteps::folded);
  if (!plans) return plans.error();
  SimulateOptions untraced = options;
  untraced.trace = nullptr;
  untraced.series = false;
  const Result<Simulation> simulation = simulate(*plans, cluster, untraced);
  if (!simulation) return simulation.error();
  if (!simulation->host.holds(simulation->host_peak))
    return Error{Errc::does_not_fit, "host memory is too small", "host", "less on the host"};
  return simulation->largest().peak[0];
}

std::optional<Change> change_that_fits(const std::shared_ptr<const model::Model>& model, const Simulation& simulation,
                                       const cluster::Cluster& cluster, const SimulateOptions& options) {
  if (simulation.fits) return std::nullopt;
  const Bytes capacity = simulation.room().at_least().value_or(Bytes{std::numeric_limits<std::int64_t>::max()});
  return smallest_change(simulation.strategy, capacity, [&](const plan::Strategy& other) {
    return peak_device_bytes(model, other, cluster, options);
  });
}

Header trace_header(const plan::PlanSet& plans, const cluster::Cluster& cluster, const SimulateOptions& options) {
  Header header = record::header_of(plans);
  header.kind = TraceKind::predicted;
  header.metadata["cluster"] = cluster.name;
  if (const auto bytes = device_capacity(cluster, options))
    header.capacities.push_back({.memory = Memory::device, .bytes = bytes->count()});
  if (const auto bytes = host_capacity(cluster, options)) {
    const std::int32_t sharers = cluster::layout(cluster, header.world_size).ranks_per_host();
    header.capacities.push_back({.memory = Memory::host, .sharers = sharers, .bytes = bytes->count()});
  }
  return header;
}

}  // namespace shard::engine
