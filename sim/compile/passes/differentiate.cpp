// Pass differentiate: reverse-mode derivatives of the forward operators, and which values forward must keep.
#include <algorithm>
#include <cassert>
#include <map>
#include <set>

#include "sim/compile/passes/operands.h"
#include "sim/compile/passes/passes.h"
#include "sim/model/freeze.h"

namespace shard::plan {
namespace {

using model::ParamId;
using model::Role;
using model::Slot;
using model::ValueId;

class Differentiator {
 public:
  explicit Differentiator(Draft plan)
      : plan_(std::move(plan)), graph_(*plan_.graph), needed_(model::values_with_gradient(graph_)) {}

  Draft run() {
    make_gradient_buffers();
    find_passers();
    for (auto it = graph_.operators.rbegin(); it != graph_.operators.rend(); ++it) differentiate_in_turn(*it);
    assert(waiting_.empty() && "gradients that wait for each other");
    std::vector<Op>& ops = plan_.find(Phase::steady_step)->ops;
    for (const Op& op : backward_) {
      for (const Operand& operand : op.operands)
        if (operand.reads()) keep(operand.buffer);
      ops.push_back(op);
    }
    return std::move(plan_);
  }

 private:
  void make_gradient_buffers() {
    for (const Parameter& p : plan_.model->parameters) {
      const ParamId id{static_cast<std::int32_t>(plan_.gradients.size())};
      plan_.gradients.push_back(plan_.model->is_frozen(id)
                                    ? BufferId{}
                                    : plan_.add_buffer({.name = plan_.text("d ", p.name),
                                                        .category = Category::gradient,
                                                        .dtype = plan_.strategy.storage(),
                                                        .bytes = bytes_of(plan_.strategy.storage(), p.elems)}));
    }
    gradient_begun_.assign(plan_.model->parameters.size(), false);
  }

  /// Values made by forward and read by backward are saved activations.
  void keep(BufferId id) {
    Buffer& buffer = plan_.buffer(id);
    const std::int32_t v = id.value - plan_.values_begin;
    const bool value = v >= 0 && v < static_cast<std::int32_t>(graph_.values.size());
    if (value && buffer.category == Category::workspace) buffer.category = Category::activation;
  }

  /// Something that is trained lies under v.
  [[nodiscard]] bool needed(ValueId v) const { return needed_[static_cast<std::size_t>(v.value)]; }
  [[nodiscard]] BufferId value(ValueId v) const { return plan_.value_buffer(v); }
  [[nodiscard]] BufferId gradient(ValueId v) const {
    const auto it = gradient_of_.find(v.value);
    assert(it != gradient_of_.end() && "an operator's result must be used");
    return it->second;
  }

  // Backward goes from the last operator to the first, but where a gradient has several names. An operator that passes
  // its result's gradient on gives its inputs that buffer, and two rules follow for others that have such an input, as
  // a norm of a block's input that stands behind what a parallel branch made of it:
  // 1. Passing on comes first: it gives a buffer, and does not add to one.
  // 2. What adds to the buffer as the gradient of one value comes behind all that read it as that of another.

  /// By value: operators that will pass a gradient on to it.
  void find_passers() {
    for (const model::Operator& op : graph_.operators)
      if (model::row(op.kind).gradient == model::Gradient::passed_on && needed(op.outputs[0]))
        for (ValueId x : op.inputs) ++passers_[x.value];
  }

  [[nodiscard]] bool waits(const model::Operator& op) const {
    const auto made = [&](const model::Operator* other) {
      return std::ranges::find(other->inputs, op.outputs[0]) != other->inputs.end();
    };
    if (std::ranges::any_of(waiting_, made)) return true;
    if (model::row(op.kind).gradient == model::Gradient::passed_on || !needed(op.outputs[0])) return false;
    return std::ranges::any_of(op.inputs, [&](ValueId x) {
      if (!needed(x)) return false;
      if (const auto passers = passers_.find(x.value); passers != passers_.end() && passers->second > 0) return true;
      const auto buffer = gradient_of_.find(x.value);
      if (buffer == gradient_of_.end()) return false;
      const auto names = unread_.find(buffer->second.value);
      return names != unread_.end() && std::ranges::any_of(names->second, [&](std::int32_t name) {
               return name != x.value && name != op.outputs[0].value;
             });
    });
  }

