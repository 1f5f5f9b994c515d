// Pass differentiate: reverse-mode derivatives of the forward operators, and which values forward must keep.
#include <algorithm>
#include <cassert>
#include <iterator>
#include <map>
#include <set>

#include "sim/compile/passes/operands.h"
#include "sim/compile/passes/passes.h"
#include "sim/model/freeze.h"
#include "sim/target/workspace.h"

namespace shard::plan {
namespace {

using model::OperatorKind;
using model::ParamId;
using model::ValueId;

class Differentiator {
 public:
  explicit Differentiator(Plan plan)
      : plan_(std::move(plan)), graph_(*plan_.graph), needed_(model::values_with_gradient(graph_)) {}

  Plan run() {
    make_gradient_buffers();
    for (auto it = graph_.operators.rbegin(); it != graph_.operators.rend(); ++it) differentiate(*it);
    std::vector<Op>& ops = plan_.find(Phase::steady_step)->ops;
    for (Op& op : backward_) {
      for (const Operand& operand : op.operands)
        if (operand.reads()) keep(operand.buffer);
      ops.push_back(std::move(op));
    }
    return std::move(plan_);
  }

 private:
  void make_gradient_buffers() {
    for (const Parameter& p : plan_.model->parameters) {
      const ParamId id{static_cast<std::int32_t>(plan_.gradients.size())};
      plan_.gradients.push_back(plan_.model->is_frozen(id)
                                    ? BufferId{}
                                    : plan_.add_buffer({.name = "d " + p.name,
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

  /// The operand that receives a contribution to the gradient of v: written first, added to afterwards.
  Operand contribution(ValueId v, bool& accumulate) {
    if (const auto it = gradient_of_.find(v.value); it != gradient_of_.end()) {
      accumulate = true;
      return updates(plan_, it->second);
    }
    accumulate = false;
    const BufferId id = plan_.add_buffer({.name = "d " + plan_.buffer(value(v)).name,
                                          .category = Category::workspace,
                                          .dtype = plan_.buffer(value(v)).dtype,
                                          .bytes = plan_.buffer(value(v)).bytes});
    gradient_of_[v.value] = id;
    return writes(plan_, id);
  }

  Operand parameter_gradient(ParamId p, bool& accumulate) {
    const auto index = static_cast<std::size_t>(p.value);
    accumulate = gradient_begun_[index];
    gradient_begun_[index] = true;
    const BufferId id = plan_.gradients[index];
    return accumulate ? updates(plan_, id) : writes(plan_, id);
  }

  /// The same for all parameters of an operator that are not frozen.
  std::vector<Operand> parameter_gradients(const model::Operator& op, bool& accumulate) {
    std::vector<Operand> operands;
    for (std::size_t i = 0; i < op.params.size(); ++i)
      if (!op.attributes.freezes(i)) operands.push_back(parameter_gradient(op.params[i], accumulate));
    return operands;
  }

  /// The gradient of v becomes that of `from` itself; both names then mean one buffer.
  void alias(ValueId v, ValueId from) {
    if (!needed(v)) return;
    assert(!gradient_of_.contains(v.value) && "an aliased gradient is the first contribution");
    gradient_of_[v.value] = gradient(from);
    if (const auto users = ++aliases_[gradient(from).value]; users > 1) shared_.insert(gradient(from).value);
  }

  Op& emit(const model::Operator& source, Direction direction, std::vector<Operand> operands, const char* suffix) {
    const Bytes workspace =
        compute_workspace(source.kind, direction, source.attributes, plan_.strategy.storage(), plan_.strategy.threads);
    if (workspace.count() > 0)
      operands.push_back(writes(plan_, plan_.add_buffer({.name = source.name + ".workspace" + suffix,
                                                         .category = Category::workspace,
                                                         .bytes = workspace})));
    backward_.push_back({.name = source.name + suffix,
                         .part = Part::backward,
                         .block = source.block,
                         .action = Compute{.kind = source.kind,
                                           .direction = direction,
                                           .source = static_cast<std::int32_t>(&source - graph_.operators.data()),
                                           .attributes = source.attributes},
                         .operands = std::move(operands)});
    return backward_.back();
  }

  void elementwise_in_place(const model::Operator& op, std::vector<Operand> saved) {
    const BufferId dy = gradient(op.outputs[0]);
    const bool shared = shared_.contains(dy.value) || gradient_of_.contains(op.inputs[0].value);
    bool accumulate = false;
    if (shared) {
      saved.push_back(reads(plan_, dy));
      saved.push_back(contribution(op.inputs[0], accumulate));
    } else {
      saved.push_back(updates(plan_, dy));
      gradient_of_[op.inputs[0].value] = dy;
    }
    std::get<Compute>(emit(op, Direction::backward, std::move(saved), " backward").action).accumulate_input =
        accumulate;
  }

  void differentiate(const model::Operator& op) {
    if (!needed(op.outputs[0])) return;
    bool into = false;
    bool weight = false;
    switch (op.kind) {
      case OperatorKind::add:
        alias(op.inputs[0], op.outputs[0]);
        alias(op.inputs[1], op.outputs[0]);
        return;
      case OperatorKind::tensor_sum: alias(op.inputs[0], op.outputs[0]); return;
      case OperatorKind::tensor_input: sum_gradient(op); return;
      case OperatorKind::tensor_part: gather_gradient(op); return;
      case OperatorKind::tensor_gather:
      case OperatorKind::vocabulary_statistics: return;
      case OperatorKind::join_columns: {
        // Its own columns of the gradient are those of what was gathered.
        const ValueId gathered = graph_.operators[index_of(op) - 1].inputs[0];
        Op& b = emit(op, Direction::backward, {reads(plan_, gradient(op.outputs[0])), contribution(gathered, into)},
                     " backward");
        std::get<Compute>(b.action).accumulate_input = into;
        return;
      }
      case OperatorKind::take_columns: {
        Op& b = emit(op, Direction::backward, {reads(plan_, gradient(op.outputs[0])), contribution(op.inputs[0], into)},
                     " backward");
        std::get<Compute>(b.action).accumulate_input = into;
        return;
      }
      case OperatorKind::add_bias: {
        backward_of_addend(op);
        return;
      }
      case OperatorKind::embedding:
      case OperatorKind::embedding_part: {
        Operand table = parameter_gradient(op.params[0], weight);
        Op& b = emit(op, Direction::backward,
                     {reads(plan_, value(op.inputs[0])), reads(plan_, gradient(op.outputs[0])), table}, " backward");
        std::get<Compute>(b.action).accumulate_weight = weight;
        return;
      }
      case OperatorKind::add_position: {
        backward_of_addend(op);
        return;
      }
      case OperatorKind::layer_norm:
      case OperatorKind::rms_norm: {
        std::vector<Operand> operands{reads(plan_, value(op.inputs[0])), reads(plan_, BufferId{op.params[0].value})};
        for (std::size_t i = 1; i < op.outputs.size(); ++i) operands.push_back(reads(plan_, value(op.outputs[i])));
        operands.push_back(reads(plan_, gradient(op.outputs[0])));
        if (needed(op.inputs[0])) operands.push_back(contribution(op.inputs[0], into));
        std::ranges::move(parameter_gradients(op, weight), std::back_inserter(operands));
        Op& b = emit(op, Direction::backward, std::move(operands), " backward");
        std::get<Compute>(b.action).accumulate_input = into;
        std::get<Compute>(b.action).accumulate_weight = weight;
        return;
      }
      case OperatorKind::linear: {
        const BufferId dy = gradient(op.outputs[0]);
        if (needed(op.inputs[0])) {
          Operand dx = contribution(op.inputs[0], into);
          Op& b = emit(op, Direction::backward_input,
                       {reads(plan_, dy), reads(plan_, BufferId{op.params[0].value}), dx}, " backward_input");
          std::get<Compute>(b.action).accumulate_input = into;
        }
        std::vector<Operand> gradients = parameter_gradients(op, weight);
        if (gradients.empty()) return;
        std::vector<Operand> operands;
        if (!op.attributes.freezes(0)) operands.push_back(reads(plan_, value(op.inputs[0])));
        operands.push_back(reads(plan_, dy));
        std::ranges::move(gradients, std::back_inserter(operands));
        Op& b = emit(op, Direction::backward_weight, std::move(operands), " backward_weight");
        std::get<Compute>(b.action).accumulate_weight = weight;
        return;
      }
      case OperatorKind::rotary:
      case OperatorKind::dropout: elementwise_in_place(op, {}); return;
      case OperatorKind::gelu: elementwise_in_place(op, {reads(plan_, value(op.inputs[0]))}); return;
      case OperatorKind::swiglu: {
        std::vector<Operand> operands{reads(plan_, value(op.inputs[0])), reads(plan_, value(op.inputs[1])),
                                      reads(plan_, gradient(op.outputs[0])), contribution(op.inputs[0], into)};
        operands.push_back(contribution(op.inputs[1], weight));
        assert(!into && !weight && "gate and up have one use each");
        emit(op, Direction::backward, std::move(operands), " backward");
        return;
      }
      case OperatorKind::attention: {
        std::vector<Operand> operands;
        for (ValueId v : op.inputs) operands.push_back(reads(plan_, value(v)));
        operands.push_back(reads(plan_, value(op.outputs[1])));
        operands.push_back(reads(plan_, gradient(op.outputs[0])));
        for (ValueId v : op.inputs) {
          operands.push_back(contribution(v, into));
          assert(!into && "queries, keys and values have one use each");
        }
        emit(op, Direction::backward, std::move(operands), " backward");
        return;
      }
      case OperatorKind::cross_entropy:
      case OperatorKind::cross_entropy_part: {
        const BufferId logits = value(op.inputs[0]);
        gradient_of_[op.inputs[0].value] = logits;
        loss_backward(op,
                      {updates(plan_, logits), reads(plan_, value(op.outputs[1])), reads(plan_, value(op.inputs[1]))});
        return;
      }
      case OperatorKind::mse: {
        std::vector<Operand> operands{reads(plan_, value(op.inputs[0])), reads(plan_, value(op.inputs[1]))};
        operands.push_back(contribution(op.inputs[0], into));
        loss_backward(op, std::move(operands));
        return;
      }
    }
  }

  /// y = x + a table or bias: what a parameter that is added gets; dx is dy.
  void backward_of_addend(const model::Operator& op) {
    bool accumulate = false;
    for (const Operand& gradient_of_addend : parameter_gradients(op, accumulate)) {
      Op& b = emit(op, Direction::backward, {reads(plan_, gradient(op.outputs[0])), gradient_of_addend}, " backward");
      std::get<Compute>(b.action).accumulate_weight = accumulate;
    }
    alias(op.inputs[0], op.outputs[0]);
  }

  [[nodiscard]] std::size_t index_of(const model::Operator& op) const {
    return static_cast<std::size_t>(&op - graph_.operators.data());
  }

  /// What each rank's columns contribute to the gradient of their common input, summed over the ranks in place. The sum
  /// is started before the last gradient of a weight, which does not need it.
  void sum_gradient(const model::Operator& op) {
    const BufferId sum = gradient(op.outputs[0]);
    assert(!shared_.contains(sum.value) && !gradient_of_.contains(op.inputs[0].value));
    gradient_of_[op.inputs[0].value] = sum;
    emit(op, Direction::backward, {updates(plan_, sum)}, " backward");
    start_before_last_weight();
  }

  void gather_gradient(const model::Operator& op) {
    const BufferId own = gradient(op.outputs[0]);
    Buffer all = plan_.buffer(own);
    all.name += " of all ranks";
    all.bytes = plan_.strategy.tensor_parallel * all.bytes;
    gradient_of_[op.inputs[0].value] = plan_.add_buffer(std::move(all));
    emit(op, Direction::backward, {reads(plan_, own), writes(plan_, gradient_of_[op.inputs[0].value])}, " backward");
    start_before_last_weight();
  }

  /// Moves the op just emitted before the one before, where that is the gradient of a weight.
  void start_before_last_weight() {
    const std::size_t last = backward_.size() - 1;
    const auto* before = last > 0 ? std::get_if<Compute>(&backward_[last - 1].action) : nullptr;
    if (before != nullptr && before->direction == Direction::backward_weight)
      std::swap(backward_[last - 1], backward_[last]);
  }

  void loss_backward(const model::Operator& op, std::vector<Operand> operands) {
    Op& b = emit(op, Direction::backward, std::move(operands), " backward");
    std::get<Compute>(b.action).scale = plan_.strategy.leaf_scale();
  }

  Plan plan_;
  const model::Graph& graph_;
  std::vector<bool> needed_;  ///< by value: whether it gets a gradient
  std::vector<Op> backward_;
  std::map<std::int32_t, BufferId> gradient_of_;  ///< by ValueId
  std::map<std::int32_t, int> aliases_;           ///< names that mean one gradient buffer
  std::set<std::int32_t> shared_;                 ///< gradient buffers with several readers: never updated in place
  std::vector<bool> gradient_begun_;
};

}  // namespace

Plan differentiate(Plan plan) {
  return Differentiator(std::move(plan)).run();
}

}  // namespace shard::plan
