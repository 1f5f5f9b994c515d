// Signatures from the rows of operators.h.
#include "sim/model/signature.h"

namespace shard::model {
namespace {

const Terms& terms(OperatorKind kind, Direction direction) {
  const OperatorRow& r = row(kind);
  switch (direction) {
    case Direction::forward: return r.forward;
    case Direction::backward: return r.backward;
    case Direction::backward_input: return r.backward_input;
    case Direction::backward_weight: return r.backward_weight;
  }
  return r.forward;
}

int named(const Names& names) {
  int n = 0;
  for (const char* name : names) n += name != nullptr ? 1 : 0;
  return n;
}

/// How many operands a term stands for that is one for each.
int count(OperatorKind kind, const Attributes& a, Role role) {
  switch (role) {
    case Role::x:
    case Role::dx: return inputs_of(kind, a);
    case Role::p:
    case Role::dp: return parameters_of(kind, a);
    case Role::statistic: return named(row(kind).statistics);
    case Role::none: return 0;
    case Role::y:
    case Role::dy:
    case Role::loss_scale:
    case Role::workspace: break;
  }
  return 1;
}

bool present(Term::When when, const Attributes& a, const Form& form) {
  switch (when) {
    case Term::When::always: return true;
    case Term::When::in_place: return form.in_place;
    case Term::When::apart: return !form.in_place;
    case Term::When::weight_trained: return !a.freezes(0);
  }
  return true;
}

}  // namespace

int inputs_of(OperatorKind kind, const Attributes& a) {
  if (kind == OperatorKind::attention && a.columns != a.heads * a.head_dim) return 1;
  if (kind == OperatorKind::swiglu && a.out_columns > 0) return 1;
  return named(row(kind).inputs);
}

int parameters_of(OperatorKind kind, const Attributes& a) {
  return named(row(kind).parameters) - (kind == OperatorKind::linear && !a.has_bias ? 1 : 0);
}

int Signature::find(Role role, int index, bool then) const {
  for (int i = 0; i < size_; ++i)
    if (const Slot& s = slots_[static_cast<std::size_t>(i)]; s.index == index && s.is(role) && s.then == then) return i;
  return -1;
}

void Signature::push(Slot slot) {
  assert(size_ < kMost);
  makes_parameter_gradient_ = makes_parameter_gradient_ || slot.role == Role::dp;
  slots_[size_++] = slot;
}

Signature signature(OperatorKind kind, Direction direction, const Attributes& a, const Form& form) {
  Signature result;
  for (const Term& t : terms(kind, direction)) {
    if (t.role == Role::none) break;
    if (!present(t.when, a, form)) continue;
    Slot slot{.role = t.role, .becomes = t.becomes, .access = t.access, .extent = t.extent};
    if (slot.is(Role::dx) && !form.input_gradient) continue;
    if ((slot.role == Role::dx && form.accumulate_input) || (slot.role == Role::dp && form.accumulate_weight))
      slot.access = Access::update;
    const int first = t.index == Term::kEach ? 0 : t.index;
    const int end = t.index == Term::kEach ? count(kind, a, t.role) : first + 1;
    for (int i = first; i < end; ++i) {
      if (slot.role == Role::dp && a.freezes(static_cast<std::size_t>(i))) continue;
      slot.index = static_cast<std::int8_t>(i);
      result.push(slot);
    }
  }
  if (result.empty()) return result;
  if (form.scaled) result.push({.role = Role::loss_scale});
  if (form.workspace) result.push({.role = Role::workspace, .access = Access::write});
  return result;
}

Signature fused(const Signature& first, const Signature& then, Direction direction) {
  const bool forward = direction == Direction::forward;
  Signature result;
  for (const Slot& slot : first)
    if (slot.role != Role::workspace && (forward || !slot.is(Role::dx))) result.push(slot);
  for (Slot slot : then) {
    if (slot.role == (forward ? Role::x : Role::dy)) continue;
    slot.then = true;
    result.push(slot);
  }
  if (const int i = first.find(Role::workspace); i >= 0) result.push(first[static_cast<std::size_t>(i)]);
  return result;
}

ValueId value_of(const Operator& op, const Slot& slot) {
  const auto i = static_cast<std::size_t>(slot.index);
  switch (slot.role) {
    case Role::x:
    case Role::dx: return op.inputs[i];
    case Role::y:
    case Role::dy: return op.outputs[0];
    case Role::statistic: return op.outputs[1 + i];
    case Role::none:
    case Role::p:
    case Role::dp:
    case Role::loss_scale:
    case Role::workspace: break;
  }
  return {};
}

std::int64_t elements(const Graph& graph, const ParameterList& parameters, const Operator& op, const Slot& slot) {
  if (slot.role == Role::p || slot.role == Role::dp)
    return parameters[static_cast<std::size_t>(op.params[static_cast<std::size_t>(slot.index)].value)].elems.count();
  const ValueId v = value_of(op, slot);
  if (!v.valid()) return slot.role == Role::loss_scale ? 1 : 0;
  const std::int64_t whole = graph.values[static_cast<std::size_t>(v.value)].elements();
  switch (slot.extent) {
    case Extent::whole: return whole;
    case Extent::own_columns: return whole / op.attributes.parts;
    case Extent::all_columns: return whole * op.attributes.parts;
  }
  return whole;
}

Dtype stored_as(const Value& value, Dtype storage) {
  return value.dtype == Dtype::f32 && !value.statistic ? storage : value.dtype;
}

Dtype dtype(const Graph& graph, const Operator& op, const Slot& slot, Dtype storage) {
  if (slot.role == Role::p || slot.role == Role::dp) return storage;
  const ValueId v = value_of(op, slot);
  return v.valid() ? stored_as(graph.values[static_cast<std::size_t>(v.value)], storage) : Dtype::f32;
}

}  // namespace shard::model
