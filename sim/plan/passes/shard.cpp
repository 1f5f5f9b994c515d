// Pass shard: parameters and gradients into units; gathers before use and reductions after the last contribution.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "sim/plan/passes/collectives.h"
#include "sim/plan/passes/fetches.h"
#include "sim/plan/passes/operands.h"
#include "sim/plan/passes/passes.h"
#include "sim/plan/tree.h"
#include "sim/plan/units.h"

namespace shard::plan {
namespace {

/// Where a parameter, or a gradient slot of it, lives inside a flat.
struct Place {
  std::int32_t flat = -1;
  Elems offset{};
};

class Sharder {
 public:
  explicit Sharder(Plan plan)
      : plan_(std::move(plan)),
        stage_(plan_.strategy.effective_stage()),
        shards_(plan_.strategy.shard_degree()),
        scattered_(plan_.strategy.reduces_every_micro_step()),
        has_leaves_(plan_.strategy.has_leaves()),
        widens_(plan_.strategy.reduction() != plan_.strategy.storage()),
        tree_(make_tree(plan_.strategy.accumulation(), plan_.strategy.reproducible, !has_leaves_)) {}

  Plan run() {
    std::tie(plan_.flats, plan_.units) = make_units(*plan_.model, plan_.strategy);
    parameter_place_.resize(plan_.buffers.size());
    gradient_place_.resize(plan_.buffers.size());
    slot_of_.resize(plan_.buffers.size());
    make_buffers();
    std::vector<Op> ops = rewrite(std::move(plan_.find(Phase::steady_step)->ops));
    ops = with_reductions(std::move(ops));
    if (stage_ == 3) ops = with_gathers(std::move(ops));
    plan_.find(Phase::steady_step)->ops = std::move(ops);
    return std::move(plan_);
  }

 private:
  [[nodiscard]] static std::size_t index_of(BufferId id) { return static_cast<std::size_t>(id.value); }
  [[nodiscard]] std::string name_of(const Flat& f) const { return flat_name(plan_, f); }

  /// A buffer for all of a flat, or for a shard of it.
  BufferId add(const Flat& flat, bool whole, std::string name, Category category, Dtype dtype, bool persistent) {
    return plan_.add_buffer({.name = std::move(name),
                             .category = category,
                             .dtype = dtype,
                             .bytes = bytes_of(dtype, whole ? flat.elems : flat.shard(shards_)),
                             .persistent = persistent,
                             .unit = flat.unit});
  }

  void make_buffers() {
    for (std::size_t i = 0; i < plan_.flats.size(); ++i) {
      const Flat& flat = plan_.flats[i];
      const auto index = static_cast<std::int32_t>(i);
      const std::string name = name_of(flat);
      const std::string sharded = stage_ == 3 ? "parameter shard " : "parameters ";
      for (const Flat::Item& item : flat.items) {
        const Place place{index, item.offset};
        parameter_place_[static_cast<std::size_t>(item.param.value)] = place;
        if (flat.frozen) continue;
        for (const std::vector<BufferId>& slot : plan_.gradient_slots)
          gradient_place_[index_of(slot[static_cast<std::size_t>(item.param.value)])] = place;
      }
      plan_.flat_parameters.push_back(
          add(flat, stage_ != 3, sharded + name, Category::parameter, plan_.strategy.storage(), true));
      if (stage_ == 3)
        plan_.flat_gathered.push_back(
            add(flat, true, "gathered " + name, Category::gathered, plan_.strategy.storage(), false));
      if (flat.frozen) {
        leaf_.emplace_back();
        wide_leaf_.emplace_back();
        slots_.emplace_back();
        plan_.flat_gradients.emplace_back();
        plan_.flat_gradient_slots.emplace_back();
        continue;
      }
      const Dtype reduced = plan_.strategy.reduction();
      if (has_leaves_)
        leaf_.push_back(add(flat, true, "gradients " + name, Category::gradient, plan_.strategy.storage(), false));
      if (scattered_ && widens_)
        wide_leaf_.push_back(add(flat, true, "gradients fp32 " + name, Category::gradient, reduced, false));
      std::vector<BufferId>& slots = slots_.emplace_back();
      for (std::int32_t k = 0; k < tree_.slots; ++k)
        slots.push_back(add(flat, !scattered_,
                            (scattered_    ? "gradient shard "
                             : has_leaves_ ? "summed gradients "
                                           : "gradients ") +
                                name + (k > 0 ? " @" + std::to_string(k) : ""),
                            Category::gradient, reduced, false));
      plan_.flat_gradients.push_back(slots[static_cast<std::size_t>(tree_.root)]);
      plan_.flat_gradient_slots.push_back(slots);
    }
    for (std::size_t k = 0; k < plan_.gradient_slots.size(); ++k)
      for (BufferId id : plan_.gradient_slots[k])
        if (id.valid()) slot_of_[index_of(id)] = k;
  }

