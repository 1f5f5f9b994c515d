// Pass allocate: lifetimes, one offset for every buffer over all phases, and edges where bytes are reused.
#include <algorithm>
#include <array>
#include <cassert>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/compile/dependencies.h"
#include "sim/compile/lifetimes.h"
#include "sim/compile/packings.h"
#include "sim/compile/passes/passes.h"
#include "sim/compile/stays.h"
#include "sim/ir/effects.h"

namespace shard::plan {
namespace {

/// What one memory's arena is packed from. What is born once and stays (parameters, optimizer state) counts as live
/// from the start of the run, so every offset holds in every step: it lies at the bottom, in order of birth, and what
/// comes and goes is packed above it. first_step touches nothing that steady_step does not, births apart, nor does
/// evaluate, where nothing lives longer either.
class ArenaUse {
 public:
  /// `base`: the end of what stays.
  ArenaUse(const Plan& plan, Memory memory, Bytes base)
      : plan_(plan), memory_(memory), item_of_(plan.buffers.size(), -1), base_(base) {
    for_each_phase([&](const PhaseOps& phase) {
      for (const Op& op : phase.ops)
        for (BufferId id : op.acquire)
          if (comes_and_goes(id) && item(id) < 0) add(id);
    });
  }

  [[nodiscard]] Memory memory() const { return memory_; }
  [[nodiscard]] const std::vector<Bytes>& sizes() const { return sizes_; }
  [[nodiscard]] const std::vector<BufferId>& buffers() const { return buffers_; }
  /// How much stays.
  [[nodiscard]] Bytes base() const { return base_; }

  [[nodiscard]] std::vector<PackEvent> events() const {
    std::vector<PackEvent> events;
    events.reserve(2 * sizes_.size());
    for_each_phase([&](const PhaseOps& phase) {
      for (const Op& op : phase.ops) {
        for (BufferId id : op.acquire)
          if (comes_and_goes(id)) events.push_back({.item = item(id), .acquire = true});
        for (BufferId id : op.release)
          if (comes_and_goes(id)) events.push_back({.item = item(id), .acquire = false});
      }
    });
    return events;
  }

  /// What an op beside the compute stream gives back would better stay alone until the next of its kind starts there
  /// (the next reduction, the next gather): whoever took it before would have to wait for the op. So there are two in
  /// turn, as other systems have two buckets.
  struct Apart {
    std::vector<PackEvent> events;
    std::vector<std::int32_t> after;     ///< per item
    std::vector<std::uint8_t> may_move;  ///< per item: lives in steps alone
  };
  [[nodiscard]] Apart apart() const {
    Apart result{.events = {},
                 .after = std::vector<std::int32_t>(sizes_.size(), -1),
                 .may_move = std::vector<std::uint8_t>(sizes_.size(), 0)};
    auto next = static_cast<std::int32_t>(sizes_.size());
    for (const PhaseOps& phase : plan_.phases)
      if (phase.phase == Phase::steady_step)
        for (const Op& op : phase.ops)
          for (BufferId id : op.acquire)
            if (comes_and_goes(id)) result.may_move[static_cast<std::size_t>(item(id))] = 1;
    for_each_phase([&](const PhaseOps& phase) {
      using Kind = std::pair<Stream, Part>;
      std::vector<std::pair<Kind, std::int32_t>> alone;  // items after their release
      const auto end_of = [&](auto is_over) {
        std::erase_if(alone, [&](const auto& entry) {
          if (!is_over(entry)) return false;
          result.events.push_back({.item = result.after[static_cast<std::size_t>(entry.second)], .acquire = false});
          return true;
        });
      };
      for (const Op& op : phase.ops) {
        const Kind kind{op.stream, op.part};
        if (!alone.empty()) end_of([&](const auto& entry) { return entry.first == kind; });
        for (BufferId id : op.acquire) {
          if (!comes_and_goes(id)) continue;
          if (phase.phase != Phase::steady_step) result.may_move[static_cast<std::size_t>(item(id))] = 0;
          if (!alone.empty()) end_of([&](const auto& entry) { return entry.second == item(id); });
          result.events.push_back({.item = item(id), .acquire = true});
        }
        for (BufferId id : op.release) {
          if (!comes_and_goes(id)) continue;
          result.events.push_back({.item = item(id), .acquire = false});
          if (op.stream == Stream::compute || phase.phase != Phase::steady_step) continue;
          std::int32_t& after = result.after[static_cast<std::size_t>(item(id))];
          if (after < 0) after = next++;
          result.events.push_back({.item = after, .acquire = true});
          alone.emplace_back(kind, item(id));
        }
      }
      end_of([](const auto&) { return true; });
    });
    return result;
  }

