// Plan to text.
#include "sim/ir/text.h"

#include <charconv>
#include <string_view>

namespace shard::plan {
namespace {

/// Appends text and numbers without making strings of them first: a large plan has millions of words.
void put(std::string& out, std::string_view text) {
  out += text;
}
void put(std::string& out, char c) {
  out += c;
}
void put(std::string& out, std::int64_t number) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}
/// The shortest digits that give the same number back.
void put(std::string& out, float number) {
  char digits[32];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}
template <class... Parts>
void append(std::string& out, const Parts&... parts) {
  (put(out, parts), ...);
}

void append_operand(std::string& out, const Plan& plan, const Operand& o) {
  const Buffer& b = plan.buffer(o.buffer);
  append(out, o.access == Access::read ? " " : o.access == Access::write ? " =" : " +", b.name);
  if (o.offset == 0 && o.rank_stride == 0 && o.bytes == b.bytes.count()) return;
  append(out, '[', o.offset);
  if (o.rank_stride != 0) append(out, "+r*", o.rank_stride);
  append(out, ',', o.bytes, ']');
}

[[nodiscard]] const char* to_string(StateContent c) {
  switch (c) {
    case StateContent::parameter: return "parameter";
    case StateContent::first_moment: return "first_moment";
    case StateContent::second_moment: return "second_moment";
    case StateContent::master: return "master";
    case StateContent::step_counts: return "step_counts";
    case StateContent::loss_scaler: return "loss_scaler";
  }
  return "?";
}

void append_attributes(std::string& out, const model::Attributes& a) {
  append(out, '(', a.rows, 'x', a.columns);
  if (a.out_columns > 0) append(out, a.weight_in_out ? "=>" : "->", a.out_columns);
  if (a.heads > 0) append(out, " heads ", a.heads, '/', a.kv_heads);
  if (a.epsilon != 0) append(out, " epsilon ", a.epsilon);
  if (a.rotary_base != 0) append(out, " base ", a.rotary_base);
  if (a.turn.columns > 0) append(out, " turns ", a.turn.columns);
  if (a.turn.passed_heads > 0) append(out, " passes ", a.turn.passed_heads);
  if (a.turn.factor != 1) append(out, " times ", a.turn.factor);
  if (!a.turn.frequencies.empty())
    append(out, " frequencies ", a.turn.frequencies.front(), "..", a.turn.frequencies.back());
  if (a.first_row > 0) append(out, " from row ", a.first_row);
  if (a.factor != 0) append(out, " factor ", a.factor);
  if (a.weight_offset != 0) append(out, " weight + ", a.weight_offset);
  if (a.parts > 0) append(out, " of ", a.parts);
  if (a.vocabulary > 0) append(out, " vocabulary ", a.vocabulary);
  if (a.frozen > 0) append(out, " frozen ", std::int64_t{a.frozen});
  append(out, ')');
}

/// The operator that the op does behind its own.
void append_then(std::string& out, const Compute& c) {
  if (!c.then.present()) return;
  append(out, " + ", model::to_string(c.then.kind), '.', to_string(model::direction_behind(c.direction)));
  append_attributes(out, *c.then.attributes);
}

void append_action(std::string& out, const Plan& plan, const Op& op) {
  std::visit(on{[&](const Compute& c) {
                  append(out, model::to_string(c.kind), '.', to_string(c.direction));
                  append_attributes(out, *c.attributes);
                  if (c.accumulate_input) append(out, " adds_input");
                  if (c.accumulate_weight) append(out, " adds_weight");
                  if (c.scale != 1.0f) append(out, " scale ", c.scale);
                  if (c.scaled) append(out, " scaled");
                  if (!c.drops && c.attributes->probability > 0) append(out, " drops_nothing");
                  append_then(out, c);
                },
                [&](const LoadBatch& a) {
                  append(out, "load_batch(", a.first, "+r*", a.shard_stride);
                  if (plan.topology.replicas() > 1) append(out, "+g*", a.replica_stride);
                  append(out, ')');
                },
                [&](const LoadScalars&) { append(out, "load_scalars"); },
                [&](const Communicate& c) {
                  append(out, shard::to_string(c.kind));
                  if (c.group != Group::shard) append(out, " over ", to_string(c.group));
                  if (c.kind == Collective::broadcast || c.kind == Collective::reduce)
                    append(out, "(root ", std::int64_t{c.root}, ')');
                  for (const Segment& s : c.segments) append(out, " {", s.elems.count(), '}');
                  if (c.behind.valid()) append(out, " behind %", std::int64_t{c.behind.value});
                },
                [&](const Accumulate&) { append(out, "accumulate"); },
                [&](const Initialize& a) {
                  append(out, "initialize([", a.first_elem.count(), "+r*", a.rank_stride_elems.count(), ", ",
                         a.elems.count(), ")");
                },
                [&](const ZeroState&) { append(out, "zero"); },
                [&](const OptimizerStep& a) {
                  append(out, "step([", a.first_elem.count(), "+r*", a.rank_stride_elems.count(), ", ", a.elems.count(),
                         ")");
                  if (a.factor != 1.0f) append(out, " times ", a.factor);
                },
                [&](const MeanLoss&) { append(out, plan.dealing.in_turn() ? "mean_loss(in turn)" : "mean_loss"); },
                [&](const Copy&) { append(out, "copy"); },
                [&](const Digest& a) { append(out, "digest(", to_string(a.content), ')'); },
                [&](const BeginControl&) { append(out, "begin_control"); },
                [&](const InspectGradient& a) {
                  append(out, a.of == InspectGradient::Of::local ? "inspect_local([" : "inspect([",
                         a.first_elem.count(), "+r*", a.rank_stride_elems.count(), ", ", a.elems.count(), ")");
                },
                [&](const Decide& a) {
                  append(out, "decide(", std::int64_t{a.counted}, " of ", std::int64_t{a.members}, ")");
                  if (a.factor != 1.0f) append(out, " times ", a.factor);
                },
                [&](const Absent&) { append(out, "absent"); },
                [&](const Save& a) {
                  append(out, "save(", to_string(a.content), " [", a.first_elem.count(), "+r*",
                         a.rank_stride_elems.count(), ", ", a.elems.count(), ")");
                  if (a.held == Save::Held::by_replicas) append(out, " with replicas");
                  if (a.held == Save::Held::by_data_ranks) append(out, " with all");
                }},
             op.action);
}

void append_ids(std::string& out, const Plan& plan, const char* label, List<BufferId> ids) {
  if (ids.empty()) return;
  append(out, label);
  const char* before = " ";
  for (BufferId id : ids) {
    append(out, before, plan.buffer(id).name);
    before = ", ";
  }
}

void append_op(std::string& out, const Plan& plan, const Op& op, const TextOptions& options) {
  if (op.id.valid())
    append(out, '%', std::int64_t{op.id.value});
  else
    append(out, "%?");
  if (op.micro_step >= 0) append(out, " #", std::int64_t{op.micro_step});
  append(out, ' ', shard::to_string(op.stream), " \"", op.name, "\" ", to_string(op.part), ' ');
  append_action(out, plan, op);
  append(out, " :");
  for (const Operand& o : op.operands) append_operand(out, plan, o);
  if (options.dependencies && !op.dependencies.empty()) {
    append(out, " | after");
    for (OpId d : op.dependencies) append(out, " %", std::int64_t{d.value});
  }
  if (options.lifetimes) {
    append_ids(out, plan, " | takes", op.acquire);
    append_ids(out, plan, " | gives back", op.release);
  }
}

}  // namespace