  /// Operands from parameters to flats; the parameter-wise tree nodes go, unit-wise ones come with the reductions.
  std::vector<Op> rewrite(std::vector<Op> ops) {
    std::vector<Op> result;
    result.reserve(ops.size());
    std::set<std::int32_t> begun;
    std::int32_t micro_step = -1;
    for (Op& op : ops) {
      if (std::holds_alternative<Accumulate>(op.action)) continue;
      if (op.micro_step != micro_step) {
        micro_step = op.micro_step;
        begun.clear();
      }
      for (Operand& o : op.operands) {
        const std::size_t b = index_of(o.buffer);
        if (const Place& parameter = parameter_place_[b]; parameter.flat >= 0) {
          const auto flat = static_cast<std::size_t>(parameter.flat);
          o.buffer = stage_ == 3 ? plan_.flat_gathered[flat] : plan_.flat_parameters[flat];
          o.offset += parameter.offset.count() * element_bytes(plan_, o.buffer);
        } else if (const Place& gradient = gradient_place_[b]; gradient.flat >= 0) {
          const auto flat = static_cast<std::size_t>(gradient.flat);
          o.buffer = has_leaves_ ? leaf_[flat] : slots_[flat][slot_of_[b]];
          o.offset += gradient.offset.count() * element_bytes(plan_, o.buffer);
          if (o.access == Access::write && begun.insert(o.buffer.value).second) o.fresh = true;
          flat_written_by_[{micro_step, gradient.flat}] = result.size();
        }
      }
      result.push_back(std::move(op));
    }
    return result;
  }

  void merge(std::vector<Op>& ops, const Unit& unit, UnitId id, std::int32_t micro_step) {
    for (const auto& [dst, src] : tree_.steps[static_cast<std::size_t>(micro_step)].merges)
      for (std::int32_t f : unit.flats) {
        const std::vector<BufferId>& slots = slots_[static_cast<std::size_t>(f)];
        ops.push_back({.name = "add gradient " + name_of(plan_.flats[static_cast<std::size_t>(f)]),
                       .part = Part::reduce,
                       .micro_step = micro_step,
                       .action = Accumulate{.unit = id},
                       .operands = {updates(plan_, slots[static_cast<std::size_t>(dst)]),
                                    reads(plan_, slots[static_cast<std::size_t>(src)])}});
      }
  }

  /// Leaves to what gradients are summed as: into the wide leaf, or into their slot where nothing is scattered.
  void store_leaves(std::vector<Op>& ops, const Unit& unit, std::int32_t micro_step) {
    const auto slot = static_cast<std::size_t>(tree_.steps[static_cast<std::size_t>(micro_step)].slot);
    for (std::int32_t f : unit.flats) {
      const auto index = static_cast<std::size_t>(f);
      ops.push_back({.name = "widen gradient " + name_of(plan_.flats[index]),
                     .part = Part::reduce,
                     .micro_step = micro_step,
                     .action = Copy{},
                     .operands = {reads(plan_, leaf_[index]),
                                  writes(plan_, scattered_ ? wide_leaf_[index] : slots_[index][slot])}});
    }
  }

  /// Hybrid sharding: what one shard group has summed, over the replicas.
  void reduce_replicas(std::vector<Op>& ops, const Unit& unit, UnitId id, std::int32_t micro_step) {
    std::vector<FlatPart> parts;
    for (std::int32_t f : unit.flats) {
      const BufferId sum = plan_.flat_gradients[static_cast<std::size_t>(f)];
      parts.push_back(
          {.flat = f, .full = scattered_ ? updates(plan_, sum) : own_part(plan_, f, sum, Access::update), .shard = {}});
    }
    Op op = make_collective(plan_, Collective::all_reduce, Group::replica, "reduce replicas of " + unit.name,
                            Part::reduce, id, parts);
    op.micro_step = micro_step;
    ops.push_back(std::move(op));
  }

  void reduce(std::vector<Op>& ops, const Unit& unit, UnitId id, std::int32_t micro_step) {
    std::vector<FlatPart> parts;
    const bool all = stage_ == 0 || (stage_ == 1 && plan_.strategy.partition == Partition::parameter);
    for (std::int32_t f : unit.flats) {
      const auto index = static_cast<std::size_t>(f);
      FlatPart part{.flat = f, .full = {}, .shard = {}};
      if (all) {
        part.full = updates(plan_, plan_.flat_gradients[index]);
      } else if (stage_ == 1) {
        part.full = updates(plan_, plan_.flat_gradients[index]);
        part.shard = own_part(plan_, f, plan_.flat_gradients[index], Access::write);
      } else {
        const std::int32_t slot = tree_.steps[static_cast<std::size_t>(micro_step)].slot;
        part.full = reads(plan_, widens_ ? wide_leaf_[index] : leaf_[index]);
        part.shard = writes(plan_, slots_[index][static_cast<std::size_t>(slot)]);
      }
      parts.push_back(part);
    }
    Op op = make_collective(plan_, all ? Collective::all_reduce : Collective::reduce_scatter,
                            all ? Group::data : Group::shard, "reduce " + unit.name, Part::reduce, id, parts);
    op.micro_step = micro_step;
    ops.push_back(std::move(op));
  }

