// Fills what the smallest plan leaves free.
#include "sim/compile/placement/automatic.h"

#include <algorithm>
#include <limits>
#include <map>

#include "sim/compile/lifetimes.h"
#include "sim/compile/passes/fetches.h"
#include "sim/compile/placement/belady.h"
#include "sim/compile/placement/shares.h"
#include "sim/ir/effects.h"

namespace shard::plan {

bool is_model_data(Category category) {
  switch (category) {
    case Category::parameter:
    case Category::gathered:
    case Category::gradient:
    case Category::master_parameter:
    case Category::optimizer_state: return true;
    case Category::activation:
    case Category::workspace:
    case Category::communication:
    case Category::input:
    case Category::not_known: return false;
  }
  return false;
}

namespace {

/// A unit on the device, from the first of the ops that bring it to its last use.
struct Visit {
  std::size_t begin = 0;
  std::size_t end = 0;
};

bool gradients_follow_state(const Strategy& s) {
  return !s.placement.gradients && !s.reuses_shards();
}

/// What one kind of rank has of the device when nothing rests there, and what units would take of it.
struct RankRoom {
  std::vector<std::int64_t> live;        ///< by op of the step
  std::int64_t live_elsewhere = 0;       ///< most of any other phase
  std::vector<std::int64_t> rest_bytes;  ///< by unit: its parameters at rest
  std::vector<std::int64_t> held_bytes;  ///< by unit: while it is used
};
/// What is left of it, by op of the step and in any other phase.
struct Free {
  std::vector<std::int64_t> moments;
  std::int64_t elsewhere = 0;
};

class Room {
 public:
  Room(std::span<const Draft> ranks, const RestOfPasses& rest)
      : ranks_(ranks), plan_(ranks.front()), capacity_(plan_.strategy.placement.device_capacity.count()) {
    smallest_.resting = rest_by_share(plan_.strategy, plan_.flats, plan_.units);  // automatic: the host
    for (const Draft& rank : ranks) {
      Draft small = rank;
      small.placed = smallest_;
      small = rest(std::move(small), "place");
      find_lifetimes(small);
      rooms_.push_back(measure(small));
      if (visits_.empty()) find_visits(small);
    }
  }

  [[nodiscard]] const Placed& smallest() const { return smallest_; }

  /// With `spare` bytes of the capacity left alone. Optimizer state only where the room is measured: else the arena
  /// itself says how much there is for it.
  [[nodiscard]] Placed fill(std::int64_t spare) const {
    Placed placed = smallest_;
    std::vector<Free> free;
    for (const RankRoom& room : rooms_) {
      Free& left = free.emplace_back(Free{.moments = {}, .elsewhere = capacity_ - spare - room.live_elsewhere});
      for (std::int64_t live : room.live) left.moments.push_back(capacity_ - spare - live);
    }
    if (!parameters_are_placed()) rest_parameters(placed, free);
    hold_units(placed, free);
    if (plan_.strategy.placement.non_model_peak && !plan_.strategy.placement.optimizer) rest_optimizer(placed, free);
    return placed;
  }

 private:
  /// By hand: where gradients take their place, also by what is said of those.
  [[nodiscard]] bool parameters_are_placed() const {
    const Strategy& s = plan_.strategy;
    return s.placement.parameters || (s.reuses_shards() && s.placement.gradients);
  }

  [[nodiscard]] static RankRoom measure(const Plan& small) {
    RankRoom room;
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
      const auto change = [&](List<BufferId> ids, int sign) {
        for (BufferId id : ids)
          if (const Buffer& b = small.buffer(id); !b.persistent && counts(b)) live += sign * arena_bytes(b).count();
      };
      for (const Op& op : phase.ops) {
        change(op.acquire, 1);
        // All ranks have the same moments: absent ops are still there.
        if (phase.phase == Phase::steady_step)
          room.live.push_back(live);
        else
          room.live_elsewhere = std::max(room.live_elsewhere, live);
        change(op.release, -1);
      }
    }
    for (const Unit& unit : small.units) {
      std::int64_t& rest = room.rest_bytes.emplace_back(0);
      std::int64_t& held = room.held_bytes.emplace_back(0);
      for (std::int32_t f : unit.flats) {
        const auto flat = static_cast<std::size_t>(f);
        if (small.flat_parameters[flat].valid()) rest += arena_bytes(small.buffer(small.flat_parameters[flat])).count();
        if (flat < small.flat_gathered.size() && small.flat_gathered[flat].valid())
          held += arena_bytes(small.buffer(small.flat_gathered[flat])).count();
      }
    }
    return room;
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

