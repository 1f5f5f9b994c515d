// One walk over the recording's spans, then over the plan's ops.
#include "executor/profile/add_records.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "sim/ir/effects.h"
#include "sim/record/recorder.h"

namespace shard::device_profile {
namespace {

struct Stretch {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

/// An op of a rank in one run of a phase.
using Place = std::tuple<Rank, Phase, std::int32_t>;
using Ops = std::map<Place, std::unordered_map<std::int32_t, Stretch>>;  // by op

/// Of a rank's plan, by id.
class OpTable {
 public:
  explicit OpTable(const plan::PlanSet& plans) : plans_(plans) {
    for (const plan::Plan& plan : plans.classes) {
      auto& ops = ops_.emplace_back();
      for (const plan::PhaseOps& phase : plan.phases)
        for (const plan::Op& op : phase.ops) ops[{phase.phase, op.id.value}] = &op;
    }
  }
  /// Null where the rank's plan has no such op.
  [[nodiscard]] const plan::Op* find(Rank rank, Phase phase, OpId op) const {
    if (!rank.valid() || rank.value >= static_cast<std::int32_t>(plans_.class_of_rank.size())) return nullptr;
    const auto& ops = ops_[static_cast<std::size_t>(plans_.class_of_rank[static_cast<std::size_t>(rank.value)])];
    const auto at = ops.find({phase, op.value});
    return at == ops.end() ? nullptr : at->second;
  }

 private:
  const plan::PlanSet& plans_;
  std::vector<std::map<std::pair<Phase, std::int32_t>, const plan::Op*>> ops_;  ///< by class
};

class Adding {
 public:
  Adding(const profiler::Timeline& timeline, const plan::PlanSet& plans, const WantedStep& wanted, Writer& writer)
      : from_(timeline.loaded.trace), plans_(plans), wanted_(wanted), writer_(writer), ops_(plans) {
    records_.joined = timeline.joined;
    records_.idle = timeline.idle;
    records_.dropped = from_.dropped_count;
  }

  DeviceRecords run() {
    find_phases();
    for (std::size_t i = 0; i < from_.spans.size(); ++i) add(from_.spans[i]);
    for (const Flow& flow : from_.flows)
      if (const Run run = phase_at(from_.track_of(flow.from_track).rank, flow.from_ns); is_wanted(run.phase, run.step))
        writer_.add(Flow{.from_track = track(flow.from_track),
                         .from_ns = flow.from_ns,
                         .to_track = track(flow.to_track),
                         .to_ns = flow.to_ns,
                         .kind = flow.kind});
    add_ops();
    add_memory();
    if (records_.dropped > 0) writer_.add_dropped(records_.dropped);
    return std::move(records_);
  }

 private:
  [[nodiscard]] TrackId track(TrackId id) {
    TrackId& made = tracks_.try_emplace(id.value).first->second;
    if (made.valid()) return made;
    Track like = from_.track_of(id);
    like.stream = Stream::compute;  // which of the plan's streams it is say the ops
    return made = writer_.track(like);
  }
  [[nodiscard]] static bool is_phase(const Span& span) {
    return span.activity == Activity::annotation && !span.op.valid();
  }
  /// A phase of a rank; calls say none of their own.
  struct Run {
    Stretch when{};
    Phase phase = Phase::creation;
    std::int32_t step = 0;
  };
  void find_phases() {
    for (std::size_t i = 0; i < from_.spans.size(); ++i)
      if (const Span span = from_.spans[i]; is_phase(span))
        phases_[owner_of(span)].push_back({{span.begin_ns, span.begin_ns + span.duration_ns}, span.phase, span.step});
    for (auto& [rank, runs] : phases_)
      std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.when.begin_ns < b.when.begin_ns; });
  }
  /// Before and behind all phases: creation, the first.
  [[nodiscard]] Run phase_at(Rank rank, std::int64_t time_ns) const {
    const auto runs = phases_.find(rank);
    if (runs == phases_.end()) return {};
    const auto behind = std::upper_bound(runs->second.begin(), runs->second.end(), time_ns,
                                         [](std::int64_t time, const Run& run) { return time < run.when.begin_ns; });
    if (behind == runs->second.begin() || std::prev(behind)->when.end_ns < time_ns) return {};
    return *std::prev(behind);
  }
  [[nodiscard]] bool is_wanted(Phase phase, std::int32_t step) const { return !wanted_ || wanted_(phase, step); }

