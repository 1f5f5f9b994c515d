// The control of a step: P26.
#include "sim/check/interpreter.h"

namespace shard::plan::verification {

void Interpreter::load_scalars(const Op& op) {
  if (!count(op, plan_.strategy.is_controlled() ? 2 : 1, "P16")) return;
  write(op.operands[0], simple(Meaning::scalars));
  if (op.operands.size() > 1 && access(op.operands[1], Access::write, "P26"))
    write(op.operands[1], simple(Meaning::knobs));
}

void Interpreter::begin_control(const Op& op) {
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

void Interpreter::note(const Operand& o, std::int64_t slot, std::uint64_t before) {
  if (!access(o, Access::update, "P26")) return;
  if (elements(o).begin != slot * kFactWords || elems(o) != kFactWords)
    return faults_.fail("P26", "notes facts at the wrong place");
  Content content{.meaning = Meaning::facts, .start = slot * kFactWords, .tag = before};
  if (!expect(o, content, "P26")) return;
  ++content.tag;
  write(o, content);
}

void Interpreter::inspect(const Op& op, const InspectGradient& a) {
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

void Interpreter::inspect_local(const Op& op, const InspectGradient& a) {
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

bool Interpreter::expect_facts(const Operand& o) {
  if (elems(o) != fact_slots() * kFactWords) {
    faults_.fail("P26", "not all facts");
    return false;
  }
  for (std::int64_t slot = 0; slot < fact_slots(); ++slot)
    if (!expect(
            part_of(o, slot * kFactWords, kFactWords),
            {.meaning = Meaning::facts, .start = slot * kFactWords, .tag = slot == 0 ? book_.stepped() : book_.local()},
            "P26"))
      return false;
  return true;
}

Group Interpreter::facts_group() const {
  if (plan_.strategy.tensor_parallel > 1) return Group::world;
  return plan_.strategy.has_scaler() ? Group::data : Group::shard;
}

void Interpreter::decide(const Op& op, const Decide& a) {
  const Strategy& s = plan_.strategy;
  const bool scaler = s.has_scaler();
  if (!count(op, scaler ? 4 : 3, "P26") || !access(op.operands[0], Access::read, "P26") ||
      !access(op.operands[1], Access::read, "P26") || !access(op.operands[2], Access::write, "P26"))
    return;
  const std::int32_t counted = s.tensor_parallel * (s.effective_stage() == 0 ? 1 : shards_);
  const std::int32_t members = s.tensor_parallel > 1 || scaler ? s.world_size : counted;
  if (a.counted != counted || a.members != members)
    return faults_.fail(
        "P26", "decides on the facts of " + std::to_string(a.counted) + " of " + std::to_string(a.members) + " ranks");
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

void Interpreter::end_control() {
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

}  // namespace shard::plan::verification
