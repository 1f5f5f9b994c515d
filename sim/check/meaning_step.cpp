// Births, steps, moves and reports: P16, P20, P22 to P25.
#include "sim/check/interpreter.h"

#include <algorithm>
#include <limits>

namespace shard::plan::verification {

void Interpreter::initialize(const Op& op, const Initialize& a) {
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

void Interpreter::zero(const Op& op, const ZeroState& a) {
  if (!trained(a.flat, "makes optimizer state for")) return;
  for (const Operand& o : op.operands) {
    if (!access(o, Access::write, "P16")) return;
    write(o, simple(Meaning::zero));
  }
}

void Interpreter::step(const Op& op, const OptimizerStep& a) {
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
  if (read(counts).front().content.meaning != Meaning::zero && !expect(counts, simple(Meaning::counts), "P16")) return;
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

bool Interpreter::expect_step_gradient(const Operand& o, std::int32_t f, std::int64_t start, const char* does) {
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

void Interpreter::mean_loss(const Op& op) {
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
    // Losses are averaged, and masks drawn, as the batches were dealt.
    const std::int64_t last = ranks_ - 1;
    for (const std::int64_t r : {std::int64_t{0}, std::min<std::int64_t>(1, last), std::int64_t{shards_} - 1,
                                 std::min<std::int64_t>(shards_, last), last}) {
      const auto member = static_cast<std::int32_t>(r % shards_);
      const auto group = static_cast<std::int32_t>(r / shards_);
      const std::int64_t m = batch->micro_batch(member, group);
      if (plan_.dealing.micro_batch(j, member, group) != m ||
          plan_.dealing.place(m, micro_steps, shards_) != r * micro_steps + j)
        return faults_.fail("P20", "takes losses for those of other micro-batches");
    }
  }
  write(op.operands[1], simple(Meaning::mean_loss));
  loss_known_ = true;
}

void Interpreter::copy(const Op& op) {
  if (!count(op, 2, "P23") || !access(op.operands[0], Access::read, "P23")) return;
  const Operand& to = op.operands[1];
  const Buffer& source = plan_.buffer(op.operands[0].buffer);
  // What crosses is as small as it is on either side.
  const Memory target = plan_.buffer(to.buffer).memory;
  const bool crosses = source.memory != target && !(is_host(source.memory) && is_host(target));
  if (crosses && bytes_per_element(source.dtype) > bytes_per_element(dtype(to)))
    return faults_.fail("P25", "moves " + name(op.operands[0]) + " between memories before it is rounded");
  if (elems(to) != elems(op.operands[0]) || !to.writes()) return faults_.fail("P23", "copies between different sizes");
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

void Interpreter::digest(const Op& op, const Digest& a) {
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
  expect(real,
         {.meaning = meaning_of(a.content),
          .what = a.flat,
          .start = part.begin,
          .tag = a.content == StateContent::second_moment ? 1U : 0U},
         "P23");
}

Meaning Interpreter::meaning_of(StateContent content) {
  switch (content) {
    case StateContent::parameter: return Meaning::parameter;
    case StateContent::master: return Meaning::master;
    case StateContent::first_moment:
    case StateContent::second_moment: return Meaning::moment;
    case StateContent::step_counts: return Meaning::counts;
    case StateContent::loss_scaler: break;
  }
  return Meaning::scaler;
}

void Interpreter::save(const Op& op, const Save& a) {
  if (!count(op, 1, "P36") || !access(op.operands[0], Access::read, "P36")) return;
  const Operand& o = op.operands[0];
  const Meaning meaning = meaning_of(a.content);
  if (meaning == Meaning::counts && !in_flats(a.flat)) return faults_.fail("P36", "saves the counts of no flat");
  if (meaning == Meaning::counts || meaning == Meaning::scaler) {
    expect(o, simple(meaning), "P36");
    return;
  }
  const std::int64_t start = a.first_elem.count() + at_.shard * a.rank_stride_elems.count();
  if (!in_flats(a.flat) || start < 0 || start + a.elems.count() > used(a.flat) || elems(o) != a.elems.count())
    return faults_.fail("P36", "saves elements that the flat does not have");
  if (meaning == Meaning::parameter && plan_.strategy.has_masters() && !flat(a.flat).frozen)
    return faults_.fail("P36", "saves rounded parameters, which have masters");
  expect(
      o,
      {.meaning = meaning, .what = a.flat, .start = start, .tag = a.content == StateContent::second_moment ? 1U : 0U},
      "P36");
}

}  // namespace shard::plan::verification