  /// The highest end in steps, of what comes and goes; offsets above the base.
  [[nodiscard]] Bytes step_extent(const std::vector<Bytes>& offsets) const {
    Bytes extent{0};
    for (const Op& op : plan_.find(Phase::steady_step)->ops)
      for (BufferId id : op.acquire)
        if (comes_and_goes(id))
          extent = std::max(extent, offsets[static_cast<std::size_t>(item(id))] + arena_bytes(plan_.buffer(id)));
    return extent;
  }

 private:
  [[nodiscard]] bool is_here(BufferId id) const { return plan_.buffer(id).memory == memory_; }
  [[nodiscard]] bool comes_and_goes(BufferId id) const { return is_here(id) && !plan_.buffer(id).persistent; }
  [[nodiscard]] std::int32_t item(BufferId id) const { return item_of_[static_cast<std::size_t>(id.value)]; }
  void add(BufferId id) {
    item_of_[static_cast<std::size_t>(id.value)] = static_cast<std::int32_t>(sizes_.size());
    sizes_.push_back(plan_.buffer(id).bytes);
    buffers_.push_back(id);
  }
  template <class F>
  void for_each_phase(const F& f) const {
    for (const PhaseOps& phase : plan_.phases)
      if (phase.phase != Phase::first_step && phase.phase != Phase::evaluate) f(phase);
  }