  void add(Span span) {
    if (is_phase(span)) return;  // the host's own track has it
    const Track& of = from_.track_of(span.track);
    if (!span.op.valid()) {
      const Run run = phase_at(of.rank, span.begin_ns);
      span.phase = run.phase;
      span.step = run.step;
    }
    if (!is_wanted(span.phase, span.step)) return;
    if (const plan::Op* const op = span.op.valid() ? ops_.find(owner_of(span), span.phase, span.op) : nullptr)
      take_part(*op, of, span);
    if (of.kind != TrackKind::stream) span.op = OpId{};  // what the host does for an op is no part of its work
    span.track = track(span.track);
    span.name = writer_.name(from_.name_of(span.name));
    writer_.add(span);
  }

  [[nodiscard]] Rank owner_of(const Span& span) const { return from_.track_of(span.track).rank; }

  void take_part(const plan::Op& op, const Track& of, Span& span) {
    const Stretch now{span.begin_ns, span.begin_ns + span.duration_ns};
    const auto [at, first] = stretches_[{of.rank, span.phase, span.step}].try_emplace(op.id.value, now);
    Stretch& stretch = at->second;
    stretch = {std::min(stretch.begin_ns, now.begin_ns), std::max(stretch.end_ns, now.end_ns)};
    span.micro_step = op.micro_step;
    span.part = op.part;
    const auto* const call = std::get_if<plan::Communicate>(&op.action);
    if (call == nullptr || of.kind != TrackKind::stream) return;
    // Whatever a communicator makes a collective of: copies, sums, or a kernel of its own. The first has its bytes.
    span.activity = activity_of(call->kind);
    span.unit = call->unit;
    const plan::Effects effects = plan::effects(plans_.of_rank(of.rank.value), op);
    span.bytes = first && effects.sends ? effects.sends->bytes.count() : 0;
  }

  void add_ops() {
    for (const auto& [place, ops] : stretches_) {
      const auto& [rank, phase, step] = place;
      const plan::Plan& plan = plans_.of_rank(rank.value);
      record::Recorder recorder(plan, rank, writer_);
      recorder.begin(phase, step);
      for (const plan::Op& op : plan.find(phase)->ops)
        if (const auto at = ops.find(op.id.value); at != ops.end())
          recorder.op(op, {.begin_ns = at->second.begin_ns, .end_ns = at->second.end_ns, .has_parts = true});
    }
  }

  void add_memory() {
    std::map<std::pair<Rank, Memory>, Allocations> found;
    std::map<std::pair<Rank, Memory>, std::int64_t> live;
    for (std::size_t i = 0; i < from_.memory.size(); ++i) {
      const MemoryEvent event = from_.memory[i];
      Allocations& of = found[{event.rank, event.memory}];
      std::int64_t& now = live[{event.rank, event.memory}];
      of.rank = event.rank;
      of.memory = event.memory;
      of.count += event.delta_bytes > 0 ? 1 : 0;
      of.largest_bytes = std::max(of.largest_bytes, event.delta_bytes);
      now += event.delta_bytes;
      of.peak_bytes = std::max(of.peak_bytes, now);
      const bool device = event.memory == Memory::device;
      writer_.add(Counter{.rank = event.rank,
                          .name = writer_.name(device ? "allocated_device_bytes" : "allocated_host_bytes"),
                          .time_ns = event.time_ns,
                          .value = static_cast<double>(now)});
    }
    for (const auto& [key, each] : found) records_.allocations.push_back(each);
  }

  const Trace& from_;
  const plan::PlanSet& plans_;
  const WantedStep& wanted_;
  Writer& writer_;
  OpTable ops_;
  DeviceRecords records_;
  std::unordered_map<std::int32_t, TrackId> tracks_;
  std::map<Rank, std::vector<Run>> phases_;
  Ops stretches_;
};

}  // namespace

DeviceRecords add_records(const profiler::Timeline& timeline, const plan::PlanSet& plans, const WantedStep& wanted,
                          Writer& writer) {
  return Adding(timeline, plans, wanted, writer).run();
}

}  // namespace shard::device_profile