  void rest_parameters(Placed& placed, std::vector<Free>& free) const {
    std::vector<std::size_t> order;
    for (std::size_t u = 0; u < visits_.size(); ++u)
      if (!visits_[u].empty()) order.push_back(u);
    const auto distance = [&](std::size_t u) {
      return rooms_.front().live.size() - visits_[u].back().end + visits_[u].front().begin;
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return distance(a) < distance(b); });
    for (std::size_t u : order) {
      std::vector<Free> left = free;
      bool fits = true;
      for (std::size_t r = 0; r < left.size() && fits; ++r) fits = rests(left[r], rooms_[r], u);
      if (!fits) continue;
      free = std::move(left);
      placed.resting[u].parameters = Memory::device;
      if (plan_.strategy.reuses_shards()) placed.resting[u].gradients = Memory::device;
    }
  }

  /// Takes what a unit's parameters need at rest; whether that was there.
  [[nodiscard]] bool rests(Free& left, const RankRoom& room, std::size_t unit) const {
    for (std::int64_t& bytes : left.moments) bytes -= room.rest_bytes[unit];
    // What rests is not brought as well.
    const bool gathered = plan_.strategy.effective_stage() == 3;
    for (const Visit& visit : visits_[unit])
      for (std::size_t t = visit.begin; !gathered && t < visit.end; ++t) left.moments[t] += room.held_bytes[unit];
    left.elsewhere -= room.rest_bytes[unit];
    return left.elsewhere >= 0 && *std::ranges::min_element(left.moments) >= 0;
  }

  void hold_units(Placed& placed, std::vector<Free>& free) const {
    const bool gathered = plan_.strategy.effective_stage() == 3;
    std::vector<Gap> gaps;
    std::vector<std::pair<std::size_t, std::size_t>> fetch_of;  // unit, its fetch at the end of the gap
    placed.held.resize(visits_.size());
    for (std::size_t u = 0; u < visits_.size(); ++u) {
      placed.held[u].assign(visits_[u].size(), false);
      if (!gathered && placed.resting[u].parameters == Memory::device) continue;
      for (std::size_t k = 1; k < visits_[u].size(); ++k) {
        gaps.push_back({.begin = visits_[u][k - 1].end, .end = visits_[u][k].begin, .bytes = most_held(u)});
        fetch_of.emplace_back(u, k);
      }
    }
    std::vector<std::int64_t> least = free.front().moments;
    for (const Free& rank : free)
      for (std::size_t t = 0; t < least.size(); ++t) least[t] = std::min(least[t], rank.moments[t]);
    const std::vector<std::int64_t> before = least;
    const std::vector<bool> kept = keep_nearest(gaps, least);
    for (Free& rank : free)
      for (std::size_t t = 0; t < least.size(); ++t) rank.moments[t] -= before[t] - least[t];
    for (std::size_t g = 0; g < gaps.size(); ++g) placed.held[fetch_of[g].first][fetch_of[g].second] = kept[g];
  }

  [[nodiscard]] std::int64_t most_held(std::size_t unit) const {
    std::int64_t most = 0;
    for (const RankRoom& room : rooms_) most = std::max(most, room.held_bytes[unit]);
    return most;
  }

  /// By unit, what its optimizer state takes of a rank.
  [[nodiscard]] static std::vector<std::int64_t> optimizer_bytes(const Plan& plan) {
    std::vector<std::int64_t> bytes(plan.units.size(), 0);
    for (const Op& op : plan.find(Phase::steady_step)->ops) {
      const auto* step = std::get_if<OptimizerStep>(&op.action);
      if (step == nullptr) continue;
      const auto unit = static_cast<std::size_t>(plan.flats[static_cast<std::size_t>(step->flat)].unit.value);
      for (std::size_t i = 0; i < op.operands.size(); ++i) {
        if (i == 2 || i == 3) continue;  // scalars, counts
        const Buffer& b = plan.buffer(op.operands[i].buffer);
        // The gradient waits for its step; the rest is state and masters.
        if (i == 1 || b.category == Category::optimizer_state || b.category == Category::master_parameter)
          bytes[unit] += round_up(Bytes{op.operands[i].bytes}, kAlignment).count();
      }
    }
    return bytes;
  }

