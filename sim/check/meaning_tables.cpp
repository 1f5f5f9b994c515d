// What the plan's own tables say of parameters, chunks and micro-batches, and what phases leave: P17, P20, P22, P30,
// P31.
#include "sim/check/interpreter.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>

namespace shard::plan::verification {

void Interpreter::check_choices() {
  faults_.at(nullptr, nullptr);
  if (plan_.target != plan_.strategy.target())
    faults_.fail("P32", "is compiled for another target than the strategy's");
  if (plan_.topology != plan_.strategy.topology()) faults_.fail("P32", "divides the ranks in another way");
  if (plan_.micro_batches != plan_.strategy.micro_batches())
    faults_.fail("P32", "has another number of micro-batches than the strategy");
}

void Interpreter::check_frozen() {
  faults_.at(nullptr, nullptr);
  const model::Model& model = *plan_.model;
  if (!model.frozen.empty() && model.frozen.size() != model.parameters.size())
    return faults_.fail("P30", "not every parameter is frozen or trained");
  for (std::size_t p = 0; p < model.parameters.size(); ++p) {
    const bool named = std::ranges::any_of(plan_.strategy.freeze, [&](const std::string& pattern) {
      return fnmatch(pattern.c_str(), model.parameters[p].name.c_str(), 0) == 0;
    });
    if (model.is_frozen(model::ParamId{static_cast<std::int32_t>(p)}) != named)
      return faults_.fail("P30", "parameter '" + model.parameters[p].name + "' is " + (named ? "not " : "") + "frozen");
  }
  for (const model::Operator& op : plan_.graph->operators)
    for (std::size_t i = 0; i < op.params.size(); ++i)
      if (op.attributes.freezes(i) != model.is_frozen(op.params[i]))
        return faults_.fail("P30", "operator '" + op.name + "' does not know which of its parameters are frozen");
}

void Interpreter::check_masks() {
  faults_.at(nullptr, nullptr);
  std::set<std::int32_t> drawn;
  for (const model::Operator& op : plan_.graph->operators) {
    const float p = op.attributes.probability;
    if (op.kind != model::OperatorKind::dropout && op.kind != model::OperatorKind::attention) {
      if (p != 0) return faults_.fail("P31", "operator '" + op.name + "' cannot drop, and has a probability");
      continue;
    }
    if (p != plan_.strategy.dropout)
      return faults_.fail("P31", "operator '" + op.name + "' drops with another probability than the strategy's");
    if (p > 0 && !drawn.insert(op.attributes.mask).second)
      return faults_.fail("P31", "operator '" + op.name + "' draws the mask of another one");
  }
}

void Interpreter::check_chunk(const Flat& chunk, const std::string& name) {
  const Strategy& s = plan_.strategy;
  if (chunk.items.empty()) return faults_.fail("P22", name + " is an empty chunk");
  const std::int64_t cuts = s.has_owners() ? 1 : shards_;
  const auto padded = [&](Elems elems) { return Elems{(elems.count() + cuts - 1) / cuts * cuts}; };
  if (s.chunk_starts.empty()) {
    const Elems first = chunk.items.front().elems;
    if (chunk.elems != (first > s.chunk_elems ? padded(first) : s.chunk_elems))
      faults_.fail("P22", name + " is a chunk of " + std::to_string(chunk.elems.count()) + " elements");
    return;
  }
  for (const Flat::Item& item : chunk.items)
    if ((std::ranges::count(s.chunk_starts, item.param.value) == 1) != (&item == &chunk.items.front()))
      faults_.fail("P22", name + " begins or goes on at the wrong parameter");
  if (chunk.elems != padded(chunk.used))
    faults_.fail("P22", name + " is a chunk of " + std::to_string(chunk.elems.count()) + " elements for " +
                            std::to_string(chunk.used.count()));
}

void Interpreter::check_flats() {
  faults_.at(nullptr, nullptr);
  for (std::size_t f = 0; f < plan_.flats.size(); ++f) {
    const Flat& each = plan_.flats[f];
    const std::string name = "flat " + std::to_string(f);
    const auto unit = static_cast<std::size_t>(each.unit.value);
    const bool owners = plan_.strategy.has_owners();
    if (owners ? each.owner < 0 || each.owner >= shards_ : each.owner != -1)
      faults_.fail("P22", name + (owners ? " has no owner" : " has an owner"));
    if (!owners && each.elems.count() % shards_ != 0) faults_.fail("P22", name + " is not a multiple of its shards");
    if (each.used > each.elems) faults_.fail("P22", name + " is larger than it says");
    if (!each.unit.valid() || unit >= plan_.units.size() ||
        std::count(plan_.units[unit].flats.begin(), plan_.units[unit].flats.end(), static_cast<std::int32_t>(f)) != 1)
      faults_.fail("P22", name + " is not once in its unit");
    if (plan_.strategy.unit == UnitKind::chunk && !plan_.strategy.chunk_per_tensor) check_chunk(each, name);
    if (faults_.failed()) return;
    Elems end{0};
    for (const Flat::Item& item : each.items) {
      const auto p = static_cast<std::size_t>(item.param.value);
      if (!item.param.valid() || p >= place_.size() || place_[p].flat >= 0)
        return faults_.fail("P22", "a parameter of " + name + " is unknown or in two flats");
      if (item.elems != plan_.model->parameters[p].elems || item.offset < end || item.offset + item.elems > each.used)
        return faults_.fail("P22", "parameter '" + plan_.model->parameters[p].name + "' lies wrong in " + name);
      if (plan_.model->is_frozen(item.param) != each.frozen)
        return faults_.fail("P30", name + " holds frozen and trained parameters");
      end = item.offset + item.elems;
      place_[p] = {static_cast<std::int32_t>(f), item.offset.count()};
    }
  }
  for (std::size_t p = 0; p < place_.size(); ++p)
    if (place_[p].flat < 0) faults_.fail("P22", "parameter '" + plan_.model->parameters[p].name + "' is in no flat");
}

void Interpreter::check_dealing(const PhaseOps& phase) {
  std::vector<bool> seen(static_cast<std::size_t>(plan_.strategy.micro_batches()), false);
  std::int32_t micro_steps = 0;
  for (const Op& op : phase.ops) {
    const auto* load = std::get_if<LoadBatch>(&op.action);
    if (load == nullptr) continue;
    faults_.at(&phase, &op);
    if (op.micro_step != micro_steps++) faults_.fail("P20", "micro-steps load their data in turn");
    nodes_.deal(op.micro_step, *load);
    for (std::int32_t r = 0; r < ranks_; ++r) {
      const std::int64_t m = load->micro_batch(r % shards_, r / shards_);
      if (m < 0 || m >= static_cast<std::int64_t>(seen.size()) || seen[static_cast<std::size_t>(m)])
        return faults_.fail("P20", "data rank " + std::to_string(r) + " loads micro-batch " + std::to_string(m) +
                                       ", which is not of this step or was loaded before");
      seen[static_cast<std::size_t>(m)] = true;
    }
  }
  faults_.at(&phase, nullptr);
  if (const auto it = std::find(seen.begin(), seen.end(), false); it != seen.end())
    faults_.fail("P20", "micro-batch " + std::to_string(it - seen.begin()) + " is loaded by no rank");
}

void Interpreter::check_created() {
  for (std::size_t f = 0; f < plan_.flats.size(); ++f) {
    const auto index = static_cast<std::int32_t>(f);
    if (f >= plan_.flat_parameters.size()) return faults_.fail("P22", "a flat rests nowhere");
    const BufferId resting = plan_.flat_parameters[f];
    const bool cut = plan_.strategy.effective_stage() == 3;
    const Range part = cut ? own_part(index) : Range{0, plan_.flats[f].elems.count()};
    const Range real{std::min(part.begin, used(index)), std::min(part.end, used(index))};
    if (real.begin < real.end && !of(resting).is(0, real.end - real.begin, parameters(index, real.begin, 0)))
      faults_.fail("P22", "flat " + std::to_string(f) + " was not created whole");
  }
}

void Interpreter::end_step() {
  for (std::size_t b = 0; b < contents_.size(); ++b) {
    if (!plan_.buffers[b].persistent) continue;
    contents_[b].for_each([&](Content& c) {
      if (c.meaning == Meaning::gradient)
        faults_.fail("P17", "buffer '" + std::string(plan_.buffers[b].name) + "' holds " + describe(plan_, c) +
                                " where parameters rest when the step ends");
      if (c.meaning != Meaning::parameter && c.meaning != Meaning::master) return;
      if (c.meaning == Meaning::parameter && flat(c.what).frozen) {
        if (c.tag != 0)
          faults_.fail("P30", "buffer '" + std::string(plan_.buffers[b].name) + "' holds other frozen parameters");
        return;
      }
      if (c.tag != 1)
        faults_.fail("P17", "buffer '" + std::string(plan_.buffers[b].name) + "' still holds " + describe(plan_, c) +
                                " when the step ends");
      c.tag = 0;
    });
  }
  if (!loss_known_) faults_.fail("P20", "the step ends without its mean loss");
  if (plan_.strategy.is_controlled()) end_control();
  loss_known_ = false;
}

}  // namespace shard::plan::verification
