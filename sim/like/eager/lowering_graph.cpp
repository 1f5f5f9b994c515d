// Which operators of a family's graph are one module of transformers, in which order they run, and how long values
// live.
#include <algorithm>
#include <cassert>
#include <map>
#include <span>

#include "sim/like/eager/lowering.h"

namespace shard::like::eager {
namespace {

using model::Operator;
using model::OperatorKind;

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

bool is_norm(const Operator& op) {
  return op.kind == OperatorKind::rms_norm || op.kind == OperatorKind::layer_norm;
}

/// Operators of one part, with who makes and who reads their values.
class Grouping {
 public:
  Grouping(std::span<const Operator> operators, Together together)
      : operators_(operators), together_(together), leader_(operators.size(), kNone) {
    for (std::size_t i = 0; i < operators.size(); ++i) {
      maker_[operators[i].outputs[0].value] = i;
      for (const model::ValueId v : operators[i].inputs) readers_[v.value].push_back(i);
    }
    for (std::size_t i = 0; i < operators.size(); ++i) group(i);
    for (std::size_t i = 0; i < operators.size(); ++i) {
      const auto readers = readers_.find(operators[i].outputs[0].value);
      if (together.norms && is_norm(operators[i]) && readers != readers_.end()) leader_[i] = leader(readers->second[0]);
    }
  }

  /// Of each operator: the last of its group.
  [[nodiscard]] std::size_t leader(std::size_t i) const { return leader_[i] == kNone ? i : leader_[i]; }

 private:
  void group(std::size_t i) {
    const Operator& op = operators_[i];
    if (op.kind == OperatorKind::attention) {
      const std::size_t out = only_reader(op.outputs[0]);
      assert(out != kNone && operators_[out].kind == OperatorKind::linear);
      leader_[i] = out;
      for (const model::ValueId v : op.inputs) follow_to_products(v, out);
    }
    if ((op.kind == OperatorKind::swiglu || op.kind == OperatorKind::geglu) && op.inputs.size() == 2)
      for (const model::ValueId v : op.inputs) follow_to_products(v, i);
    if (op.kind == OperatorKind::add) {  // whose first summand is a sum that nobody else reads
      const std::size_t first = maker(op.inputs[0]);
      if (first != kNone && operators_[first].kind == OperatorKind::add && only_reader(op.inputs[0]) == i)
        leader_[first] = i;
      if (together_.sums) join(op.inputs[1], OperatorKind::dropout, i);
    }
    if (op.kind == OperatorKind::add_position && together_.embeddings) join(op.inputs[0], OperatorKind::embedding, i);
  }
  void join(model::ValueId v, OperatorKind kind, std::size_t to) {
    const std::size_t at = maker(v);
    if (at != kNone && operators_[at].kind == kind) leader_[at] = to;
  }
  void follow_to_products(model::ValueId v, std::size_t to) {
    const std::size_t at = maker(v);
    assert(at != kNone);
    leader_[at] = to;
    if (operators_[at].kind != OperatorKind::linear) follow_to_products(operators_[at].inputs[0], to);
  }
  [[nodiscard]] std::size_t maker(model::ValueId v) const {
    const auto found = maker_.find(v.value);
    return found == maker_.end() ? kNone : found->second;
  }
  [[nodiscard]] std::size_t only_reader(model::ValueId v) const {
    const auto found = readers_.find(v.value);
    return found == readers_.end() || found->second.size() != 1 ? kNone : found->second[0];
  }