std::string to_text(const Plan& plan, const Op& op, const TextOptions& options) {
  std::string out;
  append_op(out, plan, op, options);
  return out;
}

std::string to_text(const Plan& plan, const TextOptions& options) {
  std::string out = "plan " + plan.model->name + " " + to_string(plan.strategy) + '\n';
  std::vector<bool> touched(plan.buffers.size(), false);
  for (const PhaseOps& phase : plan.phases)
    for (const Op& op : phase.ops)
      for (const Operand& o : op.operands) touched[static_cast<std::size_t>(o.buffer.value)] = true;
  for (int m = 0; m < kMemoryCount; ++m)
    if (plan.arena_bytes[m].count() > 0)
      out += std::string("arena ") + shard::to_string(static_cast<Memory>(m)) + ' ' +
             std::to_string(plan.arena_bytes[m].count()) + '\n';
  if (options.buffers)
    for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
      const Buffer& b = plan.buffers[i];
      if (!touched[i]) continue;
      append(out, "buffer \"", b.name, "\" ", shard::to_string(b.category), ' ', shard::to_string(b.memory), ' ',
             b.bytes.count());
      if (b.dtype != Dtype::f32) append(out, ' ', shard::to_string(b.dtype));
      if (b.offset >= 0) append(out, " @", b.offset);
      if (b.persistent) append(out, " persistent");
      append(out, '\n');
    }
  for (const PhaseOps& phase : plan.phases) {
    out += std::string("phase ") + shard::to_string(phase.phase) + '\n';
    for (const Op& op : phase.ops) {
      append_op(out, plan, op, options);
      out += '\n';
    }
  }
  return out;
}

}  // namespace shard::plan
