// Contents of operands: who reads what, who wrote it.
#include "sim/check/interpreter.h"

namespace shard::plan::verification {

Content Interpreter::parameters(std::int32_t f, std::int64_t start, std::uint64_t version) {
  return {.meaning = Meaning::parameter, .what = f, .start = start, .tag = version};
}

Content Interpreter::masters(std::int32_t f, std::int64_t start, std::uint64_t version) {
  return {.meaning = Meaning::master, .what = f, .start = start, .tag = version};
}

Range Interpreter::own_part(std::int32_t f) const {
  const std::int64_t all = flat(f).elems.count();
  if (const std::int32_t owner = flat(f).owner; owner >= 0) return {owner == at_.shard ? 0 : all, all};
  const std::int64_t elems = flat(f).elems.count() / shards_;
  return {at_.shard * elems, (at_.shard + 1) * elems};
}

Range Interpreter::elements(const Operand& o) const {
  const std::int64_t size = bytes_per_element(dtype(o));
  const Range bytes = range_of(o, at_.shard);
  return {bytes.begin / size, bytes.end / size};
}

Operand Interpreter::part_of(Operand o, std::int64_t first, std::int64_t count) const {
  const std::int64_t size = bytes_per_element(dtype(o));
  o.offset += first * size;
  o.bytes = count * size;
  return o;
}

std::vector<Piece> Interpreter::read(const Operand& o) {
  const Range r = elements(o);
  return of(o.buffer).inside(r.begin, r.end);
}

void Interpreter::write(const Operand& o, const Content& content) {
  const Range r = elements(o);
  of(o.buffer).write(r.begin, r.end, content);
}

Content Interpreter::simple(Meaning meaning, std::int32_t step) {
  return {.meaning = meaning, .step = step};
}

bool Interpreter::trained(std::int32_t f, const char* what) {
  if (!in_flats(f) || !flat(f).frozen) return true;
  faults_.fail("P30", std::string(what) + " flat " + std::to_string(f) + ", whose parameters are frozen");
  return false;
}

bool Interpreter::expect(const Operand& o, const Content& content, const char* rule) {
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

bool Interpreter::access(const Operand& o, Access wanted, const char* rule) {
  if (o.access == wanted) return true;
  faults_.fail(rule, "the access to " + name(o) + " is of the wrong kind");
  return false;
}

bool Interpreter::count(const Op& op, std::size_t wanted, const char* rule) {
  if (op.operands.size() == wanted) return true;
  faults_.fail(rule, "has " + std::to_string(op.operands.size()) + " operands instead of " + std::to_string(wanted));
  return false;
}

}  // namespace shard::plan::verification