  const Plan& plan_;
  Memory memory_;
  std::vector<Bytes> sizes_;           // by item
  std::vector<BufferId> buffers_;      // by item
  std::vector<std::int32_t> item_of_;  // by buffer, -1: none
  Bytes base_{0};
};

/// `offsets`, per item, above what stays.
void place(Plan& plan, const ArenaUse& use, const std::vector<Bytes>& offsets) {
  Bytes extent = use.base();
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    Buffer& buffer = plan.buffer(use.buffers()[i]);
    buffer.offset = (use.base() + offsets[i]).count();
    extent = std::max(extent, Bytes{buffer.offset} + arena_bytes(buffer));
  }
  plan.arena_bytes[static_cast<std::size_t>(use.memory())] = extent;
}

using Edges = std::vector<List<OpId>>;

[[nodiscard]] Edges edges_of(const PhaseOps& phase) {
  Edges edges;
  edges.reserve(phase.ops.size());
  for (const Op& op : phase.ops) edges.push_back(op.dependencies);
  return edges;
}

/// Whether computation waits for more than `before`: for bytes that another stream still works on.
[[nodiscard]] bool waits_for_bytes(const PhaseOps& step, const Edges& before) {
  for (std::size_t i = 0; i < before.size(); ++i)
    if (step.ops[i].stream == Stream::compute && step.ops[i].dependencies != before[i]) return true;
  return false;
}

/// Where memory is not scarce, what works at the same time gets bytes of its own. No extent of a phase grows. Whether
/// anything moved.
bool move_apart(Plan& plan, const ArenaUse& use, Packings& known) {
  const ArenaUse::Apart apart = use.apart();
  if (std::ranges::all_of(apart.after, [](std::int32_t after) { return after < 0; })) return false;
  std::vector<Bytes> offsets;
  for (BufferId id : use.buffers()) offsets.push_back(Bytes{plan.buffer(id).offset} - use.base());
  const std::optional<std::vector<Bytes>>& moved = known.pack_apart({.items = use.sizes(),
                                                                     .events = apart.events,
                                                                     .after = apart.after,
                                                                     .may_move = apart.may_move,
                                                                     .offsets = offsets,
                                                                     .limit = use.step_extent(offsets),
                                                                     .alignment = kAlignment});
  if (moved) place(plan, use, *moved);
  return moved.has_value();
}

/// Of each memory that some buffer is in. Valid while the plan's ops and buffers stay, wherever the buffers lie.
[[nodiscard]] std::vector<ArenaUse> arenas_of(const Plan& plan, const Bases& bases) {
  std::array<bool, kMemoryCount> used{};
  for (const Buffer& buffer : plan.buffers) used[static_cast<std::size_t>(buffer.memory)] = true;
  std::vector<ArenaUse> arenas;
  for (int m = 0; m < kMemoryCount; ++m)
    if (used[static_cast<std::size_t>(m)])
      arenas.emplace_back(plan, static_cast<Memory>(m), bases[static_cast<std::size_t>(m)]);
  return arenas;
}

/// Edges where bytes are reused, once what works at the same time in a steady step is apart.
void order_phases(Plan& plan, std::span<const ArenaUse> arenas, Packings& known) {
  PhaseOps& step = *plan.find(Phase::steady_step);
  ArenaPlaces places(plan);
  Edges edges = edges_of(step);
  order_reuse(plan, places, step);
  bool moved = false;
  if (waits_for_bytes(step, edges))
    for (const ArenaUse& use : arenas) moved = move_apart(plan, use, known) || moved;
  if (moved) {
    places = ArenaPlaces(plan);
    for (std::size_t i = 0; i < edges.size(); ++i) step.ops[i].dependencies = edges[i];
    order_reuse(plan, places, step);
  }
  for (PhaseOps& phase : plan.phases)
    if (phase.phase != Phase::steady_step) order_reuse(plan, places, phase);
}

/// The buffers of a plan in the order in which they are first taken, of one name and size those behind each other.
class ByName {
 public:
  explicit ByName(const Plan& plan) {
    std::vector<bool> seen(plan.buffers.size(), false);
    for (const PhaseOps& phase : plan.phases)
      for (const Op& op : phase.ops)
        for (BufferId id : op.acquire) {
          if (seen[static_cast<std::size_t>(id.value)]) continue;
          seen[static_cast<std::size_t>(id.value)] = true;
          const Buffer& b = plan.buffer(id);
          buffers_[{std::string(b.name), b.bytes.count(), b.memory}].push_back(id);
        }
  }
  using Buffers = std::map<std::tuple<std::string, std::int64_t, Memory>, std::vector<BufferId>>;
  [[nodiscard]] const Buffers& buffers() const { return buffers_; }

 private:
  Buffers buffers_;
};

/// Offsets and extents of the folded plan, in which as much lives together. False where the two have not the same
/// buffers: where fetches run ahead of whole micro-steps.
bool place_as_folded(Plan& plan, const Plan& folded) {
  const ByName own(plan), other(folded);
  const auto as_many = [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.size() == b.second.size();
  };
  if (!std::ranges::equal(own.buffers(), other.buffers(), as_many)) return false;
  for (auto a = own.buffers().begin(), b = other.buffers().begin(); a != own.buffers().end(); ++a, ++b)
    for (std::size_t i = 0; i < a->second.size(); ++i)
      plan.buffer(a->second[i]).offset = folded.buffer(b->second[i]).offset;
  std::ranges::copy(folded.arena_bytes, std::begin(plan.arena_bytes));
  const ArenaPlaces places(plan);
  for (PhaseOps& phase : plan.phases) order_reuse(plan, places, phase);
  return true;
}

}  // namespace

Draft allocate(Draft plan) {
  Packings known;
  return allocate(std::move(plan), known);
}

Draft allocate(Draft plan, Packings& known) {
  find_lifetimes(plan);
  if (plan.folded != nullptr && place_as_folded(plan, *plan.folded)) return plan;
  const Bases bases = lay_what_stays(plan, [&](BufferId id, Bytes begin) { plan.buffer(id).offset = begin.count(); });
  const std::vector<ArenaUse> arenas = arenas_of(plan, bases);
  for (const ArenaUse& use : arenas) place(plan, use, known.pack(use.sizes(), use.events()));
  order_phases(plan, arenas, known);
  return plan;
}

}  // namespace shard::plan
