// Fills what the smallest plan leaves free.
#include "sim/plan/placement/automatic.h"

#include <algorithm>
#include <limits>
#include <map>

#include "sim/plan/effects.h"
#include "sim/plan/lifetimes.h"
#include "sim/plan/passes/fetches.h"
#include "sim/plan/passes/passes.h"
#include "sim/plan/placement/belady.h"
#include "sim/plan/placement/shares.h"

namespace shard::plan {
namespace {

/// A unit on the device, from the first of the ops that bring it to its last use.
struct Visit {
  std::size_t begin = 0;
  std::size_t end = 0;
};

bool is_model_data(Category category) {
  return category == Category::parameter || category == Category::gathered || category == Category::gradient ||
         category == Category::master_parameter || category == Category::optimizer_state;
}

bool gradients_follow_state(const Strategy& s) {
  return !s.placement.gradients && !s.reuses_shards();
}

class Room {
 public:
  explicit Room(const Plan& plan) : plan_(plan), capacity_(plan.strategy.placement.device_capacity.count()) {
    smallest_.resting = rest_by_share(plan.strategy, plan.flats, plan.units);  // automatic: the host
    Plan small = plan;
    small.placed = smallest_;
    small = place(std::move(small));
    find_lifetimes(small);
    measure(small);
    find_visits(small);
    for (const Unit& unit : plan.units) {
      std::int64_t& rest = rest_bytes_.emplace_back(0);
      std::int64_t& held = held_bytes_.emplace_back(0);
      for (std::int32_t f : unit.flats) {
        const auto flat = static_cast<std::size_t>(f);
        rest += arena_bytes(small.buffer(small.flat_parameters[flat])).count();
        if (flat < small.flat_gathered.size() && small.flat_gathered[flat].valid())
          held += arena_bytes(small.buffer(small.flat_gathered[flat])).count();
      }
    }
  }

  [[nodiscard]] const Placed& smallest() const { return smallest_; }

  /// With `spare` bytes of the capacity left alone. Optimizer state only where the room is measured: else the arena
  /// itself says how much there is for it.
  [[nodiscard]] Placed fill(std::int64_t spare) const {
    Placed placed = smallest_;
    std::vector<std::int64_t> free;
    for (std::int64_t live : live_) free.push_back(capacity_ - spare - live);
    std::int64_t free_elsewhere = capacity_ - spare - live_elsewhere_;
    if (!parameters_are_placed()) rest_parameters(placed, free, free_elsewhere);
    hold_units(placed, free);
    std::int64_t margin = std::min(free_elsewhere, *std::min_element(free.begin(), free.end()));
    margin = static_cast<std::int64_t>(plan_.strategy.placement.margin_ratio * static_cast<double>(margin));
    if (plan_.strategy.placement.non_model_peak && !plan_.strategy.placement.optimizer) rest_optimizer(placed, margin);
    return placed;
  }

 private:
  /// By hand: where gradients take their place, also by what is said of those.
  [[nodiscard]] bool parameters_are_placed() const {
    const Strategy& s = plan_.strategy;
    return s.placement.parameters || (s.reuses_shards() && s.placement.gradients);
  }

  /// What lives on the device when nothing rests there.
  void measure(const Plan& small) {
    const std::optional<Bytes> measured = small.strategy.placement.non_model_peak;
    const auto counts = [&](const Buffer& b) {
      return b.memory == Memory::device && (!measured || is_model_data(b.category));
    };
    std::int64_t resting = measured.value_or(Bytes{0}).count();
    for (const PhaseOps& phase : small.phases)
      for (const Op& op : phase.ops)
        for (BufferId id : op.acquire)
          if (const Buffer& b = small.buffer(id); b.persistent && counts(b)) resting += arena_bytes(b).count();
    for (const PhaseOps& phase : small.phases) {
      std::int64_t live = resting;
      const auto change = [&](const std::vector<BufferId>& ids, int sign) {
        for (BufferId id : ids)
          if (const Buffer& b = small.buffer(id); !b.persistent && counts(b)) live += sign * arena_bytes(b).count();
      };
      for (const Op& op : phase.ops) {
        change(op.acquire, 1);
        if (phase.phase == Phase::steady_step)
          live_.push_back(live);
        else
          live_elsewhere_ = std::max(live_elsewhere_, live);
        change(op.release, -1);
      }
    }
  }

