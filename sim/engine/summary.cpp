// Peaks, holders, shares of time, moments.
#include "sim/engine/summary.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sim/engine/busy.h"
#include "sim/ir/effects.h"

namespace shard::engine {
namespace {

constexpr std::size_t index(Category c) {
  return static_cast<std::size_t>(c);
}

MemoryPeak peak_of(const plan::Plan& plan, const PhaseRun& run, const ArenaRun& arena, Holders& holders,
                   std::size_t count) {
  MemoryPeak peak{.memory = arena.memory,
                  .peak = arena.extent,
                  .live_peak = arena.live_peak,
                  .by_category = arena.peak_by_category,
                  .largest_holders = {},
                  .op = {}};
  std::vector<bool> live(plan.buffers.size(), false);
  for (const BufferId id : arena.resident) live[static_cast<std::size_t>(id.value)] = true;
  Bytes bytes = arena.live_begin;
  const plan::Op* last = nullptr;
  // Replays the changes up to the first moment of the peak, when these buffers were live.
  for (auto it = run.changes.begin(); bytes != arena.live_peak && it != run.changes.end(); ++it) {
    if (plan.buffer(it->buffer).memory != arena.memory) continue;
    bytes += it->delta;
    live[static_cast<std::size_t>(it->buffer.value)] = it->delta >= Bytes{0};
    last = it->op;
  }
  if (last != nullptr) peak.op = last->name;
  peak.largest_holders = holders.largest(live, count);
  return peak;
}

/// Device memory while the changes of a phase are gone through.
class DeviceReplay {
 public:
  DeviceReplay(const plan::Plan& plan, const PhaseRun& run)
      : plan_(plan), live_(run.arenas[0].begin_by_category), sum_(run.arenas[0].live_begin), peak_(sum_) {}
  /// False where the change is of another memory.
  bool add(const MemoryChange& change) {
    const plan::Buffer& b = plan_.buffer(change.buffer);
    if (b.memory != Memory::device) return false;
    live_[index(b.category)] += change.delta;
    sum_ += change.delta;
    peak_ = std::max(peak_, sum_);
    return true;
  }
  [[nodiscard]] const CategoryBytes& live() const { return live_; }
  [[nodiscard]] Moment moment(std::string name) const { return {std::move(name), sum_, peak_, live_}; }

 private:
  const plan::Plan& plan_;
  CategoryBytes live_;
  Bytes sum_;
  Bytes peak_;
};

/// A part of what was run, which the whole phase has so many times.
struct Stretch {
  Interval interval;
  double times = 1;
};

/// From the first op that computes of each micro-step to that of the next; what fetches run ahead of it, or reductions
/// behind it, is its neighbour's as its neighbour's is its own.
std::vector<Stretch> stretches_of(const plan::Plan& plan, const PhaseRun& run) {
  std::vector<Stretch> stretches{{.interval = run.interval}};
  if (plan.micro_step_times.empty()) return stretches;
  std::int32_t micro_step = 0;
  for (const OpRun& op : run.ops) {
    if (op.op->stream != Stream::compute || op.op->micro_step <= micro_step) continue;
    micro_step = op.op->micro_step;
    stretches.back().interval.end = op.interval.begin;
    stretches.push_back(
        {.interval = {op.interval.begin, run.interval.end}, .times = static_cast<double>(plan.times_of(*op.op))});
  }
  return stretches;
}

}  // namespace

PhaseResult summarize(const plan::Plan& plan, const PhaseRun& run, Holders& holders, std::size_t count) {
  PhaseResult result;
  result.phase = run.phase;
  std::vector<Interval> computing, communicating;
  for (const OpRun& op : run.ops) {
    if (op.work == Work::compute) computing.push_back(op.interval);
    if (op.work == Work::communication) communicating.push_back(op.interval);
    const Flops flops = static_cast<double>(plan.times_of(*op.op)) * op.flops;
    result.compute_flops += flops;
    if (op.op->part == plan::Part::forward || op.op->part == plan::Part::backward) result.model_flops += flops;
  }
  const Busy compute(std::move(computing));
  const Busy communication(std::move(communicating));
  for (const auto& [interval, times] : stretches_of(plan, run)) {
    const Busy computed = compute.within(interval);
    const Busy communicated = communication.within(interval);
    result.seconds += times * interval.length();
    result.compute_seconds += times * computed.length();
    result.communication_seconds += times * communicated.length();
    result.exposed_communication_seconds += times * communicated.length_outside(computed);
  }
  result.collectives = run.collectives;
  for (std::size_t m = 0; m < run.arenas.size(); ++m)
    result.memory[m] = peak_of(plan, run, run.arenas[m], holders, count);
  return result;
}

std::vector<MemoryPoint> device_series(const plan::Plan& plan, const PhaseRun& run) {
  DeviceReplay device(plan, run);
  std::vector<MemoryPoint> series{{Seconds{0}, device.live()}};
  for (const MemoryChange& change : run.changes) {
    if (device.add(change)) series.push_back({change.time - run.interval.begin, device.live()});
  }
  return series;
}

std::vector<Moment> moments_of_step(const plan::Plan& plan, const PhaseRun& run) {
  const plan::Op* last_forward = nullptr;
  const plan::Op* last_backward = nullptr;
  for (const OpRun& op : run.ops) {
    if (op.op->part == plan::Part::forward) last_forward = op.op;
    if (op.op->part == plan::Part::backward) last_backward = op.op;
  }
  DeviceReplay device(plan, run);
  std::vector<Moment> moments;
  auto change = run.changes.begin();
  for (const OpRun& op : run.ops) {
    for (; change != run.changes.end() && change->op == op.op; ++change) device.add(*change);
    if (op.op == last_forward) moments.push_back(device.moment("forward"));
    if (op.op == last_backward) moments.push_back(device.moment("backward"));
  }
  moments.push_back(device.moment("step"));
  return moments;
}

Moment moment_after(const PhaseRun& run, std::string name) {
  const ArenaRun& device = run.arenas[0];
  Moment moment{std::move(name), device.live_end, device.live_peak, device.end_by_category};
  return moment;
}

}  // namespace shard::engine
