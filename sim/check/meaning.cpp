// Runs a plan on meanings instead of numbers.
#include "sim/check/meaning.h"
#include "sim/ir/control_block.h"

#include <fnmatch.h>

#include <algorithm>
#include <limits>
#include <set>

#include "sim/check/content.h"
#include "sim/check/control_book.h"
#include "sim/check/flat_of.h"
#include "sim/check/gradient_nodes.h"
#include "sim/check/graph_gradients.h"
#include "sim/check/roles.h"
#include "sim/target/comm_workspace.h"

namespace shard::plan::verification {
namespace {

class Interpreter {
 public:
  Interpreter(const Plan& plan, std::int32_t rank, Faults& faults)
      : plan_(plan),
        at_(position(plan.topology, rank)),
        shards_(plan.strategy.shard_degree()),
        ranks_(plan.strategy.data_parallel()),
        faults_(faults),
        expected_(plan),
        nodes_(plan.strategy),
        contents_(plan.buffers.size()),
        place_(plan.model->parameters.size()) {
    for (std::size_t v = 0; v < plan.graph->values.size(); ++v) same_as_.push_back(static_cast<std::int32_t>(v));
    for (const model::Operator& op : plan.graph->operators)
      if (op.kind == model::OperatorKind::tensor_input || op.kind == model::OperatorKind::tensor_part)
        same_as_[static_cast<std::size_t>(op.outputs[0].value)] =
            same_as_[static_cast<std::size_t>(op.inputs[0].value)];
  }

  void check() {
    check_frozen();
    if (!faults_.failed()) check_masks();
    check_flats();
    for (const PhaseOps& phase : plan_.phases) {
      if (faults_.failed()) return;
      in_step_ = phase.phase == Phase::first_step || phase.phase == Phase::steady_step;
      if (in_step_) check_dealing(phase);
      for (const Op& op : phase.ops) {
        faults_.at(phase_ = &phase, &op);
        for (BufferId id : op.acquire) of(id).clear();
        issue(op);
        if (faults_.failed()) return;
      }
      faults_.at(&phase, nullptr);
      if (phase.phase == Phase::creation) check_created();
      if (in_step_) end_step();
    }
  }

 private:
  struct Place {
    std::int32_t flat = -1;
    std::int64_t offset = 0;  ///< elements
  };

  [[nodiscard]] Contents& of(BufferId id) { return contents_[static_cast<std::size_t>(id.value)]; }
  [[nodiscard]] const Flat& flat(std::int32_t f) const { return plan_.flats[static_cast<std::size_t>(f)]; }
  [[nodiscard]] std::int64_t used(std::int32_t f) const { return flat(f).used.count(); }
  [[nodiscard]] std::string name(const Operand& o) const { return '\'' + plan_.buffer(o.buffer).name + '\''; }

  // --- the plan's own tables -------------------------------------------------------------------------------------

  /// P30: the parameters that the strategy names are frozen, and no others.
  void check_frozen() {
    faults_.at(nullptr, nullptr);
    const model::Model& model = *plan_.model;
    if (!model.frozen.empty() && model.frozen.size() != model.parameters.size())
      return faults_.fail("P30", "not every parameter is frozen or trained");
    for (std::size_t p = 0; p < model.parameters.size(); ++p) {
      const bool named = std::ranges::any_of(plan_.strategy.freeze, [&](const std::string& pattern) {
        return fnmatch(pattern.c_str(), model.parameters[p].name.c_str(), 0) == 0;
      });
      if (model.is_frozen(model::ParamId{static_cast<std::int32_t>(p)}) != named)
        return faults_.fail("P30",
                            "parameter '" + model.parameters[p].name + "' is " + (named ? "not " : "") + "frozen");
    }
    for (const model::Operator& op : plan_.graph->operators)
      for (std::size_t i = 0; i < op.params.size(); ++i)
        if (op.attributes.freezes(i) != model.is_frozen(op.params[i]))
          return faults_.fail("P30", "operator '" + op.name + "' does not know which of its parameters are frozen");
  }

