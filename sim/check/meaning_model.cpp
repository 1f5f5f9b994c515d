// Operators of the model on values and gradients, and the gradient tree: P9 to P14.
#include "sim/check/interpreter.h"

namespace shard::plan::verification {

void Interpreter::load_batch(const Op& op) {
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

Content Interpreter::value(model::ValueId v, std::int32_t step) const {
  return {.meaning = Meaning::value, .what = same_as_[static_cast<std::size_t>(v.value)], .step = step};
}

Content Interpreter::value_gradient(std::uint64_t sum, std::int32_t step) {
  return {.meaning = Meaning::value_gradient, .step = step, .tag = sum};
}

void Interpreter::compute(const Op& op, const Compute& c) {
  if (c.source < 0 || static_cast<std::size_t>(c.source) >= plan_.graph->operators.size())
    return faults_.fail("P9", "names no operator of the graph");
  const model::Operator& source = plan_.graph->operators[static_cast<std::size_t>(c.source)];
  if (source.kind != c.kind || source.attributes != *c.attributes)
    return faults_.fail("P9", "is not the operator that it names");
  const bool is_leaf = c.direction != Direction::forward && model::row(c.kind).loss;
  if (c.scale != (is_leaf ? leaf_scale() : 1.0f) || c.scaled != (is_leaf && plan_.strategy.has_scaler()))
    return faults_.fail("P9", "has the wrong scale");
  if (!c.drops && phase_->phase != Phase::evaluate) return faults_.fail("P31", "drops nothing in training");
  if (c.workspace != (expected_workspace(plan_, c).count() > 0)) return faults_.fail("P9", "has the wrong workspace");
  if (!check_then(c)) return;
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
      return faults_.fail("P9", "operand " + std::to_string(i) + " is " + shard::to_string(dtype(o)) + " instead of " +
                                    shard::to_string(e.dtype));
  }
  if (c.direction != Direction::forward && !expected_.trains(source.outputs[0]))
    return faults_.fail("P30", "differentiates what no trained parameter is under");
  const model::Operator* then = then_of(plan_, c);
  const auto of = [&](const Expected& e) -> const model::Operator& { return e.slot.then ? *then : source; };
  for (std::size_t i = 0; i < operands.size() && !faults_.failed(); ++i)
    read_operand(op.micro_step, of(operands[i]), op.operands[i], operands[i]);
  for (std::size_t i = 0; i < operands.size() && !faults_.failed(); ++i)
    write_operand(op.micro_step, of(operands[i]), op.operands[i], operands[i]);
}

bool Interpreter::check_then(const Compute& c) {
  if (!c.then.present()) return true;
  const auto wrong = [&](const char* rule, const char* what) {
    faults_.fail(rule, what);
    return false;
  };
  if (static_cast<std::size_t>(c.then.source) >= plan_.graph->operators.size())
    return wrong("P9", "names no operator of the graph behind its own");
  const model::Operator& first = plan_.graph->operators[static_cast<std::size_t>(c.source)];
  const model::Operator& then = *then_of(plan_, c);
  if (then.kind != c.then.kind || then.attributes != *c.then.attributes)
    return wrong("P9", "is not the operator that it names behind its own");
  if (!plan_.target.fuses(c.kind, c.direction, c.then.kind))
    return wrong("P9", "does two operators, which the target does not do as one");
  if (first.outputs[0] != then.inputs[0]) return wrong("P9", "does two operators of which the other takes no result");
  return true;
}

float Interpreter::leaf_scale() const {
  const Strategy& s = plan_.strategy;
  if (s.predivide == 1.0f) return 1.0f / static_cast<float>(s.micro_batches());
  return 1.0f / (static_cast<float>(s.micro_batches() / ranks_) * s.predivide);
}

float Interpreter::left_to_multiply() const {
  return plan_.strategy.predivide == 1.0f ? 1.0f : plan_.strategy.predivide / static_cast<float>(ranks_);
}

Interpreter::InFlat Interpreter::place_of(const model::Operator& source, const Expected& e) const {
  return place_[static_cast<std::size_t>(source.params[static_cast<std::size_t>(e.slot.index)].value)];
}

void Interpreter::read_operand(std::int32_t j, const model::Operator& source, const Operand& o, const Expected& e) {
  // Operators of several inputs write the gradients of all where one needs it.
  if (e.slot.role == Role::dx && source.inputs.size() == 1 && !expected_.trains(source.inputs[0]))
    return faults_.fail("P30", "makes the gradient of a value that no trained parameter is under");
  if (!access(o, e.slot.access, "P9") || e.slot.access == Access::write) return;
  switch (e.slot.role) {
    case Role::x:
    case Role::statistic: expect(o, value(e.value, j), "P10"); break;
    case Role::p: {
      const InFlat at = place_of(source, e);
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

void Interpreter::write_operand(std::int32_t j, const model::Operator& source, const Operand& o, const Expected& e) {
  if (e.slot.access == Access::read) return;
  switch (e.slot.made()) {
    case Role::y: {
      const model::ValueId y = source.outputs[0];
      write(o, y == plan_.graph->loss ? simple(Meaning::loss, j) : value(y, j));
      break;
    }
    case Role::statistic: write(o, value(e.value, j)); break;
    case Role::dx: {
      std::uint64_t sum = GraphGradients::contribution(index_of(source), e.slot.index);
      if (e.slot.role == Role::dx && o.reads()) {
        const std::vector<Piece> before = read(o);
        if (before.size() != 1 || before[0].content.meaning != Meaning::value_gradient || before[0].content.step != j ||
            before[0].content.start != 0)
          return faults_.fail("P12", "adds to " + name(o) + ", which holds " + describe(plan_, before.back().content));
        sum += before[0].content.tag;
      }
      write(o, value_gradient(sum, j));
      break;
    }
    case Role::dp: contribute(j, source, o, e); break;
    case Role::workspace: write(o, simple(Meaning::scratch)); break;
    case Role::none:
    case Role::x:
    case Role::p:
    case Role::dy:
    case Role::loss_scale: break;
  }
}

void Interpreter::contribute(std::int32_t j, const model::Operator& source, const Operand& o, const Expected& e) {
  const InFlat at = place_of(source, e);
  const model::ParamId param = source.params[static_cast<std::size_t>(e.slot.index)];
  const auto with = [&](std::uint64_t history) {
    history = GraphGradients::appended(history, index_of(source), e.slot.index);
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

bool Interpreter::complete(const Operand& o, const Content& c) {
  if (!nodes_.has_partial(c.tag)) return true;
  faults_.fail("P13", "reads " + describe(plan_, c) + " in " + name(o) +
                          ", which lacks a contribution of a micro-step or has one twice");
  return false;
}

void Interpreter::accumulate(const Op& op) {
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
      if (from.meaning != Meaning::gradient || b.content.meaning != Meaning::gradient || from.what != b.content.what ||
          from.start != b.content.start)
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

}  // namespace shard::plan::verification
