// Copies between memories and the buffers that they need.
#include "sim/compile/passes/moves.h"

#include <algorithm>

#include "sim/compile/passes/operands.h"

namespace shard::plan {
namespace {

Stream stream_of(Memory from, Memory to) {
  if (from == Memory::device) return Stream::copy_out;
  return to == Memory::device ? Stream::copy_in : Stream::host;
}

bool same_bytes(const Operand& a, const Operand& b) {
  return a.buffer == b.buffer && a.offset == b.offset && a.bytes == b.bytes && a.rank_stride == b.rank_stride;
}

}  // namespace

int hops(Memory from, Memory to) {
  if (from == to) return 0;
  return from == Memory::host || to == Memory::host ? 1 : 2;
}

BufferId Mover::beside(BufferId like, Memory memory, std::int64_t bytes, std::string_view name) {
  const Buffer& source = plan_.buffer(like);
  return plan_.add_buffer({.name = name,
                           .category = source.category,
                           .memory = memory,
                           .dtype = source.dtype,
                           .bytes = Bytes{bytes},
                           .unit = source.unit});
}

void Mover::move(std::vector<Op>& out, Operand from, Operand to, std::string_view verb, Part part,
                 std::int32_t micro_step) {
  const auto memory = [&](const Operand& o) { return plan_.buffer(o.buffer).memory; };
  const auto copy = [&](const Operand& source, const Operand& target, const Buffer& named) {
    const auto is_parameter = [](Category c) { return c == Category::parameter || c == Category::gathered; };
    out.push_back({.name = plan_.text(verb, " ", named.name),
                   .part = part,
                   .stream = stream_of(memory(source), memory(target)),
                   .micro_step = micro_step,
                   .action = Copy{.unit = is_parameter(named.category) ? named.unit : UnitId{}},
                   .operands = plan_.list({source, target})});
  };
  const Buffer named = plan_.buffer(from.buffer);
  if (hops(memory(from), memory(to)) == 2) {
    const BufferId between = beside(from.buffer, Memory::host, from.bytes, plan_.text(named.name, " on its way"));
    copy(from, writes(plan_, between), named);
    copy(reads(plan_, between), to, named);
  } else {
    copy(from, to, named);
  }
}

void Mover::run_in(std::vector<Op>& out, Op op, Memory memory) {
  struct Back {
    Operand from, to;
  };
  std::vector<Back> back;
  for (Operand& o : plan_.own_operands(op)) {
    if (plan_.buffer(o.buffer).memory == memory) continue;
    const Operand home = o;
    const BufferId buffer =
        beside(o.buffer, memory, o.bytes, plan_.text(plan_.buffer(o.buffer).name, " on ", shard::to_string(memory)));
    o = whole(plan_, buffer, home.access);
    if (home.reads()) {
      Operand source = home;
      source.access = Access::read;
      move(out, source, writes(plan_, buffer), "bring", op.part, op.micro_step);
    }
    if (home.writes()) {
      Operand target = home;
      target.access = home.bytes == plan_.buffer(home.buffer).bytes.count() ? Access::write : Access::update;
      back.push_back({reads(plan_, buffer), target});
    }
    std::erase_if(brought_, [&](const Brought& b) { return same_bytes(b.home, home); });
    brought_.push_back({home, buffer});
  }
  out.push_back(op);
  for (const Back& b : back) move(out, b.from, b.to, "take back", op.part, op.micro_step);
}

void Mover::lack(std::vector<Op>& out, std::int32_t flat, Stream stream, Part part, std::int32_t micro_step) {
  out.push_back({.name = "absent move",
                 .part = part,
                 .stream = stream,
                 .micro_step = micro_step,
                 .action = Absent{.flat = flat},
                 .operands = {}});
}

Operand Mover::brought(const Operand& o) const {
  for (const Brought& b : brought_)
    if (same_bytes(b.home, o)) return whole(plan_, b.buffer, o.access);
  return o;
}

}  // namespace shard::plan
