// Pass shard: parameters and gradients into units; gathers before use and reductions after the last contribution.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "sim/compile/parameter_units.h"
#include "sim/compile/passes/bucket.h"
#include "sim/compile/passes/collectives.h"
#include "sim/compile/passes/fetches.h"
#include "sim/compile/passes/operands.h"
#include "sim/compile/passes/passes.h"
#include "sim/compile/tree.h"

namespace shard::plan {
namespace {

/// Where a parameter, or a gradient slot of it, lives inside a flat.
struct Place {
  std::int32_t flat = -1;
  Elems offset{};
};

class Sharder {
 public:
  explicit Sharder(Draft plan)
      : plan_(std::move(plan)),
        stage_(plan_.strategy.effective_stage()),
        shards_(plan_.strategy.cuts()),
        own_(position(plan_.topology, plan_.rank).shard),
        scattered_(plan_.strategy.reduces_every_micro_step()),
        has_leaves_(plan_.strategy.has_leaves()),
        widens_(plan_.strategy.reduction() != plan_.strategy.storage()),
        tree_(plan_.tree) {}

  Draft run() {
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
  BufferId add(const Flat& flat, bool whole, std::string_view name, Category category, Dtype dtype, bool persistent) {
    return plan_.add_buffer({.name = name,
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
      for (const Flat::Item& item : flat.items) {
        const Place place{index, item.offset};
        parameter_place_[static_cast<std::size_t>(item.param.value)] = place;
        if (flat.frozen) continue;
        for (const std::vector<BufferId>& slot : plan_.gradient_slots)
          gradient_place_[index_of(slot[static_cast<std::size_t>(item.param.value)])] = place;
      }
      make_parameters(flat, name);
      if (!flat.frozen) {
        make_gradients(flat, name);
        continue;
      }
      leaf_.emplace_back();
      wide_leaf_.emplace_back();
      slots_.emplace_back();
      plan_.flat_gradients.emplace_back();
      plan_.flat_gradient_slots.emplace_back();
    }
    for (std::size_t k = 0; k < plan_.gradient_slots.size(); ++k)
      for (BufferId id : plan_.gradient_slots[k])
        if (id.valid()) slot_of_[index_of(id)] = k;
  }

  [[nodiscard]] bool is_owner(const Flat& flat) const { return flat.owner == own_; }
  /// Another rank holds all of the flat that rests anywhere.
  [[nodiscard]] bool is_foreign(const Flat& flat) const { return flat.owner >= 0 && !is_owner(flat); }

  void make_parameters(const Flat& flat, const std::string& name) {
    const Dtype stored = plan_.strategy.storage();
    if (stage_ != 3) {
      plan_.flat_parameters.push_back(
          add(flat, true, plan_.text("parameters ", name), Category::parameter, stored, true));
      return;
    }
    plan_.flat_parameters.push_back(
        is_foreign(flat) ? BufferId{}
                         : add(flat, false, plan_.text(is_owner(flat) ? "parameters " : "parameter shard ", name),
                               Category::parameter, stored, true));
    // What an owner sends is what it reads itself.
    plan_.flat_gathered.push_back(
        is_owner(flat) ? plan_.flat_parameters.back()
                       : add(flat, true, plan_.text("gathered ", name), Category::gathered, stored, false));
  }

  void make_gradients(const Flat& flat, const std::string& name) {
    const Dtype stored = plan_.strategy.storage();
    const Dtype reduced = plan_.strategy.reduction();
    const bool owner = scattered_ && is_owner(flat);
    // Reductions to an owner are in place: its leaves are made, or widened, where their sum is wanted.
    const bool in_slot = owner && !plan_.strategy.reuses_shards();
    leaf_.push_back(has_leaves_ && (!in_slot || widens_)
                        ? add(flat, true, plan_.text("gradients ", name), Category::gradient, stored, false)
                        : BufferId{});
    wide_leaf_.push_back(scattered_ && widens_ && !in_slot
                             ? add(flat, true, plan_.text("gradients fp32 ", name), Category::gradient, reduced, false)
                             : BufferId{});
    std::vector<BufferId>& slots = slots_.emplace_back();
    if (plan_.strategy.reuses_shards()) {
      slots.push_back(plan_.flat_parameters.back());
    } else if (!scattered_ || !is_foreign(flat)) {
      const char* what = scattered_ && !owner ? "gradient shard " : has_leaves_ ? "summed gradients " : "gradients ";
      for (std::int32_t k = 0; k < tree_.slots; ++k)
        slots.push_back(add(flat, !scattered_,
                            k > 0 ? plan_.text(what, name, " @", std::to_string(k)) : plan_.text(what, name),
                            Category::gradient, reduced, false));
    }
    plan_.flat_gradients.push_back(slots.empty() ? BufferId{} : slots[static_cast<std::size_t>(tree_.root)]);
    plan_.flat_gradient_slots.push_back(slots);
  }

  /// Where the gradient of a flat's slot is made in a micro-step.
  [[nodiscard]] BufferId leaf(std::size_t flat, std::size_t slot, std::int32_t micro_step) const {
    if (leaf_[flat].valid()) return leaf_[flat];
    if (has_leaves_) slot = static_cast<std::size_t>(tree_.steps[static_cast<std::size_t>(micro_step)].slot);
    return slots_[flat][slot];
  }
  /// What a flat's leaves are widened into, or else summed over ranks from.
  [[nodiscard]] BufferId summand(std::size_t flat, std::int32_t micro_step) const {
    if (widens_ && wide_leaf_[flat].valid()) return wide_leaf_[flat];
    if (!widens_ && leaf_[flat].valid()) return leaf_[flat];
    return slots_[flat][static_cast<std::size_t>(tree_.steps[static_cast<std::size_t>(micro_step)].slot)];
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
      for (Operand& o : plan_.own_operands(op)) {
        const std::size_t b = index_of(o.buffer);
        if (const Place& parameter = parameter_place_[b]; parameter.flat >= 0) {
          const auto flat = static_cast<std::size_t>(parameter.flat);
          o.buffer = stage_ == 3 ? plan_.flat_gathered[flat] : plan_.flat_parameters[flat];
          o.offset += parameter.offset.count() * element_bytes(plan_, o.buffer);
        } else if (const Place& gradient = gradient_place_[b]; gradient.flat >= 0) {
          const auto flat = static_cast<std::size_t>(gradient.flat);
          o.buffer = leaf(flat, slot_of_[b], op.micro_step);
          o.offset += gradient.offset.count() * element_bytes(plan_, o.buffer);
          if (o.access == Access::write && begun.insert(o.buffer.value).second) o.fresh = true;
          flat_written_by_[{micro_step, gradient.flat}] = result.size();
        }
      }
      result.push_back(op);
    }
    return result;
  }

  void merge(std::vector<Op>& ops, const Unit& unit, UnitId id, std::int32_t micro_step) {
    for (const auto& [dst, src] : tree_.steps[static_cast<std::size_t>(micro_step)].merges)
      for (std::int32_t f : unit.flats) {
        Op op{.name = plan_.text("add gradient ", name_of(plan_.flats[static_cast<std::size_t>(f)])),
              .part = Part::reduce,
              .micro_step = micro_step,
              .action = Absent{.lacks = Absent::Lacks::accumulate},
              .operands = {}};
        if (const std::vector<BufferId>& slots = slots_[static_cast<std::size_t>(f)]; !slots.empty()) {
          op.action = Accumulate{.unit = id};
          op.operands = plan_.list({updates(plan_, slots[static_cast<std::size_t>(dst)]),
                                    reads(plan_, slots[static_cast<std::size_t>(src)])});
        }
        ops.push_back(op);
      }
  }

  /// Leaves to what gradients are summed as: into the wide leaf, or into their slot where nothing is scattered.
  void store_leaves(std::vector<Op>& ops, const Unit& unit, std::int32_t micro_step) {
    for (std::int32_t f : unit.flats) {
      const auto index = static_cast<std::size_t>(f);
      ops.push_back({.name = plan_.text("widen gradient ", name_of(plan_.flats[index])),
                     .part = Part::reduce,
                     .micro_step = micro_step,
                     .action = Copy{},
                     .operands = plan_.list({reads(plan_, leaf_[index]), writes(plan_, summand(index, micro_step))})});
    }
  }

  /// Hybrid sharding: what one shard group has summed, over the replicas.
  void reduce_replicas(std::vector<Op>& ops, const Unit& unit, UnitId id, std::int32_t micro_step) {
    const std::string_view name = plan_.text("reduce replicas of ", unit.name);
    if (is_foreign(first_flat(unit))) {
      ops.push_back({.name = name,
                     .part = Part::reduce,
                     .micro_step = micro_step,
                     .action = Absent{.lacks = Absent::Lacks::all_reduce, .flat = unit.flats.front()},
                     .operands = {}});
      return;
    }
    std::vector<FlatPart> parts;
    for (std::int32_t f : unit.flats) {
      const BufferId sum = plan_.flat_gradients[static_cast<std::size_t>(f)];
      parts.push_back(
          {.flat = f, .full = scattered_ ? updates(plan_, sum) : own_part(plan_, f, sum, Access::update), .shard = {}});
    }
    Op op = make_collective(plan_, Collective::all_reduce, Group::replica, name, Part::reduce, id, parts);
    op.micro_step = micro_step;
    ops.push_back(op);
  }

  [[nodiscard]] const Flat& first_flat(const Unit& unit) const {
    return plan_.flats[static_cast<std::size_t>(unit.flats.front())];
  }
  [[nodiscard]] const Unit& unit_of(UnitId id) const { return plan_.units[static_cast<std::size_t>(id.value)]; }

  [[nodiscard]] Unit trained(UnitId id) const { return trained_part(plan_, unit_of(id)); }

  /// Sums units over the ranks, in one call.
  void reduce(std::vector<Op>& ops, const std::vector<UnitId>& units, std::int32_t micro_step) {
    const std::int32_t owner = first_flat(unit_of(units.front())).owner;  // of all flats of a unit
    const bool all = stage_ == 0 || (stage_ == 1 && plan_.strategy.partition == Partition::parameter);
    std::vector<FlatPart> parts;
    for (UnitId id : units)
      for (std::int32_t f : trained(id).flats) parts.push_back(summed(f, all, owner >= 0, micro_step));
    const Collective kind = all ? Collective::all_reduce : owner >= 0 ? Collective::reduce : Collective::reduce_scatter;
    const std::string& first = unit_of(units.front()).name;
    const std::string_view name = units.size() > 1
                                      ? plan_.text("reduce ", first, " and ", std::to_string(units.size() - 1), " more")
                                      : plan_.text("reduce ", first);
    Op op = make_collective(plan_, kind, all ? Group::data : Group::shard, name, Part::reduce,
                            units.size() == 1 ? units.front() : UnitId{}, parts);
    if (owner >= 0) std::get<Communicate>(op.action).root = owner;
    op.micro_step = micro_step;
    ops.push_back(op);
    if (owner >= 0 && plan_.strategy.reuses_shards())
      for (const FlatPart& part : parts) keep_sum(ops, part, micro_step);
  }

  /// A flat's part of a reduction.
  FlatPart summed(std::int32_t f, bool all, bool owned, std::int32_t micro_step) const {
    const auto index = static_cast<std::size_t>(f);
    if (all || (stage_ == 1 && owned))
      return {.flat = f, .full = updates(plan_, plan_.flat_gradients[index]), .shard = {}};
    if (stage_ == 1)
      return {.flat = f,
              .full = updates(plan_, plan_.flat_gradients[index]),
              .shard = own_part(plan_, f, plan_.flat_gradients[index], Access::write)};
    if (owned) return {.flat = f, .full = updates(plan_, summand(index, micro_step)), .shard = {}};
    const std::int32_t slot = tree_.steps[static_cast<std::size_t>(micro_step)].slot;
    return {.flat = f,
            .full = reads(plan_, summand(index, micro_step)),
            .shard = writes(plan_, slots_[index][static_cast<std::size_t>(slot)])};
  }

  /// An owner's sum takes its parameters' place.
  void keep_sum(std::vector<Op>& ops, const FlatPart& part, std::int32_t micro_step) {
    const Flat& flat = plan_.flats[static_cast<std::size_t>(part.flat)];
    Op op{.name = plan_.text("keep gradient ", name_of(flat)),
          .part = Part::reduce,
          .micro_step = micro_step,
          .action = Absent{.flat = part.flat},
          .operands = {}};
    if (is_owner(flat)) {
      op.action = Copy{};
      op.operands = plan_.list(
          {reads(plan_, part.full.buffer), writes(plan_, plan_.flat_gradients[static_cast<std::size_t>(part.flat)])});
    }
    ops.push_back(op);
  }

  /// After the last contribution to a unit's gradient in a micro-step: tree nodes and the reduction, per stage.
  std::vector<Op> with_reductions(std::vector<Op> ops) {
    std::map<std::size_t, std::vector<std::pair<std::int32_t, UnitId>>> complete;  // op index -> units
    for (std::int32_t j = 0; j < static_cast<std::int32_t>(tree_.steps.size()); ++j)
      for (std::size_t u = 0; u < plan_.units.size(); ++u) {
        std::size_t last = 0;
        const Unit unit = trained_part(plan_, plan_.units[u]);
        if (unit.flats.empty()) continue;
        for (std::int32_t f : unit.flats) last = std::max(last, flat_written_by_.at({j, f}));
        complete[last].emplace_back(j, UnitId{static_cast<std::int32_t>(u)});
      }
    std::vector<Op> result;
    result.reserve(ops.size() + complete.size());
    Bucket bucket(scattered_ ? Bytes{std::int64_t{plan_.strategy.bucket_mib} << 20} : Bytes{0});
    for (std::size_t i = 0; i < ops.size(); ++i) {
      result.push_back(ops[i]);
      if (const auto it = complete.find(i); it != complete.end())
        for (const auto& [j, id] : it->second) {
          if (widens_) store_leaves(result, trained(id), j);
          for (const Bucket::Call& call : bucket.add(id, size_of(id), trained(id).flats.size())) close(result, call, j);
        }
      if (const std::int32_t j = result.back().micro_step; i + 1 == ops.size() || ops[i + 1].micro_step != j)
        close(result, bucket.rest(), j);
    }
    return result;
  }

  /// The unit's summed bytes.
  [[nodiscard]] Bytes size_of(UnitId id) const {
    Bytes bytes{0};
    for (std::int32_t f : trained(id).flats)
      bytes += bytes_of(plan_.strategy.reduction(), plan_.flats[static_cast<std::size_t>(f)].elems);
    return bytes;
  }

  /// Reduces units whose gradients of a micro-step are complete, as far as that is due.
  void close(std::vector<Op>& ops, const std::vector<UnitId>& units, std::int32_t micro_step) {
    if (units.empty()) return;
    const bool last = micro_step == static_cast<std::int32_t>(tree_.steps.size()) - 1;
    if (scattered_) reduce(ops, units, micro_step);
    for (UnitId id : units) {
      merge(ops, trained(id), id, micro_step);
      if (!last) continue;
      if (!scattered_ && plan_.strategy.data_parallel() > 1) reduce(ops, {id}, micro_step);
      if (stage_ > 0 && plan_.strategy.replicas() > 1) reduce_replicas(ops, trained(id), id, micro_step);
    }
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
      result.push_back(ops[i]);
    }
    return result;
  }