  std::span<const Operator> operators_;
  Together together_;
  std::vector<std::size_t> leader_;
  std::map<std::int32_t, std::size_t> maker_;
  std::map<std::int32_t, std::vector<std::size_t>> readers_;
};

bool is_packed_gate(const LoweredStep& step) {
  return step.ops.size() == 1 && (step.op().kind == OperatorKind::swiglu || step.op().kind == OperatorKind::geglu);
}

/// By value: the step behind which its last name is gone; kNone: the part's end.
std::vector<std::size_t> last_uses(const LoweredPart& part, Names names) {
  const std::vector<LoweredStep>& steps = part.steps;
  std::vector<std::size_t> last(part.values, kNone);
  for (std::size_t s = 0; s < steps.size(); ++s)
    for (const std::size_t v : steps[s].inputs) last[v] = s;
  const std::vector<std::size_t> read = last;
  const bool in_block = steps.front().op().block >= 0;
  bool first_norm = true;
  for (std::size_t s = 0; in_block && s < steps.size(); ++s) {
    const std::size_t v = steps[s].output;
    if (names != Names::rebound && names != Names::until_product && steps[s].find(OperatorKind::attention) != nullptr)
      last[v] = kNone;
    // gate, up = packed.chunk(2): a name of the module's until its last product.
    if (is_packed_gate(steps[s])) last[steps[s].inputs[0]] = read[v];
    if (!is_norm(steps[s].op()) || read[v] == kNone) continue;
    // From the module that the norm is for to the sum behind it.
    std::size_t product = read[v], sum = read[v];
    while (sum != kNone && steps[sum].op().kind != OperatorKind::add) {
      if (steps[sum].op().kind == OperatorKind::linear) product = sum;
      sum = read[steps[sum].output];
    }
    const bool to_end = names == Names::until_end || (names == Names::first_until_end && first_norm);
    if (names == Names::until_product) continue;
    last[v] = to_end ? kNone : names == Names::until_sum ? sum : product;
    first_norm = false;
  }
  return last;
}

/// Numbers values and says where each is read for the last time.
LoweredPart lowered_part(std::span<const Operator> operators, model::ValueId input, Names names, Together together) {
  const Grouping grouping(operators, together);
  LoweredPart part;
  std::map<std::int32_t, std::size_t> number{{input.value, 0}};
  std::map<std::size_t, std::size_t> step_of_leader;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    if (grouping.leader(i) != i) continue;
    LoweredStep step;
    for (std::size_t j = 0; j <= i; ++j) {
      if (grouping.leader(j) != i) continue;
      step.ops.push_back(&operators[j]);
      for (const model::ValueId v : operators[j].inputs) {
        const auto found = number.find(v.value);  // else it is made within the group
        if (found != number.end() &&
            std::find(step.inputs.begin(), step.inputs.end(), found->second) == step.inputs.end())
          step.inputs.push_back(found->second);
      }
    }
    step.output = number[operators[i].outputs[0].value] = part.values++;
    part.steps.push_back(std::move(step));
  }
  const std::vector<std::size_t> last = last_uses(part, names);
  for (std::size_t v = 0; v < part.values; ++v)
    if (last[v] != kNone) part.steps[last[v]].done.push_back(v);
  return part;
}

}  // namespace

const Operator* LoweredStep::find(OperatorKind kind) const {
  const auto found = std::find_if(ops.begin(), ops.end(), [kind](const Operator* o) { return o->kind == kind; });
  return found == ops.end() ? nullptr : *found;
}

const LoweredStep* LoweredPart::step_of(OperatorKind kind) const {
  const auto found =
      std::find_if(steps.begin(), steps.end(), [kind](const LoweredStep& s) { return s.find(kind) != nullptr; });
  return found == steps.end() ? nullptr : &*found;
}

LoweredGraph lowered_graph(const model::Graph& graph, Names names, Together together) {
  const std::span<const Operator> all(graph.operators);
  LoweredGraph lowered;
  model::ValueId input = graph.input;
  std::size_t at = 0;
  // Behind the last block: norms and products, the head, the loss.
  const std::size_t end = all.size() - 2;
  lowered.head = &all[end];
  while (at < end) {
    std::size_t next = at;
    while (next < end && all[next].block == all[at].block) ++next;
    const LoweredPart part = lowered_part(all.subspan(at, next - at), input, names, together);
    if (all[at].block >= 0)
      lowered.blocks.push_back(part);
    else
      (lowered.blocks.empty() ? lowered.before : lowered.behind) = part;
    input = all[next - 1].outputs[0];
    at = next;
  }
  return lowered;
}

}  // namespace shard::like::eager