  void differentiate_now(const model::Operator& op) {
    differentiate(op);
    if (const auto buffer = gradient_of_.find(op.outputs[0].value); buffer != gradient_of_.end())
      if (const auto names = unread_.find(buffer->second.value); names != unread_.end())
        names->second.erase(op.outputs[0].value);
    if (model::row(op.kind).gradient == model::Gradient::passed_on && needed(op.outputs[0]))
      for (ValueId x : op.inputs) --passers_[x.value];
  }

  /// The operator, and then those that waited for it.
  void differentiate_in_turn(const model::Operator& op) {
    waiting_.push_back(&op);
    for (std::size_t i = 0; i < waiting_.size();) {
      const model::Operator* next = waiting_[i];
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      if (waits(*next)) {
        waiting_.insert(waiting_.begin() + static_cast<std::ptrdiff_t>(i++), next);
        continue;
      }
      differentiate_now(*next);
      i = 0;
    }
  }

  /// The buffer of the gradient of v: made by its first contribution, added to by others.
  BufferId into(ValueId v, model::Extent extent) {
    if (const auto it = gradient_of_.find(v.value); it != gradient_of_.end()) return it->second;
    const bool of_all = extent == model::Extent::all_columns;
    Buffer made{.name = plan_.text("d ", plan_.buffer(value(v)).name, of_all ? " of all ranks" : ""),
                .category = Category::workspace,
                .dtype = plan_.buffer(value(v)).dtype,
                .bytes = plan_.buffer(value(v)).bytes};
    if (of_all) made.bytes = plan_.strategy.tensor_parallel * made.bytes;
    return gradient_of_[v.value] = plan_.add_buffer(made);
  }

  /// The gradient of v becomes that of `from` itself; both names then mean one buffer.
  void alias(ValueId v, ValueId from) {
    if (!needed(v)) return;
    assert(!gradient_of_.contains(v.value) && "an aliased gradient is the first contribution");
    gradient_of_[v.value] = gradient(from);
    unread_[gradient(from).value].insert(v.value);
    if (const auto users = ++aliases_[gradient(from).value]; users > 1) shared_.insert(gradient(from).value);
  }

  /// Whose gradient the operator's input `i` contributes to.
  [[nodiscard]] ValueId receiver(const model::Operator& op, std::size_t i) const {
    // Its own columns of the gradient are those of what was gathered.
    const bool joins = model::row(op.kind).gradient == model::Gradient::of_what_is_joined;
    return joins ? graph_.operators[index_of(op) - 1].inputs[0] : op.inputs[i];
  }

  /// What the operator's op of that direction has, as things stand: which gradients are wanted, which are begun, and
  /// whether dy has no other reader left.
  Compute action(const model::Operator& op, Direction direction) {
    Compute c{.kind = op.kind,
              .direction = direction,
              .source = static_cast<std::int32_t>(index_of(op)),
              .attributes = &op.attributes,
              .input_gradient = std::ranges::any_of(op.inputs, [&](ValueId v) { return needed(v); })};
    c.in_place = signature(c).has(Role::dy) && !shared_.contains(gradient(op.outputs[0]).value) &&
                 !gradient_of_.contains(op.inputs[0].value);
    for (const Slot& slot : signature(c)) {
      const auto i = static_cast<std::size_t>(slot.index);
      if (slot.role == Role::dx) c.accumulate_input = gradient_of_.contains(receiver(op, i).value);
      if (slot.role == Role::dp) c.accumulate_weight = gradient_begun_[static_cast<std::size_t>(op.params[i].value)];
    }
    assert((!c.accumulate_input || op.inputs.size() == 1) && "one of several inputs has one use");
    if (model::row(op.kind).loss) c.scale = plan_.strategy.leaf_scale();
    return c;
  }