  /// P31: what can drop does so with the probability of the strategy, and no two operators draw one mask.
  void check_masks() {
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

  /// P22: a chunk has the size that the strategy says, or begins where it says and has the size of what it holds.
  void check_chunk(const Flat& chunk, const std::string& name) {
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

  /// P22
  void check_flats() {
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

  /// P20: every micro-batch of the global batch is loaded by exactly one rank in one micro-step.
  void check_dealing(const PhaseOps& phase) {
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

  /// P22: creation leaves every rank with what rests on it.
  void check_created() {
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

  /// P17: what rests on this rank is what the optimizer made. P16 says that it made all.
  void end_step() {
    for (std::size_t b = 0; b < contents_.size(); ++b) {
      if (!plan_.buffers[b].persistent) continue;
      contents_[b].for_each([&](Content& c) {
        if (c.meaning == Meaning::gradient)
          faults_.fail("P17", "buffer '" + plan_.buffers[b].name + "' holds " + describe(plan_, c) +
                                  " where parameters rest when the step ends");
        if (c.meaning != Meaning::parameter && c.meaning != Meaning::master) return;
        if (c.meaning == Meaning::parameter && flat(c.what).frozen) {
          if (c.tag != 0) faults_.fail("P30", "buffer '" + plan_.buffers[b].name + "' holds other frozen parameters");
          return;
        }
        if (c.tag != 1)
          faults_.fail("P17", "buffer '" + plan_.buffers[b].name + "' still holds " + describe(plan_, c) +
                                  " when the step ends");
        c.tag = 0;
      });
    }
    if (!loss_known_) faults_.fail("P20", "the step ends without its mean loss");
    if (plan_.strategy.is_controlled()) end_control();
    loss_known_ = false;
  }

  // --- reading and writing ---------------------------------------------------------------------------------------

  [[nodiscard]] static Content parameters(std::int32_t f, std::int64_t start, std::uint64_t version) {
    return {.meaning = Meaning::parameter, .what = f, .start = start, .tag = version};
  }
  [[nodiscard]] static Content masters(std::int32_t f, std::int64_t start, std::uint64_t version) {
    return {.meaning = Meaning::master, .what = f, .start = start, .tag = version};
  }
  /// This rank's shard of a flat, in elements: all or none where the flat has an owner.
  [[nodiscard]] Range own_part(std::int32_t f) const {
    const std::int64_t all = flat(f).elems.count();
    if (const std::int32_t owner = flat(f).owner; owner >= 0) return {owner == at_.shard ? 0 : all, all};
    const std::int64_t elems = flat(f).elems.count() / shards_;
    return {at_.shard * elems, (at_.shard + 1) * elems};
  }
  [[nodiscard]] Dtype dtype(const Operand& o) const { return plan_.buffer(o.buffer).dtype; }
  /// The operand as elements of its buffer: contents are kept by element, so that copies may change their size.
  [[nodiscard]] Range elements(const Operand& o) const {
    const std::int64_t size = bytes_per_element(dtype(o));
    const Range bytes = range_of(o, at_.shard);
    return {bytes.begin / size, bytes.end / size};
  }
  [[nodiscard]] std::int64_t elems(const Operand& o) const { return o.bytes / bytes_per_element(dtype(o)); }
  /// `count` elements of the operand from `first` on.
  [[nodiscard]] Operand part_of(Operand o, std::int64_t first, std::int64_t count) const {
    const std::int64_t size = bytes_per_element(dtype(o));
    o.offset += first * size;
    o.bytes = count * size;
    return o;
  }
  [[nodiscard]] std::vector<Piece> read(const Operand& o) {
    const Range r = elements(o);
    return of(o.buffer).inside(r.begin, r.end);
  }
  void write(const Operand& o, const Content& content) {
    const Range r = elements(o);
    of(o.buffer).write(r.begin, r.end, content);
  }
  [[nodiscard]] static Content simple(Meaning meaning, std::int32_t step = -1) {
    return {.meaning = meaning, .step = step};
  }

  /// P30: what is only for parameters that are trained.
  bool trained(std::int32_t f, const char* what) {
    if (!in_flats(f) || !flat(f).frozen) return true;
    faults_.fail("P30", std::string(what) + " flat " + std::to_string(f) + ", whose parameters are frozen");
    return false;
  }

  /// The operand holds `content` and nothing else. Unwritten bytes are P8, others the rule given.
  bool expect(const Operand& o, const Content& content, const char* rule) {
    const Range r = elements(o);
    if (of(o.buffer).is(r.begin, r.end, content)) return true;
    for (const Piece& piece : read(o)) {
      if (piece.content == content.after(piece.begin - r.begin)) continue;
      const Range found{piece.begin, piece.end};
      if (piece.content.meaning == Meaning::nothing)
        faults_.fail("P8", "reads elements " + to_string(found) + " of " + name(o) +
                               " before anything wrote them; needs " + describe(plan_, content));
      else
        faults_.fail(rule, "reads elements " + to_string(found) + " of " + name(o) + ", which hold " +
                               describe(plan_, piece.content) + "; needs " + describe(plan_, content));
      break;
    }
    return false;
  }
  bool access(const Operand& o, Access wanted, const char* rule) {
    if (o.access == wanted) return true;
    faults_.fail(rule, "the access to " + name(o) + " is of the wrong kind");
    return false;
  }
  bool count(const Op& op, std::size_t wanted, const char* rule) {
    if (op.operands.size() == wanted) return true;
    faults_.fail(rule, "has " + std::to_string(op.operands.size()) + " operands instead of " + std::to_string(wanted));
    return false;
  }

  void issue(const Op& op) {
    std::visit(on{[&](const Compute& c) { compute(op, c); }, [&](const LoadBatch&) { load_batch(op); },
                  [&](const LoadScalars&) { load_scalars(op); }, [&](const Communicate& c) { communicate(op, c); },
                  [&](const Accumulate&) { accumulate(op); }, [&](const Initialize& a) { initialize(op, a); },
                  [&](const ZeroState& a) { zero(op, a); }, [&](const OptimizerStep& a) { step(op, a); },
                  [&](const MeanLoss& a) { mean_loss(op, a); }, [&](const Copy&) { copy(op); },
                  [&](const Digest& a) { digest(op, a); }, [&](const BeginControl&) { begin_control(op); },
                  [&](const InspectGradient& a) {
                    a.of == InspectGradient::Of::local ? inspect_local(op, a) : inspect(op, a);
                  },
                  [&](const Decide& a) { decide(op, a); }, [&](const Absent&) {}},
               op.action);
  }

  // --- the model -------------------------------------------------------------------------------------------------

  void load_batch(const Op& op) {
    if (!count(op, 2, "P9")) return;
    const model::ValueId values[] = {plan_.graph->input, plan_.graph->target};
    for (std::size_t i = 0; i < 2; ++i) {
      const model::Value& loaded = plan_.graph->values[static_cast<std::size_t>(values[i].value)];
      if (elems(op.operands[i]) != loaded.elements() || dtype(op.operands[i]) != loaded.dtype)
        faults_.fail("P9", "operand " + std::to_string(i) + " has the wrong size or type");
      if (!access(op.operands[i], Access::write, "P9")) return;
      write(op.operands[i], value(values[i], op.micro_step));
    }
  }
  [[nodiscard]] Content value(model::ValueId v, std::int32_t step) const {
    return {.meaning = Meaning::value, .what = same_as_[static_cast<std::size_t>(v.value)], .step = step};
  }
  [[nodiscard]] static Content value_gradient(std::uint64_t sum, std::int32_t step) {
    return {.meaning = Meaning::value_gradient, .step = step, .tag = sum};
  }

  void compute(const Op& op, const Compute& c) {
    if (c.source < 0 || static_cast<std::size_t>(c.source) >= plan_.graph->operators.size())
      return faults_.fail("P9", "names no operator of the graph");
    const model::Operator& source = plan_.graph->operators[static_cast<std::size_t>(c.source)];
    if (source.kind != c.kind || source.attributes != c.attributes)
      return faults_.fail("P9", "is not the operator that it names");
    const bool is_leaf = c.direction != Direction::forward && model::row(c.kind).loss;
    if (c.scale != (is_leaf ? leaf_scale() : 1.0f) || c.scaled != (is_leaf && plan_.strategy.has_scaler()))
      return faults_.fail("P9", "has the wrong scale");
    if (c.workspace != (expected_workspace(plan_, c).count() > 0)) return faults_.fail("P9", "has the wrong workspace");
    const std::vector<Expected> operands = expected_operands(plan_, source, c);
    if (operands.empty()) return faults_.fail("P9", "this operator has no op of that direction");
    if (!count(op, operands.size(), "P9")) return;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Operand& o = op.operands[i];
      const Expected& e = operands[i];
      const std::int64_t bytes = bytes_of(e.dtype, Elems{e.elems}).count();
      if (o.bytes != bytes && (e.slot.role != Role::workspace || o.bytes < bytes))
        return faults_.fail("P9", "operand " + std::to_string(i) + " has " + std::to_string(o.bytes) +
                                      " bytes instead of " + std::to_string(bytes));
      if (e.slot.role != Role::workspace && dtype(o) != e.dtype)
        return faults_.fail("P9", "operand " + std::to_string(i) + " is " + shard::to_string(dtype(o)) +
                                      " instead of " + shard::to_string(e.dtype));
    }
    if (c.direction != Direction::forward && !expected_.trains(source.outputs[0]))
      return faults_.fail("P30", "differentiates what no trained parameter is under");
    for (std::size_t i = 0; i < operands.size() && !faults_.failed(); ++i)
      read_operand(op.micro_step, source, op.operands[i], operands[i]);
    for (std::size_t i = 0; i < operands.size() && !faults_.failed(); ++i)
      write_operand(op.micro_step, c, source, op.operands[i], operands[i]);
  }
  /// With a predivide factor f the leaves' sum over ranks is the gradient times D / f, else the gradient.
  [[nodiscard]] float leaf_scale() const {
    const Strategy& s = plan_.strategy;
    if (s.predivide == 1.0f) return 1.0f / static_cast<float>(s.micro_batches());
    return 1.0f / (static_cast<float>(s.micro_batches() / ranks_) * s.predivide);
  }
  [[nodiscard]] float left_to_multiply() const {
    return plan_.strategy.predivide == 1.0f ? 1.0f : plan_.strategy.predivide / static_cast<float>(ranks_);
  }
  [[nodiscard]] Place place_of(const model::Operator& source, const Expected& e) const {
    return place_[static_cast<std::size_t>(source.params[static_cast<std::size_t>(e.slot.index)].value)];
  }

  /// In micro-step j: that the operand is accessed as it should be, and holds what is read.
  void read_operand(std::int32_t j, const model::Operator& source, const Operand& o, const Expected& e) {
    // Operators of several inputs write the gradients of all where one needs it.
    if (e.slot.role == Role::dx && source.inputs.size() == 1 && !expected_.trains(source.inputs[0]))
      return faults_.fail("P30", "makes the gradient of a value that no trained parameter is under");
    if (!access(o, e.slot.access, "P9") || e.slot.access == Access::write) return;
    switch (e.slot.role) {
      case Role::x:
      case Role::statistic: expect(o, value(e.value, j), "P10"); break;
      case Role::p: {
        const Place at = place_of(source, e);
        expect(o, parameters(at.flat, at.offset, 0), "P11");
        break;
      }
      case Role::dy: expect(o, value_gradient(expected_.of_value(e.value), j), "P12"); break;
      case Role::loss_scale: expect(o, simple(Meaning::loss_scale), "P10"); break;
      case Role::dx:  // what they add to is looked at where they are written
      case Role::dp:
      case Role::none:
      case Role::y:
      case Role::workspace: break;
    }
  }

  void write_operand(std::int32_t j, const Compute& c, const model::Operator& source, const Operand& o,
                     const Expected& e) {
    if (e.slot.access == Access::read) return;
    switch (e.slot.made()) {
      case Role::y: {
        const model::ValueId y = source.outputs[0];
        write(o, y == plan_.graph->loss ? simple(Meaning::loss, j) : value(y, j));
        break;
      }
      case Role::statistic: write(o, value(e.value, j)); break;
      case Role::dx: {
        std::uint64_t sum = GraphGradients::contribution(c.source, e.slot.index);
        if (e.slot.role == Role::dx && o.reads()) {
          const std::vector<Piece> before = read(o);
          if (before.size() != 1 || before[0].content.meaning != Meaning::value_gradient ||
              before[0].content.step != j || before[0].content.start != 0)
            return faults_.fail("P12",
                                "adds to " + name(o) + ", which holds " + describe(plan_, before.back().content));
          sum += before[0].content.tag;
        }
        write(o, value_gradient(sum, j));
        break;
      }
      case Role::dp: contribute(j, c, source, o, e); break;
      case Role::workspace: write(o, simple(Meaning::scratch)); break;
      case Role::none:
      case Role::x:
      case Role::p:
      case Role::dy:
      case Role::loss_scale: break;
    }
  }

  /// P13: one more contribution to a parameter's gradient.
  void contribute(std::int32_t j, const Compute& c, const model::Operator& source, const Operand& o,
                  const Expected& e) {
    const Place at = place_of(source, e);
    const model::ParamId param = source.params[static_cast<std::size_t>(e.slot.index)];
    const auto with = [&](std::uint64_t history) {
      history = GraphGradients::appended(history, c.source, e.slot.index);
      return history == expected_.of_parameter(param) ? nodes_.leaf(j) : nodes_.partial(j, history);
    };
    if (!o.reads()) {
      write(o, {.meaning = Meaning::gradient, .what = at.flat, .start = at.offset, .tag = with(0)});
      return;
    }
    const Range r = elements(o);
    for (const Piece& piece : read(o)) {
      const Content& before = piece.content;
      if (before.meaning != Meaning::gradient || before.what != at.flat ||
          before.start != at.offset + piece.begin - r.begin)
        return faults_.fail(before.meaning == Meaning::nothing ? "P8" : "P13",
                            "adds to " + name(o) + ", which holds " + describe(plan_, before));
      const std::optional<GradientNodes::Open> open = nodes_.open(before.tag);
      Content after = before;
      if (open && open->step == j)
        after.tag = open->base ? nodes_.add(*open->base, with(open->history)) : with(open->history);
      else
        after.tag = nodes_.add(before.tag, with(0));
      of(o.buffer).write(piece.begin, piece.end, after);
    }
  }

  // --- the gradient tree -----------------------------------------------------------------------------------------

  /// A whole gradient: P13.
  bool complete(const Operand& o, const Content& c) {
    if (!nodes_.has_partial(c.tag)) return true;
    faults_.fail("P13", "reads " + describe(plan_, c) + " in " + name(o) +
                            ", which lacks a contribution of a micro-step or has one twice");
    return false;
  }

  void accumulate(const Op& op) {
    if (!count(op, 2, "P14") || !access(op.operands[0], Access::update, "P14") ||
        !access(op.operands[1], Access::read, "P14"))
      return;
    const Operand& dst = op.operands[0];
    const Operand& src = op.operands[1];
    if (elems(dst) != elems(src)) return faults_.fail("P14", "adds buffers of different sizes");
    if (dtype(dst) != plan_.strategy.reduction() || dtype(src) != dtype(dst))
      return faults_.fail("P14", "adds gradients in another type than they are summed in");
    const std::int64_t shift = elements(dst).begin - elements(src).begin;
    std::int64_t padding = -1;  // where the flat's padding begins, once known
    for (const Piece& a : read(src)) {
      if (a.content.meaning == Meaning::padding || (padding >= 0 && a.begin >= padding)) continue;
      if (a.content.meaning == Meaning::nothing)
        return faults_.fail(
            "P8", "adds elements " + to_string({a.begin, a.end}) + " of " + name(src) + " before anything wrote them");
      if (a.content.meaning == Meaning::gradient) padding = a.begin + used(a.content.what) - a.content.start;
      for (const Piece& b : of(dst.buffer).inside(a.begin + shift, a.end + shift)) {
        const Content from = a.content.after(b.begin - a.begin - shift);
        if (from.meaning != Meaning::gradient || b.content.meaning != Meaning::gradient ||
            from.what != b.content.what || from.start != b.content.start)
          return faults_.fail(b.content.meaning == Meaning::nothing ? "P8" : "P14",
                              "adds " + describe(plan_, from) + " to " + describe(plan_, b.content));
        if (!complete(src, from) || !complete(dst, b.content)) return;
        if (nodes_.reach(from.tag) != nodes_.reach(b.content.tag))
          return faults_.fail("P15", "adds a gradient reduced over ranks to one that is not");
        Content sum = b.content;
        sum.tag = nodes_.add(b.content.tag, from.tag);
        of(dst.buffer).write(b.begin, b.end, sum);
      }
    }
  }

  // --- collectives -----------------------------------------------------------------------------------------------

  void communicate(const Op& op, const Communicate& call) {
    const bool sharded = call.kind == Collective::all_gather || call.kind == Collective::reduce_scatter;
    std::size_t operands = call.workspace_operand >= 0 ? 1 : 0;
    std::int64_t largest = 0;
    if (call.segments.empty()) faults_.fail("P18", "a collective over nothing");
    for (const Segment& s : call.segments) {
      operands += sharded ? 2 : 1;
      if (!operand_exists(op, s.full_operand) || (sharded && !operand_exists(op, s.shard_operand))) return;
      const Operand& full = op.operands[static_cast<std::size_t>(s.full_operand)];
      largest = std::max(largest, full.bytes);
      if (s.elems.count() != elems(full)) faults_.fail("P18", "a segment has another size than its operand");
      if (sharded) check_shard(op.operands[static_cast<std::size_t>(s.shard_operand)], full, call.group);
    }
    if (!count(op, operands, "P18")) return;
    check_staging(op, call, Bytes{largest});
    for (const Segment& s : call.segments) {
      if (faults_.failed()) return;
      const Operand& full = op.operands[static_cast<std::size_t>(s.full_operand)];
      const Operand& shard = op.operands[static_cast<std::size_t>(sharded ? s.shard_operand : s.full_operand)];
      switch (call.kind) {
        case Collective::all_gather:
          if (call.group == Group::tensor)
            exchange(op, shard, full, call.kind);
          else
            all_gather(shard, full, call.group);
          break;
        case Collective::reduce_scatter: reduce_scatter(full, shard, call.group); break;
        case Collective::all_reduce:
          if (call.group == Group::tensor)
            exchange(op, full, full, call.kind);
          else
            all_reduce(full, call.group);
          break;
        case Collective::broadcast:
          if (plan_.strategy.has_owners())
            send_owned(full, call.root, call.group);
          else
            broadcast(full, call.root, call.group);
          break;
        case Collective::reduce: reduce_to_owner(full, call.root, call.group); break;
      }
    }
  }
  bool operand_exists(const Op& op, std::int32_t i) {
    if (i >= 0 && static_cast<std::size_t>(i) < op.operands.size()) return true;
    faults_.fail("P18", "a segment names no operand");
    return false;
  }
  /// This rank's number in its group of that kind, and the group's size.
  [[nodiscard]] std::int32_t member(Group group) const {
    switch (group) {
      case Group::shard: return at_.shard;
      case Group::replica: return at_.replica;
      case Group::data: return at_.data;
      case Group::tensor: return at_.tensor;
      case Group::world: return at_.data * plan_.strategy.tensor_parallel + at_.tensor;
    }
    return -1;
  }
  /// Whether the two are the same ranks.
  bool wants_group(Group found, Group wanted) {
    const RankGroup a = members(plan_.topology, found, 0);
    const RankGroup b = members(plan_.topology, wanted, 0);
    if (a.count == b.count && (a.count == 1 || a.stride == b.stride)) return true;
    faults_.fail("P18", std::string("is a collective of the ") + to_string(found) + " group instead of the " +
                            to_string(wanted) + " group");
    return false;
  }
  void check_shard(const Operand& shard, const Operand& full, Group group) {
    if (dtype(shard) != dtype(full)) faults_.fail("P18", "a shard has another type than its whole");
    if (elems(shard) * size_of(plan_.topology, group) != elems(full))
      faults_.fail("P18", "a shard is not the group's part of its whole");
    const Range s = elements(shard);
    const Range f = elements(full);
    const bool apart = shard.buffer != full.buffer || s.end <= f.begin || f.end <= s.begin;
    if (!apart && s.begin != f.begin + member(group) * elems(shard))
      faults_.fail("P18", "a shard inside its whole is not at this rank's place");
  }
  void check_staging(const Op& op, const Communicate& call, Bytes largest) {
    const bool messages = plan_.strategy.transport == Transport::messages;
    const Bytes needed =
        messages ? comm_workspace_bytes(call.kind, largest, size_of(plan_.topology, call.group)) : Bytes{0};
    if (call.workspace_operand < 0) {
      if (needed.count() > 0) faults_.fail("P18", "the message transport has no staging");
      return;
    }
    if (!operand_exists(op, call.workspace_operand)) return;
    const Operand& staging = op.operands[static_cast<std::size_t>(call.workspace_operand)];
    if (staging.bytes < needed.count()) faults_.fail("P18", "the message transport's staging is too small");
    if (access(staging, Access::write, "P18")) write(staging, simple(Meaning::scratch));
  }

  /// P27: a sum or gather over the ranks that share the model is one that the graph has there: of a whole value, or of
  /// a whole gradient, which every rank has done its part of.
  void exchange(const Op& op, const Operand& own, const Operand& full, Collective kind) {
    using Kind = model::OperatorKind;
    const bool sums = kind == Collective::all_reduce;
    if (!own.reads() || !full.writes()) return faults_.fail("P18", "an exchange reads one part and writes all");
    const std::vector<Piece> pieces = read(own);
    const Content& c = pieces.front().content;
    if (pieces.size() != 1 || c.start != 0 || c.step != op.micro_step ||
        (c.meaning != Meaning::value && c.meaning != Meaning::value_gradient))
      return faults_.fail(c.meaning == Meaning::nothing ? "P8" : "P27",
                          "exchanges " + describe(plan_, c) + " in " + name(own));
    const bool forward = c.meaning == Meaning::value;
    const Kind wanted =
        forward ? (sums ? Kind::tensor_sum : Kind::tensor_gather) : (sums ? Kind::tensor_input : Kind::tensor_part);
    for (std::size_t i = 0; i < plan_.graph->operators.size(); ++i) {
      const model::Operator& source = plan_.graph->operators[i];
      if (source.kind != wanted) continue;
      const model::Value& part = plan_.graph->values[static_cast<std::size_t>(source.inputs[0].value)];
      if (forward ? value(source.inputs[0], op.micro_step) != c : expected_.of_value(source.outputs[0]) != c.tag)
        continue;
      if (part.elements() != elems(own)) return faults_.fail("P27", "exchanges a part of " + describe(plan_, c));
      write(full, forward
                      ? value(source.outputs[0], op.micro_step)
                      : value_gradient(GraphGradients::contribution(static_cast<std::int32_t>(i), 0), op.micro_step));
      return;
    }
    faults_.fail("P27", "exchanges " + describe(plan_, c) + " in " + name(own) +
                            ", which is not what the ranks that share a model exchange there");
  }

  void all_gather(const Operand& shard, const Operand& full, Group group) {
    if (!shard.reads() || !full.writes()) return faults_.fail("P18", "a gather reads shards and writes the whole");
    const std::vector<Piece> own = read(shard);
    const Content& first = own.front().content;
    switch (first.meaning) {
      case Meaning::parameter:
      case Meaning::padding:
      case Meaning::master:
      case Meaning::moment:
        if (wants_group(group, Group::shard)) gather_flat(shard, full, first.what);
        return;
      case Meaning::loss:
        if (!wants_group(group, Group::data)) return;
        for (std::int32_t j = 0; j < static_cast<std::int32_t>(plan_.strategy.accumulation()); ++j)
          if (!expect(part_of(shard, j, 1), simple(Meaning::loss, j), "P20")) return;
        if (elems(shard) != plan_.strategy.accumulation()) return faults_.fail("P20", "not all losses");
        write(full, simple(Meaning::all_losses));
        return;
      case Meaning::facts:
        if (!wants_group(group, facts_group()) || !expect_facts(shard)) return;
        write(full, {.meaning = Meaning::all_facts, .tag = book_.version()});
        return;
      case Meaning::nothing:
        // A shard that is all padding of a flat whose state other ranks hold.
        if (!all_padding(full)) return faults_.fail("P8", "gathers " + name(shard) + " before anything wrote it");
        write(full, simple(Meaning::foreign));
        return;
      case Meaning::scratch:
      case Meaning::value:
      case Meaning::value_gradient:
      case Meaning::gradient:
      case Meaning::zero:
      case Meaning::counts:
      case Meaning::scalars:
      case Meaning::all_losses:
      case Meaning::mean_loss:
      case Meaning::knobs:
      case Meaning::all_facts:
      case Meaning::scaler:
      case Meaning::loss_scale:
      case Meaning::control:
      case Meaning::foreign: faults_.fail("P15", "gathers " + describe(plan_, first) + " from " + name(shard)); return;
    }
  }
  /// Whether this rank's part of the flat that `full` holds is all padding.
  [[nodiscard]] bool all_padding(const Operand& full) const {
    const UnitId unit = plan_.buffer(full.buffer).unit;
    if (!unit.valid()) return false;
    for (std::int32_t f : plan_.units[static_cast<std::size_t>(unit.value)].flats)
      if (flat(f).elems.count() == elems(full) && own_part(f).begin >= used(f)) return true;
    return false;
  }

  /// Shards of one flat become the whole: parameters, all of one version, or a moment.
  void gather_flat(const Operand& shard, const Operand& full, std::int32_t f) {
    const Range part = own_part(f);
    if (elems(shard) != part.end - part.begin) return faults_.fail("P18", "the shard is not the flat's");
    const bool in_place = shard.buffer == full.buffer;
    Content whole = read(shard).front().content;
    if (part.begin >= used(f)) {
      // Nothing of the flat is here; the other ranks' parts are the new ones where a step has just been made in place.
      const bool refreshed = in_place && in_step_ && plan_.strategy.effective_stage() < 3;
      whole = parameters(f, part.begin, refreshed ? 1 : 0);
      if (refreshed && !trained(f, "refreshes")) return;
    } else {
      const Operand real = part_of(shard, 0, std::min(part.end, used(f)) - part.begin);
      Content wanted = whole;
      wanted.start = part.begin;
      if (!expect(real, wanted, whole.meaning == Meaning::parameter ? "P11" : "P23")) return;
      if (in_place && in_step_ && plan_.strategy.effective_stage() < 3 && !trained(f, "refreshes")) return;
    }
    whole.start = 0;
    write(part_of(full, 0, used(f)), whole);
    const Range r = elements(full);
    if (used(f) < elems(full))
      of(full.buffer).write(r.begin + used(f), r.end, {.meaning = Meaning::padding, .what = f, .start = used(f)});
  }

  /// The gradients in `o` must be one whole flat from its first element on, or where replicas are summed one whole
  /// shard; padding may be unwritten.
  bool expect_whole_gradient(const Operand& o, const std::vector<Piece>& pieces, Group group) {
    const Range r = elements(o);
    if (dtype(o) != plan_.strategy.reduction()) {
      faults_.fail("P15", "reduces " + name(o) + " as " + shard::to_string(dtype(o)));
      return false;
    }
    std::int32_t f = -1;
    for (const Piece& piece : pieces) {
      const Content& c = piece.content;
      const std::int64_t base = group == Group::replica && c.what >= 0 && in_flats(c.what) ? own_part(c.what).begin : 0;
      const std::int64_t start = base + piece.begin - r.begin;
      if (c.meaning == Meaning::padding || (f >= 0 && start >= used(f))) continue;
      if (c.meaning == Meaning::nothing) {
        faults_.fail("P8", "reduces " + name(o) + ", of which elements " + to_string({piece.begin, piece.end}) +
                               " were never written");
        return false;
      }
      if (c.meaning != Meaning::gradient || c.start != start || (f >= 0 && c.what != f)) {
        faults_.fail("P15", "reduces " + name(o) + ", which holds " + describe(plan_, c));
        return false;
      }
      f = c.what;
      if (!complete(o, c)) return false;
      if (plan_.strategy.has_scaler() && group != Group::replica && !book_.knows_local(f, c.tag)) {
        faults_.fail("P26", "reduces " + describe(plan_, c) + ", which was not inspected on this rank");
        return false;
      }
      if (nodes_.reach(c.tag).covers(group)) {
        faults_.fail("P15", "reduces " + describe(plan_, c) + " a second time");
        return false;
      }
    }
    if (f < 0) return true;  // nothing but padding
    const Range own = own_part(f);
    if (elems(o) == (group == Group::replica ? own.end - own.begin : flat(f).elems.count())) return true;
    faults_.fail("P15", "reduces a part of a flat");
    return false;
  }
  [[nodiscard]] bool in_flats(std::int32_t f) const {
    return f >= 0 && static_cast<std::size_t>(f) < plan_.flats.size();
  }

  void reduce_scatter(const Operand& full, const Operand& shard, Group group) {
    if (plan_.strategy.has_owners()) return faults_.fail("P18", "cuts what has an owner");
    if (!full.reads() || !shard.writes()) return faults_.fail("P18", "a reduction reads the whole and writes a shard");
    const std::vector<Piece> pieces = read(full);
    if (!wants_group(group, Group::shard) || !expect_whole_gradient(full, pieces, Group::shard)) return;
    const std::int64_t base = elements(full).begin;
    const std::int64_t begin = at_.shard * elems(shard);
    const std::int64_t to = elements(shard).begin - begin;
    const std::int32_t f = pieces.front().content.what;
    if (full.writes()) write(full, simple(Meaning::scratch));
    write(shard, {.meaning = Meaning::padding, .what = f, .start = begin});
    for (const Piece& piece : pieces) {
      const std::int64_t from = std::max(piece.begin - base, begin);
      const std::int64_t end = std::min(piece.end - base, begin + elems(shard));
      if (from >= end || piece.content.meaning != Meaning::gradient) continue;
      Content c = piece.content.after(from - (piece.begin - base));
      c.tag = nodes_.reduced(c.tag, Group::shard);
      of(shard.buffer).write(to + from, to + end, c);
    }
  }

  void all_reduce(const Operand& full, Group group) {
    if (!access(full, Access::update, "P18")) return;
    if (group != Group::data && group != Group::replica)
      return faults_.fail("P18", "sums gradients over the wrong group");
    const std::vector<Piece> pieces = read(full);
    if (!expect_whole_gradient(full, pieces, group)) return;
    for (const Piece& piece : pieces) {
      if (piece.content.meaning != Meaning::gradient) continue;
      Content c = piece.content;
      c.tag = nodes_.reduced(c.tag, group);
      of(full.buffer).write(piece.begin, piece.end, c);
    }
  }

  void broadcast(const Operand& full, std::int32_t root, Group group) {
    if (!wants_group(group, Group::data)) return;
    if (root < 0 || root >= ranks_) return faults_.fail("P18", "there is no rank " + std::to_string(root));
    if (!full.writes()) return faults_.fail("P18", "a broadcast writes");
    for (const Piece& piece : read(full)) {
      Content c = piece.content;
      const bool made = (c.meaning == Meaning::parameter && c.tag == 1) || c.meaning == Meaning::master ||
                        c.meaning == Meaning::moment;
      if (at_.data == root) {
        if (!made) faults_.fail("P17", "sends " + describe(plan_, c) + ", which the optimizer has not made");
        continue;
      }
      if (made && in_step_) faults_.fail("P17", "overwrites " + describe(plan_, c) + " with another rank's");
      if (c.meaning == Meaning::parameter)
        c.tag = 1;
      else
        c = simple(Meaning::foreign);
      of(full.buffer).write(piece.begin, piece.end, c);
    }
  }

  /// Gradients of whole flats become sums on one rank; what others keep means nothing.
  void reduce_to_owner(const Operand& full, std::int32_t root, Group group) {
    if (!plan_.strategy.has_owners()) return faults_.fail("P18", "no unit has an owner to reduce to");
    if (!access(full, Access::update, "P18") || !wants_group(group, Group::shard)) return;
    const std::vector<Piece> pieces = read(full);
    if (!expect_whole_gradient(full, pieces, Group::shard)) return;
    for (const Piece& piece : pieces) {
      if (piece.content.meaning != Meaning::gradient) continue;
      Content c = piece.content;
      if (flat(c.what).owner != root)
        return faults_.fail("P15", "reduces " + describe(plan_, c) + " to a rank that does not own it");
      c.tag = nodes_.reduced(c.tag, Group::shard);
      of(full.buffer).write(piece.begin, piece.end, at_.shard == root ? c : simple(Meaning::scratch));
    }
  }

  /// Parameters of whole flats, or their state, from their owner.
  void send_owned(const Operand& full, std::int32_t root, Group group) {
    if (!wants_group(group, Group::shard)) return;
    if (root < 0 || root >= shards_) return faults_.fail("P18", "there is no rank " + std::to_string(root));
    const bool sends = at_.shard == root;
    if (sends ? !full.reads() : !full.writes())
      return faults_.fail("P18", "a broadcast reads on its root and writes elsewhere");
    const std::int32_t f = flat_in(plan_, full.buffer);
    if (f < 0) {
      // State, on its way to the digest.
      for (const Piece& piece : read(full)) {
        const Meaning m = piece.content.meaning;
        if (sends && m != Meaning::master && m != Meaning::moment)
          return faults_.fail("P23", "sends " + describe(plan_, piece.content) + " in place of state");
      }
      if (!sends) write(full, simple(Meaning::foreign));
      return;
    }
    if (flat(f).owner != root)
      return faults_.fail("P17", "sends flat " + std::to_string(f) + " from a rank that does not own it");
    if (elems(full) != flat(f).elems.count()) return faults_.fail("P18", "does not send all of a flat");
    // Gathered before the step, or refreshed behind it.
    const bool stepped = plan_.strategy.effective_stage() != 3 && in_step_;
    const Content content = parameters(f, 0, stepped ? 1 : 0);
    if (sends) {
      expect(part_of(full, 0, used(f)), content, stepped ? "P17" : "P11");
      return;
    }
    write(part_of(full, 0, used(f)), content);
    const Range r = elements(full);
    if (used(f) < elems(full))
      of(full.buffer).write(r.begin + used(f), r.end, {.meaning = Meaning::padding, .what = f, .start = used(f)});
  }

  // --- optimizer and reports -------------------------------------------------------------------------------------

  void initialize(const Op& op, const Initialize& a) {
    if (!count(op, 1, "P22")) return;
    const Operand& o = op.operands[0];
    if (!access(o, Access::write, "P22")) return;
    const std::int64_t begin = a.first_elem.count() + at_.shard * a.rank_stride_elems.count();
    const Range part{begin, begin + a.elems.count()};
    if (elems(o) != a.elems.count() || part.begin < 0 || part.end > flat(a.flat).elems.count())
      return faults_.fail("P22", "creates another size than the flat's");
    const std::int64_t real = std::max<std::int64_t>(0, std::min(part.end, used(a.flat)) - part.begin);
    const Range r = elements(o);
    const bool master = plan_.buffer(o.buffer).category == Category::master_parameter;
    if (master && !trained(a.flat, "makes masters for")) return;
    if (dtype(o) != (master ? Dtype::f32 : plan_.strategy.storage()))
      return faults_.fail("P22", "creates parameters of the wrong type");
    if (real > 0)
      of(o.buffer).write(r.begin, r.begin + real,
                         master ? masters(a.flat, part.begin, 0) : parameters(a.flat, part.begin, 0));
    if (real < elems(o))
      of(o.buffer).write(r.begin + real, r.end,
                         {.meaning = Meaning::padding, .what = a.flat, .start = part.begin + real});
  }

  void zero(const Op& op, const ZeroState& a) {
    if (!trained(a.flat, "makes optimizer state for")) return;
    for (const Operand& o : op.operands) {
      if (!access(o, Access::write, "P16")) return;
      write(o, simple(Meaning::zero));
    }
  }

  void step(const Op& op, const OptimizerStep& a) {
    const std::size_t states = plan_.strategy.optimizer == OptimizerKind::sgd ? 0 : 2;
    const bool controlled = plan_.strategy.is_controlled();
    if (!count(op, 4 + states + (controlled ? 1 : 0), "P16")) return;
    if (a.factor != left_to_multiply()) return faults_.fail("P26", "multiplies the gradient by the wrong factor");
    const std::int64_t start = a.first_elem.count() + at_.shard * a.rank_stride_elems.count();
    const std::int64_t count_ = a.elems.count();
    if (!trained(a.flat, "steps")) return;
    if (a.flat < 0 || static_cast<std::size_t>(a.flat) >= plan_.flats.size() || count_ <= 0 || start < 0 ||
        start + count_ > used(a.flat))
      return faults_.fail("P16", "steps elements that the flat does not have");
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const Operand& o = op.operands[i];
      if (i == 2 || i == 3 || i == 4 + states) continue;  // scalars, counts, control
      if (elems(o) != count_)
        return faults_.fail("P16", "operand " + std::to_string(i) + " has " + std::to_string(elems(o)) +
                                       " elements instead of " + std::to_string(count_));
      if (dtype(o) != (i == 1 ? plan_.strategy.reduction() : Dtype::f32))
        return faults_.fail("P16", "operand " + std::to_string(i) + " has the wrong type");
    }
    if (!access(op.operands[0], Access::update, "P16") || !access(op.operands[1], Access::read, "P16") ||
        !access(op.operands[2], Access::read, "P16") || !access(op.operands[3], Access::update, "P16"))
      return;
    const bool has_masters = plan_.strategy.has_masters();
    if (!expect(op.operands[0], has_masters ? masters(a.flat, start, 0) : parameters(a.flat, start, 0), "P16")) return;
    if (!expect_step_gradient(op.operands[1], a.flat, start, "steps with ")) return;
    if (controlled) {
      if (!access(op.operands.back(), Access::read, "P26") ||
          !expect(op.operands.back(), simple(Meaning::control), "P26"))
        return;
      if (const auto wrong = book_.step(a.flat, {start, start + count_})) return faults_.fail("P26", *wrong);
    }
    if (!expect(op.operands[2], simple(Meaning::scalars), "P16")) return;
    const Operand& counts = op.operands[3];
    if (elems(counts) != static_cast<std::int64_t>(plan_.model->parameters.size()))
      return faults_.fail("P16", "does not count the steps of every parameter");
    if (read(counts).front().content.meaning != Meaning::zero && !expect(counts, simple(Meaning::counts), "P16"))
      return;
    write(counts, simple(Meaning::counts));
    for (std::size_t k = 0; k < states; ++k) {
      const Operand& o = op.operands[4 + k];
      if (!access(o, Access::update, "P16")) return;
      const Content moment{.meaning = Meaning::moment, .what = a.flat, .start = start, .tag = k};
      const Content newborn = read(o).front().content;
      if (newborn.meaning != Meaning::zero && !expect(o, moment, "P16")) return;
      write(o, moment);
    }
    write(op.operands[0], has_masters ? masters(a.flat, start, 1) : parameters(a.flat, start, 1));
  }

  /// The whole gradient of the step, reduced, of a flat's elements from `start` on.
  bool expect_step_gradient(const Operand& o, std::int32_t f, std::int64_t start, const char* does) {
    for (const Piece& piece : read(o)) {
      const Content& c = piece.content;
      const std::int64_t at = start + piece.begin - elements(o).begin;
      if (c.meaning != Meaning::gradient || c.what != f || c.start != at) {
        faults_.fail(c.meaning == Meaning::nothing ? "P8" : "P16", does + describe(plan_, c) + " in " + name(o));
        return false;
      }
      if (!complete(o, c)) return false;
      if (!nodes_.reach(c.tag).complete(plan_.strategy)) {
        faults_.fail("P15", does + describe(plan_, c) + ", which was not reduced over the ranks");
        return false;
      }
      if (const auto wrong = nodes_.wrong_as_root(c.tag, at_.data)) {
        faults_.fail("P14", *wrong + " of " + name(o));
        return false;
      }
    }
    return true;
  }

  // --- control: P26 ----------------------------------------------------------------------------------------------

  [[nodiscard]] std::int64_t fact_slots() const { return plan_.strategy.has_scaler() ? 2 : 1; }
  static constexpr std::int64_t kFactWords = kGradientFactsBytes.count() / 8;

  void load_scalars(const Op& op) {
    if (!count(op, plan_.strategy.is_controlled() ? 2 : 1, "P16")) return;
    write(op.operands[0], simple(Meaning::scalars));
    if (op.operands.size() > 1 && access(op.operands[1], Access::write, "P26"))
      write(op.operands[1], simple(Meaning::knobs));
  }

  void begin_control(const Op& op) {
    const bool scaler = plan_.strategy.has_scaler();
    if (!count(op, scaler ? 4 : 2, "P26") || !access(op.operands[0], Access::read, "P26") ||
        !access(op.operands[1], Access::write, "P26") || !expect(op.operands[0], simple(Meaning::knobs), "P26"))
      return;
    if (elems(op.operands[1]) != fact_slots() * kFactWords || dtype(op.operands[1]) != Dtype::i64)
      return faults_.fail("P26", "there is not room for all facts");
    book_.begin();
    write(op.operands[1], simple(Meaning::facts));
    if (!scaler) return;
    const Operand& state = op.operands[2];
    if (!access(state, Access::update, "P26") || !access(op.operands[3], Access::write, "P26")) return;
    if (read(state).front().content.meaning != Meaning::zero && !expect(state, simple(Meaning::scaler), "P26")) return;
    write(state, simple(Meaning::scaler));
    write(op.operands[3], simple(Meaning::loss_scale));
  }

  /// One more inspection in the slot of the facts that `o` must be.
  void note(const Operand& o, std::int64_t slot, std::uint64_t before) {
    if (!access(o, Access::update, "P26")) return;
    if (elements(o).begin != slot * kFactWords || elems(o) != kFactWords)
      return faults_.fail("P26", "notes facts at the wrong place");
    Content content{.meaning = Meaning::facts, .start = slot * kFactWords, .tag = before};
    if (!expect(o, content, "P26")) return;
    ++content.tag;
    write(o, content);
  }

  void inspect(const Op& op, const InspectGradient& a) {
    if (!count(op, 2, "P26") || !access(op.operands[0], Access::read, "P26")) return;
    const std::int64_t start = a.first_elem.count() + at_.shard * a.rank_stride_elems.count();
    const Range range{start, start + a.elems.count()};
    if (!in_flats(a.flat) || start < 0 || range.end > used(a.flat) || elems(op.operands[0]) != a.elems.count() ||
        dtype(op.operands[0]) != plan_.strategy.reduction())
      return faults_.fail("P26", "inspects elements that the flat does not have");
    if (!expect_step_gradient(op.operands[0], a.flat, start, "inspects ")) return;
    note(op.operands[1], 0, book_.stepped());
    if (const auto wrong = book_.inspect(a.flat, range)) return faults_.fail("P26", *wrong);
    if (plan_.strategy.has_scaler() && ranks_ == 1)
      for (const Piece& piece : read(op.operands[0]))
        if (!book_.knows_local(a.flat, piece.content.tag))
          return faults_.fail("P26", describe(plan_, piece.content) + " was not inspected where it was completed");
  }

  void inspect_local(const Op& op, const InspectGradient& a) {
    if (!count(op, 2, "P26") || !access(op.operands[0], Access::read, "P26")) return;
    if (!in_flats(a.flat) || a.first_elem.count() != 0 || a.rank_stride_elems.count() != 0 ||
        a.elems.count() != used(a.flat) || elems(op.operands[0]) != used(a.flat))
      return faults_.fail("P26", "inspects a part of a local gradient");
    const Range r = elements(op.operands[0]);
    std::optional<Node> node;
    for (const Piece& piece : read(op.operands[0])) {
      const Content& c = piece.content;
      if (c.meaning != Meaning::gradient || c.what != a.flat || c.start != piece.begin - r.begin ||
          (node && *node != c.tag))
        return faults_.fail(c.meaning == Meaning::nothing ? "P8" : "P26", "inspects " + describe(plan_, c));
      if (!complete(op.operands[0], c)) return;
      node = c.tag;
    }
    note(op.operands[1], 1, book_.local());
    book_.inspect_local(a.flat, *node);
  }

  /// All of this rank's facts, with everything that was inspected until now.
  bool expect_facts(const Operand& o) {
    if (elems(o) != fact_slots() * kFactWords) {
      faults_.fail("P26", "not all facts");
      return false;
    }
    for (std::int64_t slot = 0; slot < fact_slots(); ++slot)
      if (!expect(part_of(o, slot * kFactWords, kFactWords),
                  {.meaning = Meaning::facts,
                   .start = slot * kFactWords,
                   .tag = slot == 0 ? book_.stepped() : book_.local()},
                  "P26"))
        return false;
    return true;
  }

  /// Ranks that share a model have the norm in parts.
  [[nodiscard]] Group facts_group() const {
    if (plan_.strategy.tensor_parallel > 1) return Group::world;
    return plan_.strategy.has_scaler() ? Group::data : Group::shard;
  }

  void decide(const Op& op, const Decide& a) {
    const Strategy& s = plan_.strategy;
    const bool scaler = s.has_scaler();
    if (!count(op, scaler ? 4 : 3, "P26") || !access(op.operands[0], Access::read, "P26") ||
        !access(op.operands[1], Access::read, "P26") || !access(op.operands[2], Access::write, "P26"))
      return;
    const std::int32_t counted = s.tensor_parallel * (s.effective_stage() == 0 ? 1 : shards_);
    const std::int32_t members = s.tensor_parallel > 1 || scaler ? s.world_size : counted;
    if (a.counted != counted || a.members != members)
      return faults_.fail("P26", "decides on the facts of " + std::to_string(a.counted) + " of " +
                                     std::to_string(a.members) + " ranks");
    if (a.factor != left_to_multiply()) return faults_.fail("P26", "decides for gradients times another factor");
    if (elems(op.operands[0]) != members * fact_slots() * kFactWords) return faults_.fail("P26", "not all facts");
    if (members == 1) {
      if (!expect_facts(op.operands[0])) return;
    } else if (!expect(op.operands[0], {.meaning = Meaning::all_facts, .tag = book_.version()}, "P26")) {
      return;
    }
    if (!expect(op.operands[1], simple(Meaning::knobs), "P26")) return;
    if (scaler) {
      if (!access(op.operands[3], Access::update, "P26") || !expect(op.operands[3], simple(Meaning::scaler), "P26"))
        return;
      write(op.operands[3], {.meaning = Meaning::scaler, .tag = 1});
    }
    write(op.operands[2], simple(Meaning::control));
    book_.decide();
  }

  void end_control() {
    if (const auto wrong = book_.end()) faults_.fail("P26", *wrong);
    for (std::size_t b = 0; b < contents_.size(); ++b)
      contents_[b].for_each([&](Content& c) {
        if (c.meaning == Meaning::scaler && c.tag != 1) faults_.fail("P26", "the loss scaler was not updated");
        c.tag = c.meaning == Meaning::scaler ? 0 : c.tag;
        // What a step knows and decides holds for that step.
        if (c.meaning == Meaning::control || c.meaning == Meaning::knobs || c.meaning == Meaning::facts ||
            c.meaning == Meaning::all_facts || c.meaning == Meaning::loss_scale)
          c = simple(Meaning::scratch);
      });
  }

  void mean_loss(const Op& op, const MeanLoss& a) {
    if (!count(op, 2, "P20")) return;
    const std::int64_t micro_steps = plan_.strategy.accumulation();
    const Operand& in = op.operands[0];
    if (elems(in) != ranks_ * micro_steps) return faults_.fail("P20", "does not average all losses");
    for (std::int32_t j = 0; ranks_ == 1 && j < static_cast<std::int32_t>(micro_steps); ++j)
      if (!expect(part_of(in, j, 1), simple(Meaning::loss, j), "P20")) return;
    if (ranks_ > 1 && !expect(in, simple(Meaning::all_losses), "P20")) return;
    for (const Op& load : phase_->ops) {
      const auto* batch = std::get_if<LoadBatch>(&load.action);
      if (batch == nullptr) continue;
      const std::int64_t j = load.micro_step;
      // Ranks' losses are taken in the order in which the batches were dealt.
      const std::int64_t last = ranks_ - 1;
      for (const std::int64_t r : {std::int64_t{0}, std::min<std::int64_t>(1, last), std::int64_t{shards_} - 1,
                                   std::min<std::int64_t>(shards_, last), last})
        if (a.dealing.place(
                batch->micro_batch(static_cast<std::int32_t>(r % shards_), static_cast<std::int32_t>(r / shards_)),
                a.micro_steps, a.shards) != r * micro_steps + j)
          return faults_.fail("P20", "takes losses for those of other micro-batches");
    }
    write(op.operands[1], simple(Meaning::mean_loss));
    loss_known_ = true;
  }

  void copy(const Op& op) {
    if (!count(op, 2, "P23") || !access(op.operands[0], Access::read, "P23")) return;
    const Operand& to = op.operands[1];
    const Buffer& source = plan_.buffer(op.operands[0].buffer);
    // What crosses is as small as it is on either side.
    if (source.memory != plan_.buffer(to.buffer).memory &&
        bytes_per_element(source.dtype) > bytes_per_element(dtype(to)))
      return faults_.fail("P25", "moves " + name(op.operands[0]) + " between memories before it is rounded");
    if (elems(to) != elems(op.operands[0]) || !to.writes())
      return faults_.fail("P23", "copies between different sizes");
    const bool to_parameters = plan_.buffer(to.buffer).category == Category::parameter;
    const std::int64_t shift = elements(to).begin - elements(op.operands[0]).begin;
    std::int64_t padding = std::numeric_limits<std::int64_t>::max();  // where a flat's gradient ends
    for (const Piece& piece : read(op.operands[0])) {
      if (piece.begin >= padding && piece.content.meaning == Meaning::nothing) continue;
      if (piece.content.meaning == Meaning::gradient)
        padding = piece.begin + used(piece.content.what) - piece.content.start;
      if (piece.content.meaning == Meaning::nothing)
        return faults_.fail("P8", "copies " + name(op.operands[0]) + " before anything wrote it");
      Content c = piece.content;
      // Masters rounded to the stored type are the parameters.
      if (c.meaning == Meaning::master && to_parameters && dtype(to) == plan_.strategy.storage())
        c.meaning = Meaning::parameter;
      of(to.buffer).write(piece.begin + shift, piece.end + shift, c);
    }
  }

  void digest(const Op& op, const Digest& a) {
    if (!count(op, 1, "P23")) return;
    const Operand& o = op.operands[0];
    if (!access(o, Access::read, "P23")) return;
    Range part{0, used(a.flat)};
    if (a.param.valid()) {
      const auto p = static_cast<std::size_t>(a.param.value);
      part = {place_[p].offset, place_[p].offset + plan_.model->parameters[p].elems.count()};
    }
    if (part.end - part.begin > elems(o)) return faults_.fail("P23", "does not hash all of the flat");
    const Operand real = part_of(o, 0, part.end - part.begin);
    // What only other ranks know is right on theirs.
    if (const std::vector<Piece> pieces = read(real); pieces.front().content.meaning == Meaning::foreign) return;
    const auto meaning = [&] {
      switch (a.content) {
        case Digest::Content::parameter: return Meaning::parameter;
        case Digest::Content::master: return Meaning::master;
        case Digest::Content::first_moment:
        case Digest::Content::second_moment: break;
      }
      return Meaning::moment;
    };
    expect(real,
           {.meaning = meaning(),
            .what = a.flat,
            .start = part.begin,
            .tag = a.content == Digest::Content::second_moment ? 1U : 0U},
           "P23");
  }

  const Plan& plan_;
  Position at_;
  std::int32_t shards_;  ///< ranks that share a flat
  std::int32_t ranks_;   ///< data-parallel ranks
  Faults& faults_;
  GraphGradients expected_;
  GradientNodes nodes_;
  ControlBook book_;
  std::vector<Contents> contents_;     // by buffer
  std::vector<Place> place_;           // by parameter
  std::vector<std::int32_t> same_as_;  // by value: the one whose name its bytes have
  const PhaseOps* phase_ = nullptr;
  bool in_step_ = false;
  bool loss_known_ = false;
};

}  // namespace

void check_meaning(const Plan& plan, std::int32_t rank, Faults& faults) {
  Interpreter(plan, rank, faults).check();
}

}  // namespace shard::plan::verification