  void find_visits(const Plan& small) {
    const std::vector<Op>& ops = small.find(Phase::steady_step)->ops;
    visits_.resize(small.units.size());
    std::vector<std::int32_t> unit_of(small.buffers.size(), -1);
    for (std::size_t f = 0; f < small.flat_gathered.size(); ++f)
      if (small.flat_gathered[f].valid())
        unit_of[static_cast<std::size_t>(small.flat_gathered[f].value)] = small.flats[f].unit.value;
    const std::vector<Fetch> fetches = fetches_of(small, ops);
    auto fetch = fetches.begin();
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (fetch != fetches.end() && fetch->begin == i)
        visits_[static_cast<std::size_t>((fetch++)->unit.value)].push_back({.begin = i, .end = i + 1});
      for (const Operand& o : ops[i].operands)
        if (const std::int32_t u = unit_of[static_cast<std::size_t>(o.buffer.value)]; u >= 0)
          // What refreshes after the step is no visit.
          if (auto& visits = visits_[static_cast<std::size_t>(u)]; !visits.empty() && ops[i].part != Part::optimizer)
            visits.back().end = i + 1;
    }
  }

  void rest_parameters(Placed& placed, std::vector<std::int64_t>& free, std::int64_t& free_elsewhere) const {
    const bool gathered = plan_.strategy.effective_stage() == 3;
    std::vector<std::size_t> order;
    for (std::size_t u = 0; u < visits_.size(); ++u)
      if (!visits_[u].empty()) order.push_back(u);
    const auto distance = [&](std::size_t u) {
      return live_.size() - visits_[u].back().end + visits_[u].front().begin;
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return distance(a) < distance(b); });
    for (std::size_t u : order) {
      std::vector<std::int64_t> left = free;
      for (std::int64_t& bytes : left) bytes -= rest_bytes_[u];
      // What rests is not brought as well.
      for (const Visit& visit : visits_[u])
        for (std::size_t t = visit.begin; !gathered && t < visit.end; ++t) left[t] += held_bytes_[u];
      if (free_elsewhere < rest_bytes_[u] || *std::min_element(left.begin(), left.end()) < 0) continue;
      free = std::move(left);
      free_elsewhere -= rest_bytes_[u];
      placed.resting[u].parameters = Memory::device;
      if (plan_.strategy.reuses_shards()) placed.resting[u].gradients = Memory::device;
    }
  }

  void hold_units(Placed& placed, std::vector<std::int64_t>& free) const {
    const bool gathered = plan_.strategy.effective_stage() == 3;
    std::vector<Gap> gaps;
    std::vector<std::pair<std::size_t, std::size_t>> fetch_of;  // unit, its fetch at the end of the gap
    placed.held.resize(visits_.size());
    for (std::size_t u = 0; u < visits_.size(); ++u) {
      placed.held[u].assign(visits_[u].size(), false);
      if (!gathered && placed.resting[u].parameters == Memory::device) continue;
      for (std::size_t k = 1; k < visits_[u].size(); ++k) {
        gaps.push_back({.begin = visits_[u][k - 1].end, .end = visits_[u][k].begin, .bytes = held_bytes_[u]});
        fetch_of.emplace_back(u, k);
      }
    }
    const std::vector<bool> kept = keep_nearest(gaps, free);
    for (std::size_t g = 0; g < gaps.size(); ++g) placed.held[fetch_of[g].first][fetch_of[g].second] = kept[g];
  }

