// The run's own trace beside the simulator's.
#include "executor/commands/run_profile.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "executor/commands/train_options.h"
#include "executor/commands/train_run.h"
#include "sim/engine/simulation.h"
#include "traces/base/numbers.h"
#include "traces/base/scratch.h"
#include "traces/profile_report.h"
#include "traces/reader.h"
#include "traces/writer.h"

namespace shard::commands {
namespace {

constexpr std::size_t kTop = 10;

/// Ops of a rank within its steps as the host's track has them, each moment counted once.
std::vector<Coverage> coverage_of(const Trace& trace) {
  struct Stretch {
    std::int64_t begin_ns, end_ns;
  };
  std::map<std::pair<Rank, std::int32_t>, Stretch> steps;
  std::map<std::pair<Rank, std::int32_t>, std::vector<Stretch>> ops;
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    const Span span = trace.spans[i];
    if (span.phase != Phase::first_step && span.phase != Phase::steady_step) continue;
    const Track& track = trace.track_of(span.track);
    const Stretch stretch{span.begin_ns, span.begin_ns + span.duration_ns};
    if (track.kind == TrackKind::stream) ops[{track.rank, span.step}].push_back(stretch);
    if (track.kind == TrackKind::other) steps[{track.rank, span.step}] = stretch;
  }
  std::map<Rank, Coverage> found;
  for (const auto& [key, step] : steps) {
    const auto inside = ops.find(key);
    if (inside == ops.end()) continue;  // its time was not recorded
    Coverage& coverage = found[key.first];
    coverage.rank = key.first;
    coverage.step_ns += step.end_ns - step.begin_ns;
    std::ranges::sort(inside->second, {}, &Stretch::begin_ns);
    std::int64_t until = step.begin_ns;
    for (const Stretch& op : inside->second) {
      coverage.covered_ns += std::max<std::int64_t>(0, std::min(op.end_ns, step.end_ns) - std::max(op.begin_ns, until));
      until = std::max(until, op.end_ns);
    }
  }
  std::vector<Coverage> result;
  for (const auto& [rank, coverage] : found) result.push_back(coverage);
  return result;
}

Result<Trace> predicted_trace(const Prepared& p, const cluster::Cluster& cluster, const TrainOptions& o) {
  const Result<Scratch> folder = Scratch::make_temporary("the prediction");
  if (!folder) return folder.error();
  const std::string path = folder->path() + "/predicted.sst";
  if (const Result<void> written = write_prediction(p, cluster, o, path); !written) return written.error();
  return load(path);
}

}  // namespace

Result<void> write_prediction(const Prepared& p, const cluster::Cluster& cluster, const TrainOptions& o,
                              const std::string& path) {
  Result<Writer> writer =
      Writer::create(path, engine::trace_header(p.plans, cluster, simulate_options(o)), Appears::whole);
  if (!writer) return writer.error();
  engine::SimulateOptions options = simulate_options(o);
  options.trace = &*writer;
  const Result<engine::Simulation> simulation = engine::simulate(p.plans, cluster, options);
  if (!simulation) return simulation.error();
  return writer->close();
}

Result<RunProfile> profile_of_run(const Prepared& p, const TrainOptions& o, const cluster::Cluster& cluster) {
  const Result<Trace> measured = load(o.trace);
  if (!measured) return measured.error();
  const Result<Trace> predicted = predicted_trace(p, cluster, o);
  if (!predicted) return predicted.error();
  Result<Comparison> comparison = compare_traces(*predicted, *measured, {.max_ops = kTop});
  if (!comparison) return comparison.error();
  return RunProfile{.trace = o.trace,
                    .profile = profile(*measured),
                    .comparison = std::move(*comparison),
                    .coverage = coverage_of(*measured)};
}

nlohmann::ordered_json to_json(const RunProfile& profile) {
  nlohmann::ordered_json j{{"trace", profile.trace}};
  j["coverage"] = nlohmann::ordered_json::array();
  for (const Coverage& c : profile.coverage)
    j["coverage"].push_back({{"rank", c.rank.value},
                             {"step_seconds", static_cast<double>(c.step_ns) * 1e-9},
                             {"covered_seconds", static_cast<double>(c.covered_ns) * 1e-9}});
  j.update(shard::to_json(profile.profile, kTop));
  j["residuals"] = nlohmann::ordered_json::array();
  for (const OpComparison& op : profile.comparison.ops)
    j["residuals"].push_back({{"rank", op.rank.value},
                              {"op", op.op.value},
                              {"name", op.name},
                              {"stream", to_string(op.stream)},
                              {"predicted_seconds", op.seconds.first},
                              {"measured_seconds", op.seconds.second},
                              {"waiting_seconds", op.waiting_seconds.second}});
  return j;
}

std::string to_text(const RunProfile& profile) {
  std::ostringstream text;
  text << "where the time went (" << profile.trace << ")\n" << shard::to_text(profile.profile, {}, kTop);
  text << "\nops that are furthest from the prediction, a step\n";
  for (const OpComparison& op : profile.comparison.ops)
    text << "  rank " << op.rank.value << "  " << op.name << ": " << show_fixed(op.seconds.second * 1e3, 3)
         << " ms, predicted " << show_fixed(op.seconds.first * 1e3, 3) << " ms\n";
  return text.str();
}

}  // namespace shard::commands