  /// After the last contribution to a unit's gradient in a micro-step: tree nodes and the reduction, per stage.
  std::vector<Op> with_reductions(std::vector<Op> ops) {
    std::map<std::size_t, std::vector<std::pair<std::int32_t, UnitId>>> complete;  // op index -> units
    for (std::int32_t j = 0; j < static_cast<std::int32_t>(tree_.steps.size()); ++j)
      for (std::size_t u = 0; u < plan_.units.size(); ++u) {
        std::size_t last = 0;
        const Unit trained = trained_part(plan_, plan_.units[u]);
        if (trained.flats.empty()) continue;
        for (std::int32_t f : trained.flats) last = std::max(last, flat_written_by_.at({j, f}));
        complete[last].emplace_back(j, UnitId{static_cast<std::int32_t>(u)});
      }
    std::vector<Op> result;
    result.reserve(ops.size() + complete.size());
    const auto final_step = static_cast<std::int32_t>(tree_.steps.size()) - 1;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      result.push_back(std::move(ops[i]));
      const auto it = complete.find(i);
      if (it == complete.end()) continue;
      for (const auto& [j, id] : it->second) {
        const Unit unit = trained_part(plan_, plan_.units[static_cast<std::size_t>(id.value)]);
        if (widens_) store_leaves(result, unit, j);
        if (scattered_) reduce(result, unit, id, j);
        merge(result, unit, id, j);
        if (j != final_step) continue;
        if (!scattered_ && plan_.strategy.data_parallel() > 1) reduce(result, unit, id, j);
        if (stage_ > 0 && plan_.strategy.replicas() > 1) reduce_replicas(result, unit, id, j);
      }
    }
    return result;
  }

  std::vector<Op> with_gathers(std::vector<Op> ops) {
    std::vector<UnitId> unit_of(plan_.buffers.size());
    for (std::size_t f = 0; f < plan_.flats.size(); ++f)
      unit_of[index_of(plan_.flat_gathered[f])] = plan_.flats[f].unit;
    const auto gathers = fetch_points(plan_, ops, unit_of);
    std::vector<Op> result;
    result.reserve(ops.size() + gathers.size());
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (const auto it = gathers.find(i); it != gathers.end())
        for (UnitId id : it->second) result.push_back(gather(id, ops[i].micro_step));
      result.push_back(std::move(ops[i]));
    }
    return result;
  }

  Op gather(UnitId id, std::int32_t micro_step) {
    const Unit& unit = plan_.units[static_cast<std::size_t>(id.value)];
    std::vector<FlatPart> parts;
    for (std::int32_t f : unit.flats) {
      const auto index = static_cast<std::size_t>(f);
      parts.push_back({.flat = f,
                       .full = writes(plan_, plan_.flat_gathered[index]),
                       .shard = reads(plan_, plan_.flat_parameters[index])});
    }
    Op op =
        make_collective(plan_, Collective::all_gather, Group::shard, "gather " + unit.name, Part::gather, id, parts);
    op.micro_step = micro_step;
    return op;
  }

  Plan plan_;
  std::int32_t stage_;
  std::int32_t shards_;
  bool scattered_;   ///< every micro-step's gradient is reduced into shards
  bool has_leaves_;  ///< a micro-step's gradient has a buffer apart from the tree's slots
  bool widens_;      ///< gradients are summed in a wider type than they are made in
  Tree tree_;
  std::vector<Place> parameter_place_;  ///< by buffer of the passes before
  std::vector<Place> gradient_place_;   ///< by buffer of the passes before, of any slot
  std::vector<std::size_t> slot_of_;    ///< by gradient buffer
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> flat_written_by_;  ///< (micro-step, flat) -> last op
  std::vector<BufferId> leaf_;                ///< by flat, where there are leaves: full gradient of one micro-batch
  std::vector<BufferId> wide_leaf_;           ///< by flat, stages 2 and 3: the same in the type of the reduction
  std::vector<std::vector<BufferId>> slots_;  ///< by flat: tree slots
};

}  // namespace

Plan shard(Plan plan) {
  return Sharder(std::move(plan)).run();
}

}  // namespace shard::plan