  void rest_optimizer(Placed& placed, const std::vector<Free>& free) const {
    std::vector<std::vector<std::int64_t>> bytes;
    std::vector<std::int64_t> margins;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      bytes.push_back(optimizer_bytes(ranks_[r]));
      const std::int64_t margin = std::min(free[r].elsewhere, *std::ranges::min_element(free[r].moments));
      margins.push_back(static_cast<std::int64_t>(plan_.strategy.placement.margin_ratio * static_cast<double>(margin)));
    }
    for (std::size_t u = 0; u < plan_.units.size(); ++u) {
      bool some = false;
      bool fits = true;
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        some = some || bytes[r][u] > 0;
        fits = fits && bytes[r][u] <= margins[r];
      }
      if (!some || !fits) continue;
      for (std::size_t r = 0; r < ranks_.size(); ++r) margins[r] -= bytes[r][u];
      placed.resting[u].optimizer = Memory::device;
      if (gradients_follow_state(plan_.strategy)) placed.resting[u].gradients = Memory::device;
    }
  }

  std::span<const Draft> ranks_;
  const Plan& plan_;  ///< rank 0's, for what is the same on all
  std::int64_t capacity_;
  Placed smallest_;
  std::vector<RankRoom> rooms_;             ///< by rank
  std::vector<std::vector<Visit>> visits_;  ///< by unit
};

/// Optimizer state of the first `count` units on the device, and gradients where it is.
Placed with_optimizer(const Plan& plan, Placed placed, std::size_t count) {
  for (std::size_t u = 0; u < count; ++u) {
    placed.resting[u].optimizer = Memory::device;
    if (gradients_follow_state(plan.strategy)) placed.resting[u].gradients = Memory::device;
  }
  return placed;
}

/// What devices' arenas take of placements that are tried.
class Trials {
 public:
  Trials(std::span<const Draft> ranks, const RestOfPasses& rest) : ranks_(ranks), rest_(rest) {}

  [[nodiscard]] std::int64_t arena(std::size_t rank, const Placed& placed) const {
    Draft filled = ranks_[rank];
    filled.placed = placed;
    filled = rest_(std::move(filled), "allocate");
    return filled.arena_bytes[static_cast<std::size_t>(Memory::device)].count();
  }
  /// By rank.
  [[nodiscard]] std::vector<std::int64_t> arenas(const Placed& placed) const {
    std::vector<std::int64_t> arenas;
    for (std::size_t r = 0; r < ranks_.size(); ++r) arenas.push_back(arena(r, placed));
    return arenas;
  }

 private:
  std::span<const Draft> ranks_;
  const RestOfPasses& rest_;
};

/// Optimizer state into the margins between arenas and the capacity: as many units as all ranks hold.
Placed fill_margin(const Plan& plan, const Trials& trials, const Placed& placed,
                   const std::vector<std::int64_t>& arenas) {
  const std::int64_t capacity = plan.strategy.placement.device_capacity.count();
  const auto within = [&](std::size_t count) {
    const Placed filled = with_optimizer(plan, placed, count);
    for (std::size_t r = 0; r < arenas.size(); ++r) {
      const double margin = plan.strategy.placement.margin_ratio * static_cast<double>(capacity - arenas[r]);
      if (trials.arena(r, filled) > arenas[r] + static_cast<std::int64_t>(margin)) return false;
    }
    return true;
  };
  std::size_t fits = 0;
  std::size_t fails = plan.units.size() + 1;
  for (std::size_t count = plan.units.size(); fails - fits > 1; count = fits + (fails - fits) / 2)
    (within(count) ? fits : fails) = count;
  return with_optimizer(plan, placed, fits);
}

}  // namespace

Placed place_automatically(std::span<const Draft> ranks, const RestOfPasses& rest) {
  const Placement& asked = ranks.front().strategy.placement;
  const std::int64_t capacity = asked.device_capacity.count();
  const Room room(ranks, rest);
  const Trials trials(ranks, rest);
  // Packing and prefetch need a little more than what is live: give up what the arena exceeds, and try again.
  constexpr int kTries = 12;
  std::int64_t spare = 0;
  Placed placed = room.smallest();
  Placed tried;  // last, and what came of it: a little less room often is the same placement
  std::vector<std::int64_t> arenas;
  bool fits = false;
  for (int i = 0; i < kTries && !fits; ++i) {
    Placed filled = room.fill(spare);
    if (arenas.empty() || filled != tried) arenas = trials.arenas(filled);
    tried = std::move(filled);
    const std::int64_t over = std::ranges::max(arenas) - capacity;
    fits = over <= 0;
    if (fits) placed = tried;
    if (tried == placed) break;
    spare += std::max(over, spare / 4);
  }
  if (tried != placed) arenas = trials.arenas(placed);
  if (asked.optimizer || asked.non_model_peak || std::ranges::max(arenas) >= capacity) return placed;
  return fill_margin(ranks.front(), trials, placed, arenas);
}

}  // namespace shard::plan