  Op gather(UnitId id, std::int32_t micro_step) {
    const Unit& unit = unit_of(id);
    Op op = make_gather(plan_, unit.flats, plan_.text("gather ", unit.name), Part::gather);
    op.micro_step = micro_step;
    return op;
  }

  Draft plan_;
  std::int32_t stage_;
  std::int32_t shards_;
  std::int32_t own_;  ///< this rank's number in its shard group
  bool scattered_;    ///< every micro-step's gradient is reduced into shards
  bool has_leaves_;   ///< a micro-step's gradient has a buffer apart from the tree's slots
  bool widens_;       ///< gradients are summed in a wider type than they are made in
  Tree tree_;
  std::vector<Place> parameter_place_;  ///< by buffer of the passes before
  std::vector<Place> gradient_place_;   ///< by buffer of the passes before, of any slot
  std::vector<std::size_t> slot_of_;    ///< by gradient buffer
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> flat_written_by_;  ///< (micro-step, flat) -> last op
  std::vector<BufferId> leaf_;                ///< by flat: full gradient of one micro-batch; invalid: made in a slot
  std::vector<BufferId> wide_leaf_;           ///< by flat, stages 2 and 3: the same in the type of the reduction
  std::vector<std::vector<BufferId>> slots_;  ///< by flat: tree slots; none where another rank owns it
};

}  // namespace

Draft shard(Draft plan) {
  return Sharder(std::move(plan)).run();
}

}  // namespace shard::plan