  void rest_optimizer(Placed& placed, std::int64_t margin) const {
    std::vector<std::int64_t> bytes(plan_.units.size(), 0);
    for (const Op& op : plan_.find(Phase::steady_step)->ops) {
      const auto* step = std::get_if<OptimizerStep>(&op.action);
      if (step == nullptr) continue;
      const auto unit = static_cast<std::size_t>(plan_.flats[static_cast<std::size_t>(step->flat)].unit.value);
      for (std::size_t i = 0; i < op.operands.size(); ++i) {
        if (i == 2 || i == 3) continue;  // scalars, counts
        const Buffer& b = plan_.buffer(op.operands[i].buffer);
        // The gradient waits for its step; the rest is state and masters.
        if (i == 1 || b.category == Category::optimizer_state || b.category == Category::master_parameter)
          bytes[unit] += round_up(Bytes{op.operands[i].bytes}, kAlignment).count();
      }
    }
    for (std::size_t u = 0; u < bytes.size(); ++u) {
      if (bytes[u] == 0 || bytes[u] > margin) continue;
      margin -= bytes[u];
      placed.resting[u].optimizer = Memory::device;
      if (gradients_follow_state(plan_.strategy)) placed.resting[u].gradients = Memory::device;
    }
  }

  const Plan& plan_;
  std::int64_t capacity_;
  Placed smallest_;
  std::vector<std::int64_t> live_;          ///< on the device, by op of the step
  std::int64_t live_elsewhere_ = 0;         ///< most of any other phase
  std::vector<std::vector<Visit>> visits_;  ///< by unit
  std::vector<std::int64_t> rest_bytes_;    ///< by unit: its parameters at rest
  std::vector<std::int64_t> held_bytes_;    ///< by unit: while it is used
};

/// What the device's arena takes of it.
std::int64_t arena_of(const Plan& plan, const Placed& placed) {
  Plan filled = plan;
  filled.placed = placed;
  filled = allocate(schedule(place(std::move(filled))));
  return filled.arena_bytes[static_cast<std::size_t>(Memory::device)].count();
}

/// Optimizer state of the first `count` units on the device, and gradients where it is.
Placed with_optimizer(const Plan& plan, Placed placed, std::size_t count) {
  for (std::size_t u = 0; u < count; ++u) {
    placed.resting[u].optimizer = Memory::device;
    if (gradients_follow_state(plan.strategy)) placed.resting[u].gradients = Memory::device;
  }
  return placed;
}

/// Optimizer state into the margin between an arena and the capacity: as many units as it holds.
Placed fill_margin(const Plan& plan, const Placed& placed, std::int64_t arena, std::int64_t capacity) {
  const double margin = plan.strategy.placement.margin_ratio * static_cast<double>(capacity - arena);
  const std::int64_t limit = arena + static_cast<std::int64_t>(margin);
  std::size_t fits = 0;
  std::size_t fails = plan.units.size() + 1;
  for (std::size_t count = plan.units.size(); fails - fits > 1; count = fits + (fails - fits) / 2)
    (arena_of(plan, with_optimizer(plan, placed, count)) <= limit ? fits : fails) = count;
  return with_optimizer(plan, placed, fits);
}

}  // namespace

Placed place_automatically(const Plan& plan) {
  const Placement& asked = plan.strategy.placement;
  const std::int64_t capacity = asked.device_capacity.count();
  const Room room(plan);
  // Packing and prefetch need a little more than what is live: give up what the arena exceeds, and try again.
  constexpr int kTries = 12;
  std::int64_t spare = 0;
  Placed placed = room.smallest();
  for (int i = 0; i < kTries; ++i) {
    const Placed filled = room.fill(spare);
    const std::int64_t over = arena_of(plan, filled) - capacity;
    if (over <= 0) {
      placed = filled;
      break;
    }
    if (filled == room.smallest()) break;
    spare += std::max(over, spare / 4);
  }
  const std::int64_t arena = arena_of(plan, placed);
  if (asked.optimizer || asked.non_model_peak || arena >= capacity) return placed;
  return fill_margin(plan, placed, arena, capacity);
}

}  // namespace shard::plan
