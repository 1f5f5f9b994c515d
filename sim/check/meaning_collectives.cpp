// What collectives do to parameters, gradients and values: P11, P15, P18, P27.
#include "sim/check/interpreter.h"

#include <algorithm>

#include "sim/check/flat_of.h"
#include "sim/target/comm_workspace.h"

namespace shard::plan::verification {

void Interpreter::communicate(const Op& op, const Communicate& call) {
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

bool Interpreter::operand_exists(const Op& op, std::int32_t i) {
  if (i >= 0 && static_cast<std::size_t>(i) < op.operands.size()) return true;
  faults_.fail("P18", "a segment names no operand");
  return false;
}

std::int32_t Interpreter::member(Group group) const {
  switch (group) {
    case Group::shard: return at_.shard;
    case Group::replica: return at_.replica;
    case Group::data: return at_.data;
    case Group::tensor: return at_.tensor;
    case Group::world: return at_.data * plan_.strategy.tensor_parallel + at_.tensor;
  }
  return -1;
}

bool Interpreter::wants_group(Group found, Group wanted) {
  const RankGroup a = members(plan_.topology, found, 0);
  const RankGroup b = members(plan_.topology, wanted, 0);
  if (a.count == b.count && (a.count == 1 || a.stride == b.stride)) return true;
  faults_.fail("P18", std::string("is a collective of the ") + to_string(found) + " group instead of the " +
                          to_string(wanted) + " group");
  return false;
}

void Interpreter::check_shard(const Operand& shard, const Operand& full, Group group) {
  if (dtype(shard) != dtype(full)) faults_.fail("P18", "a shard has another type than its whole");
  if (elems(shard) * size_of(plan_.topology, group) != elems(full))
    faults_.fail("P18", "a shard is not the group's part of its whole");
  const Range s = elements(shard);
  const Range f = elements(full);
  const bool apart = shard.buffer != full.buffer || s.end <= f.begin || f.end <= s.begin;
  if (!apart && s.begin != f.begin + member(group) * elems(shard))
    faults_.fail("P18", "a shard inside its whole is not at this rank's place");
}

void Interpreter::check_staging(const Op& op, const Communicate& call, Bytes largest) {
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

void Interpreter::exchange(const Op& op, const Operand& own, const Operand& full, Collective kind) {
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
    write(full, forward ? value(source.outputs[0], op.micro_step)
                        : value_gradient(GraphGradients::contribution(static_cast<std::int32_t>(i), 0), op.micro_step));
    return;
  }
  faults_.fail("P27", "exchanges " + describe(plan_, c) + " in " + name(own) +
                          ", which is not what the ranks that share a model exchange there");
}

void Interpreter::all_gather(const Operand& shard, const Operand& full, Group group) {
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

bool Interpreter::all_padding(const Operand& full) const {
  const UnitId unit = plan_.buffer(full.buffer).unit;
  if (!unit.valid()) return false;
  for (std::int32_t f : plan_.units[static_cast<std::size_t>(unit.value)].flats)
    if (flat(f).elems.count() == elems(full) && own_part(f).begin >= used(f)) return true;
  return false;
}

void Interpreter::gather_flat(const Operand& shard, const Operand& full, std::int32_t f) {
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

bool Interpreter::expect_whole_gradient(const Operand& o, const std::vector<Piece>& pieces, Group group) {
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

bool Interpreter::in_flats(std::int32_t f) const {
  return f >= 0 && static_cast<std::size_t>(f) < plan_.flats.size();
}

void Interpreter::reduce_scatter(const Operand& full, const Operand& shard, Group group) {
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

void Interpreter::all_reduce(const Operand& full, Group group) {
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

void Interpreter::broadcast(const Operand& full, std::int32_t root, Group group) {
  if (!wants_group(group, Group::data)) return;
  if (root < 0 || root >= ranks_) return faults_.fail("P18", "there is no rank " + std::to_string(root));
  if (!full.writes()) return faults_.fail("P18", "a broadcast writes");
  for (const Piece& piece : read(full)) {
    Content c = piece.content;
    const bool made =
        (c.meaning == Meaning::parameter && c.tag == 1) || c.meaning == Meaning::master || c.meaning == Meaning::moment;
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

void Interpreter::reduce_to_owner(const Operand& full, std::int32_t root, Group group) {
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

void Interpreter::send_owned(const Operand& full, std::int32_t root, Group group) {
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

}  // namespace shard::plan::verification