  /// The buffer of one operand, and what it now holds.
  BufferId buffer_of(const model::Operator& op, const Slot& slot, Direction direction, Bytes workspace) {
    const auto i = static_cast<std::size_t>(slot.index);
    switch (slot.role) {
      case Role::x:
      case Role::statistic: {
        const BufferId id = value(model::value_of(op, slot));
        if (slot.becomes == Role::dx) gradient_of_[op.inputs[i].value] = id;
        return id;
      }
      case Role::p: return BufferId{op.params[i].value};
      case Role::dy: {
        const BufferId id = gradient(op.outputs[0]);
        if (slot.becomes == Role::dx) gradient_of_[op.inputs[i].value] = id;
        return id;
      }
      case Role::dx: return into(receiver(op, i), slot.extent);
      case Role::dp: {
        const auto p = static_cast<std::size_t>(op.params[i].value);
        gradient_begun_[p] = true;
        return plan_.gradients[p];
      }
      case Role::workspace:
        return plan_.add_buffer({.name = plan_.text(op.name, ".workspace ", model::to_string(direction)),
                                 .category = Category::workspace,
                                 .bytes = workspace});
      case Role::none:
      case Role::y:
      case Role::loss_scale: break;
    }
    assert(false && "no operand of a backward op");
    return {};
  }

  /// The op of that direction, where there is one and something wants what it makes.
  void emit(const model::Operator& op, Direction direction) {
    Compute c = action(op, direction);
    if (!signature(c).makes_gradient()) return;
    const Bytes workspace = plan_.target.workspace(op.kind, direction, op.attributes);
    c.workspace = workspace.count() > 0;
    const List<Operand> operands =
        operands_of(plan_, c, [&](const Slot& slot) { return buffer_of(op, slot, direction, workspace); });
    backward_.push_back({.name = plan_.text(op.name, " ", model::to_string(direction)),
                         .part = Part::backward,
                         .block = op.block,
                         .action = c,
                         .operands = operands});
  }

  void differentiate(const model::Operator& op) {
    if (!needed(op.outputs[0])) return;
    switch (model::row(op.kind).gradient) {
      case model::Gradient::elsewhere: return;
      case model::Gradient::passed_on:
        emit(op, Direction::backward);
        for (ValueId x : op.inputs) alias(x, op.outputs[0]);
        return;
      case model::Gradient::summed: assert(!shared_.contains(gradient(op.outputs[0]).value)); [[fallthrough]];
      case model::Gradient::gathered:
        assert(!gradient_of_.contains(op.inputs[0].value));
        emit(op, Direction::backward);
        start_before_last_weight();
        return;
      case model::Gradient::made:
      case model::Gradient::of_what_is_joined:
        for (Direction d : {Direction::backward, Direction::backward_input, Direction::backward_weight}) emit(op, d);
        return;
    }
  }

  [[nodiscard]] std::size_t index_of(const model::Operator& op) const {
    return static_cast<std::size_t>(&op - graph_.operators.data());
  }

  /// Moves the op just emitted before the one before, where that is the gradient of a weight.
  void start_before_last_weight() {
    const std::size_t last = backward_.size() - 1;
    const auto* before = last > 0 ? std::get_if<Compute>(&backward_[last - 1].action) : nullptr;
    if (before != nullptr && before->direction == Direction::backward_weight)
      std::swap(backward_[last - 1], backward_[last]);
  }

  Draft plan_;
  const model::Graph& graph_;
  std::vector<bool> needed_;  ///< by value: whether it gets a gradient
  std::vector<Op> backward_;
  std::map<std::int32_t, BufferId> gradient_of_;  ///< by ValueId
  std::map<std::int32_t, int> aliases_;           ///< names that mean one gradient buffer
  std::set<std::int32_t> shared_;                 ///< gradient buffers with several readers: never updated in place
  std::vector<bool> gradient_begun_;
  std::map<std::int32_t, int> passers_;  ///< by ValueId: what has yet to pass a gradient on to it
  std::map<std::int32_t, std::set<std::int32_t>>
      unread_;                                   ///< by gradient buffer: names under which it is yet to be read
  std::vector<const model::Operator*> waiting_;  ///< operators whose turn has not come, the last one first
};

}  // namespace

Draft differentiate(Draft plan) {
  return Differentiator(std::move(plan)).run();
}

}  // namespace shard::plan
