// The run's own trace beside the simulator's.
#include "executor/commands/run_profile.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "executor/commands/train_options.h"
#include "executor/commands/train_run.h"
#include "executor/train/host_spans.h"
#include "sim/engine/simulation.h"
#include "traces/base/numbers.h"
#include "traces/base/scratch.h"
#include "traces/profile_report.h"
#include "traces/reader.h"
#include "traces/writer.h"

namespace shard::commands {
namespace {

constexpr std::size_t kTop = 10;

struct Stretch {
  std::int64_t begin_ns, end_ns;
};

/// How much of `whole` these cover, each moment counted once.
std::int64_t covered(const Stretch& whole, std::vector<Stretch> parts) {
  std::ranges::sort(parts, {}, &Stretch::begin_ns);
  std::int64_t sum = 0, until = whole.begin_ns;
  for (const Stretch& part : parts) {
    sum += std::max<std::int64_t>(0, std::min(part.end_ns, whole.end_ns) - std::max(part.begin_ns, until));
    until = std::max(until, part.end_ns);
  }
  return sum;
}

/// A rank's step: its own stretch on the host's track, and what is said of it.
struct Step {
  std::optional<Stretch> whole{};
  std::vector<Stretch> ops{};
  std::vector<Stretch> named{};  ///< ops among them
};

std::vector<Coverage> coverage_of(const Trace& trace) {
  std::map<std::pair<Rank, std::int32_t>, Step> steps;
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    const Span span = trace.spans[i];
    if (span.phase != Phase::first_step && span.phase != Phase::steady_step) continue;
    const Track& track = trace.track_of(span.track);
    const Stretch stretch{span.begin_ns, span.begin_ns + span.duration_ns};
    if (track.kind == TrackKind::stream && span.op.valid()) {
      Step& step = steps[{track.rank, span.step}];
      step.ops.push_back(stretch);
      step.named.push_back(stretch);
    } else if (track.kind == TrackKind::other && track.name == train::HostSpans::kTrack) {
      Step& step = steps[{track.rank, span.step}];
      if (trace.name_of(span.name) == train::HostSpans::kStep) {
        step.whole = stretch;
      } else {
        step.named.push_back(stretch);
      }
    }
  }
  std::map<Rank, Coverage> found;
  for (auto& [key, step] : steps) {
    if (step.ops.empty() || !step.whole) continue;  // its time was not recorded
    Coverage& coverage = found[key.first];
    coverage.rank = key.first;
    coverage.step_ns += step.whole->end_ns - step.whole->begin_ns;
    coverage.covered_ns += covered(*step.whole, std::move(step.ops));
    coverage.named_ns += covered(*step.whole, std::move(step.named));
  }
  std::vector<Coverage> result;
  for (const auto& [rank, coverage] : found) result.push_back(coverage);
  return result;
}

nlohmann::ordered_json to_json(const device_profile::DeviceRecords& records) {
  nlohmann::ordered_json j{{"device_spans", records.joined.device_spans},
                           {"device_spans_with_op", records.joined.with_op},
                           {"device_spans_without_call", records.joined.without_call},
                           {"dropped_events", records.dropped},
                           {"clock_bound_seconds", static_cast<double>(records.joined.clock_bound_ns) * 1e-9}};
  j["idle"] = nlohmann::ordered_json::array();
  for (const profiler::Idle& idle : records.idle)
    j["idle"].push_back({{"device", idle.device},
                         {"idle_seconds", static_cast<double>(idle.idle_ns) * 1e-9},
                         {"launch_bound_seconds", static_cast<double>(idle.launch_bound_ns) * 1e-9},
                         {"gaps", idle.gaps},
                         {"launch_bound_gaps", idle.launch_bound_gaps}});
  j["allocations"] = nlohmann::ordered_json::array();
  for (const device_profile::Allocations& each : records.allocations)
    j["allocations"].push_back({{"rank", each.rank.value},
                                {"memory", to_string(each.memory)},
                                {"count", each.count},
                                {"peak_bytes", each.peak_bytes},
                                {"largest_bytes", each.largest_bytes}});
  return j;
}

std::string milliseconds(std::int64_t nanoseconds) {
  return show_fixed(static_cast<double>(nanoseconds) * 1e-6, 3) + " ms";
}

void print(const device_profile::DeviceRecords& records, std::ostream& text) {
  const std::int64_t left_over = records.joined.device_spans - records.joined.with_op;
  text << "\n" << with_commas(records.joined.device_spans) << " kernels, copies and fills as the device recorded them";
  if (left_over > 0) text << ", " << with_commas(left_over) << " of no op";
  if (records.dropped > 0) text << "; " << with_commas(records.dropped) << " events found no room";
  text << "\n";
  for (const profiler::Idle& idle : records.idle)
    text << "  GPU " << idle.device << " had nothing to do for " << milliseconds(idle.idle_ns)
         << " between its first and last work, " << milliseconds(idle.launch_bound_ns)
         << " of it while the host had not launched the next\n";
  for (const device_profile::Allocations& each : records.allocations)
    text << "  rank " << each.rank.value << " allocated " << with_commas(each.peak_bytes) << " bytes of "
         << to_string(each.memory) << " memory in " << each.count << (each.count == 1 ? " call" : " calls") << "\n";
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
                    .coverage = coverage_of(*measured),
                    .records = {},
                    .why_not_recorded = {}};
}

nlohmann::ordered_json to_json(const RunProfile& profile) {
  nlohmann::ordered_json j{{"trace", profile.trace}};
  j["coverage"] = nlohmann::ordered_json::array();
  for (const Coverage& c : profile.coverage)
    j["coverage"].push_back({{"rank", c.rank.value},
                             {"step_seconds", static_cast<double>(c.step_ns) * 1e-9},
                             {"covered_seconds", static_cast<double>(c.covered_ns) * 1e-9},
                             {"named_seconds", static_cast<double>(c.named_ns) * 1e-9}});
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
  j["records"] = nullptr;
  if (profile.records) j["records"] = to_json(*profile.records);
  j["why_not_recorded"] = nullptr;
  if (!profile.why_not_recorded.empty()) j["why_not_recorded"] = profile.why_not_recorded;
  return j;
}

std::string to_text(const RunProfile& profile) {
  std::ostringstream text;
  text << "where the time went (" << profile.trace << ")\n" << shard::to_text(profile.profile, {}, kTop);
  text << "\nops that are furthest from the prediction, a step\n";
  for (const OpComparison& op : profile.comparison.ops)
    text << "  rank " << op.rank.value << "  " << op.name << ": " << show_fixed(op.seconds.second * 1e3, 3)
         << " ms, predicted " << show_fixed(op.seconds.first * 1e3, 3) << " ms\n";
  if (profile.records) print(*profile.records, text);
  return text.str();
}

}  // namespace shard::commands
