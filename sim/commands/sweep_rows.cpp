// From what was simulated to flat figures.
#include "sim/commands/sweep_rows.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>
#include <span>
#include <tuple>

#include "sim/commands/beside.h"
#include "sim/engine/report.h"
#include "sim/like/frameworks/framework.h"
#include "sim/like/report.h"
#include "sim/search/pareto.h"
#include "traces/base/numbers.h"

namespace shard::commands {
namespace {

Bytes peak_in(const engine::Simulation& s, Memory memory) {
  return s.largest(memory).peak[static_cast<std::size_t>(memory)];
}

SweepTimes times_of(const engine::Simulation& s) {
  SweepTimes times{.of = std::string(like::kOwnName),
                   .step = s.step_seconds,
                   .tokens_per_second = s.tokens_per_second,
                   .tflops_per_device = s.flops_per_second / 1e12,
                   .first_step = s.first_step_seconds,
                   .creation = s.creation_seconds,
                   .run = s.run_seconds};
  if (const engine::PhaseResult* p = s.largest().find(Phase::steady_step)) {
    times.compute_share = engine::share(p->compute_seconds, p->seconds);
    times.communication_share = engine::share(p->communication_seconds, p->seconds);
    times.exposed_communication_share = engine::share(p->exposed_communication_seconds, p->seconds);
  }
  return times;
}

void read(const engine::Simulation& s, SweepFigures& figures) {
  const engine::ClassResult& largest = s.largest();
  figures.plan_hash = s.plan_hash;
  figures.device_peak = peak_in(s, Memory::device);
  figures.live_peak = largest.live_peak[engine::kDevice];
  if (const engine::PhaseResult* p = largest.peak_phase()) {
    const engine::MemoryPeak& peak = p->memory[engine::kDevice];
    figures.by_category = peak.by_category;
    if (!peak.largest_holders.empty()) {
      const engine::Holder& most = peak.largest_holders.front();
      figures.holder = {.name = most.name, .category = most.category, .bytes = most.bytes};
    }
  }
  if (const engine::PhaseResult* p = largest.find(Phase::steady_step))
    for (std::size_t k = 0; k < figures.sent.size(); ++k) figures.sent[k] = p->collectives[k].bytes;
  figures.host = {
      .peak = s.host_peak, .pinned = s.pinned_peak, .disk = peak_in(s, Memory::disk), .capacity = s.host.capacity};
  figures.times = times_of(s);
}

SweepTimes times_of(const step::StepTime& t, const like::LikeResult& r) {
  return {.of = r.framework,
          .step = t.seconds,
          .tokens_per_second = t.tokens_per_second * r.strategy.world_size,
          .tflops_per_device = t.flops_per_second / 1e12,
          .step_low = t.low,
          .step_high = t.high};
}

void read(const like::LikeResult& r, SweepFigures& figures) {
  if (r.step) figures.times = times_of(*r.step, r);
  figures.device_peak = r.peak_reserved();
  figures.live_peak = r.peak_allocated();
  figures.host = {
      .peak = r.host_of_all(), .pinned = r.pinned_of_all(), .disk = std::nullopt, .capacity = r.host.capacity};
  const auto highest = std::ranges::max_element(r.moments, {}, &like::Moment::max_allocated);
  if (highest != r.moments.end()) {
    for (const like::BlockGroup& group : like::group_blocks(highest->blocks)) {
      figures.by_category[static_cast<std::size_t>(group.category)] += group.together();
      if (!figures.holder || group.together() > figures.holder->bytes)
        figures.holder = {.name = group.name, .category = group.category, .bytes = group.together()};
    }
  }
  for (const like::CollectiveSum& sum : r.collectives)
    if (sum.phase == Phase::first_step) figures.sent[static_cast<std::size_t>(sum.kind)] += sum.bytes;
}

void read(const like::GeminiResult& r, SweepFigures& figures) {
  figures.device_peak = r.device_peak;
  for (const like::LedgerHolder& each : r.holders) {
    figures.by_category[static_cast<std::size_t>(each.category)] += each.bytes;
    figures.live_peak += each.bytes;
  }
  if (!r.holders.empty()) {
    const like::LedgerHolder& most = r.holders.front();
    figures.holder = {.name = most.name, .category = most.category, .bytes = most.bytes};
  }
  if (!r.iterations.empty())
    for (std::size_t k = 0; k < figures.sent.size(); ++k)
      figures.sent[k] = r.iterations.back().after_backward.calls[k].bytes;
}

}  // namespace

Bytes SweepFigures::sent_together() const {
  return std::accumulate(sent.begin(), sent.end(), Bytes{0});
}

Bytes SweepFigures::on_the_wire() const {
  return sent_together() + sent[static_cast<std::size_t>(Collective::all_reduce)];
}

std::string SweepFigures::short_of() const {
  if (verdict == cluster::Verdict::fits) return "";
  const cluster::Room room{.capacity = taken.device_capacity, .outside = outside};
  const bool device = cluster::verdict_of(device_peak, room) == cluster::Verdict::does_not_fit;
  // What other frameworks' allocators cannot serve may be less than there is.
  if (device || fits() || !host || !host->capacity)
    return (fits() ? "tight: " : "") + show_range(cluster::ByteRange{device_peak, device_peak} + outside) + " of " +
           show_bytes(taken.device_capacity.value_or(Bytes{0})) + " device memory";
  return show_bytes(host->peak) + " of " + show_bytes(*host->capacity) + " host memory";
}

SweepFigures figures_of(const Simulated& simulated) {
  SweepFigures figures;
  figures.taken = simulated.taken;
  figures.verdict = simulated.verdict();
  figures.outside = std::visit([](const auto& of) { return of.outside; }, simulated.figures);
  if (simulated.planned) figures.strategy = simulated.planned->strategy;
  std::visit([&](const auto& of) { read(of, figures); }, simulated.figures);
  // Where no laws are known of another framework's kernels, whoever did not ask for it compares strategies by our own
  // executor's times, and by what that sends where the answer does not know it.
  const bool known = figures.times && figures.sent_together() != Bytes{0};
  if (known || simulated.asked) return figures;
  if (const std::optional<engine::Simulation> own = own_beside(simulated)) {
    const SweepFigures ours = [&own] {
      SweepFigures other;
      read(*own, other);
      return other;
    }();
    if (!figures.times) figures.times = ours.times;
    if (figures.sent_together() == Bytes{0}) figures.sent = ours.sent;
  }
  return figures;
}

std::string SweepRow::reason() const {
  if (figures) return figures->short_of();
  assert(error);
  return error->where.empty() ? error->what : error->where + ": " + error->what;
}

void mark_front(std::vector<SweepRow>& rows) {
  // Times by laws of kernels are comparable, whoever's run it is; others among themselves alone.
  std::map<std::string, std::vector<std::size_t>> timed;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].on_front = false;
    if (!rows[i].fits() || !rows[i].figures->times) continue;
    const SweepTimes& times = *rows[i].figures->times;
    timed[times.step_low ? std::string() : times.of].push_back(i);
  }
  for (const auto& [of, all] : timed) {
    std::vector<Tradeoff> tradeoffs;
    for (const std::size_t i : all)
      tradeoffs.push_back({.cost = static_cast<double>(rows[i].figures->device_peak.count()),
                           .gain = rows[i].figures->times->tokens_per_second});
    const std::vector<bool> front = pareto_front(tradeoffs);
    for (std::size_t i = 0; i < all.size(); ++i) rows[all[i]].on_front = front[i];
  }
}

std::vector<std::size_t> best_first(const std::vector<SweepRow>& rows) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto place = [&](std::size_t i) {
    const SweepRow& row = rows[i];
    const int group = row.fits() ? 0 : row.contradicts() ? 2 : 1;
    const double speed = group == 0 && row.figures->times ? row.figures->times->tokens_per_second : 0;
    return std::tuple(group, -speed, row.figures ? row.figures->device_peak.count() : 0, i);
  };
  std::ranges::sort(order, {}, place);
  return order;
}

}  // namespace shard::commands
