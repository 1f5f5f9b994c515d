// Plan to text and its hash.
#include "sim/plan/text.h"

#define XXH_INLINE_ALL  // header only: the planner links no hash library
#include <xxhash.h>

#include <cstdio>

namespace shard::plan {
namespace {

void append_operand(std::string& out, const Plan& plan, const Operand& o) {
  const Buffer& b = plan.buffer(o.buffer);
  out += o.access == Access::read ? " " : o.access == Access::write ? " =" : " +";
  out += b.name;
  if (o.offset == 0 && o.rank_stride == 0 && o.bytes == b.bytes.count()) return;
  out += '[' + std::to_string(o.offset);
  if (o.rank_stride != 0) out += "+r*" + std::to_string(o.rank_stride);
  out += ',' + std::to_string(o.bytes) + ']';
}

[[nodiscard]] const char* to_string(Direction d) {
  switch (d) {
    case Direction::forward: return "forward";
    case Direction::backward: return "backward";
    case Direction::backward_input: return "backward_input";
    case Direction::backward_weight: return "backward_weight";
  }
  return "?";
}

[[nodiscard]] const char* to_string(Digest::Content c) {
  switch (c) {
    case Digest::Content::parameter: return "parameter";
    case Digest::Content::first_moment: return "first_moment";
    case Digest::Content::second_moment: return "second_moment";
  }
  return "?";
}

[[nodiscard]] std::string text_of(const model::Attributes& a) {
  std::string out = std::to_string(a.rows) + 'x' + std::to_string(a.columns);
  if (a.out_columns > 0) out += "->" + std::to_string(a.out_columns);
  if (a.heads > 0) out += " heads " + std::to_string(a.heads) + '/' + std::to_string(a.kv_heads);
  return out;
}

[[nodiscard]] std::string what(const Op& op) {
  return std::visit(
      on{[](const Compute& c) {
           std::string out =
               std::string(model::to_string(c.kind)) + '.' + to_string(c.direction) + '(' + text_of(c.attributes) + ')';
           if (c.accumulate_input) out += " adds_input";
           if (c.accumulate_weight) out += " adds_weight";
           if (c.scale != 1.0f) out += " scale " + std::to_string(c.scale);
           return out;
         },
         [](const LoadBatch& a) {
           return "load_batch(" + std::to_string(a.first) + "+r*" + std::to_string(a.rank_stride) + ')';
         },
         [](const LoadScalars&) { return std::string("load_scalars"); },
         [](const Communicate& c) {
           std::string out = shard::to_string(c.kind);
           if (c.kind == Collective::broadcast || c.kind == Collective::reduce)
             out += "(root " + std::to_string(c.root) + ')';
           for (const Segment& s : c.segments) out += " {" + std::to_string(s.elems.count()) + '}';
           return out;
         },
         [](const Accumulate&) { return std::string("accumulate"); },
         [](const Initialize& a) { return std::string(a.shard_only ? "initialize_shard" : "initialize"); },
         [](const ZeroState&) { return std::string("zero"); },
         [](const OptimizerStep& a) {
           return "step([" + std::to_string(a.first_elem.count()) + "+r*" +
                  std::to_string(a.rank_stride_elems.count()) + ", " + std::to_string(a.elems.count()) + ")";
         },
         [](const MeanLoss& a) { return std::string(a.dealt_in_turn ? "mean_loss(in turn)" : "mean_loss"); },
         [](const Copy&) { return std::string("copy"); },
         [](const Digest& a) { return std::string("digest(") + to_string(a.content) + ')'; },
         [](const Absent&) { return std::string("absent"); }},
      op.action);
}

void append_ids(std::string& out, const Plan& plan, const char* label, const std::vector<BufferId>& ids) {
  if (ids.empty()) return;
  out += label;
  for (BufferId id : ids) out += ' ' + plan.buffer(id).name + ',';
  out.back() = ' ';
  out.pop_back();
}

}  // namespace

std::string to_text(const Plan& plan, const Op& op, const TextOptions& options) {
  std::string out = op.id.valid() ? '%' + std::to_string(op.id.value) : std::string("%?");
  if (op.micro_step >= 0) out += " #" + std::to_string(op.micro_step);
  out += std::string(" ") + shard::to_string(op.stream) + " \"" + op.name + "\" " + to_string(op.part) + ' ' +
         what(op) + " :";
  for (const Operand& o : op.operands) append_operand(out, plan, o);
  if (options.dependencies && !op.dependencies.empty()) {
    out += " | after";
    for (OpId d : op.dependencies) out += " %" + std::to_string(d.value);
  }
  if (options.lifetimes) {
    append_ids(out, plan, " | takes", op.acquire);
    append_ids(out, plan, " | gives back", op.release);
  }
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
      out += "buffer \"" + b.name + "\" " + shard::to_string(b.category) + ' ' + shard::to_string(b.memory) + ' ' +
             std::to_string(b.bytes.count());
      if (b.offset >= 0) out += " @" + std::to_string(b.offset);
      if (b.persistent) out += " persistent";
      out += '\n';
    }
  for (const PhaseOps& phase : plan.phases) {
    out += std::string("phase ") + shard::to_string(phase.phase) + '\n';
    for (const Op& op : phase.ops) out += to_text(plan, op, options) + '\n';
  }
  return out;
}

std::string hash_of(const std::vector<Plan>& classes, const std::vector<std::int32_t>& class_of_rank) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (const Plan& plan : classes) {
    const std::string text = to_text(plan);
    XXH3_128bits_update(&state, text.data(), text.size());
  }
  XXH3_128bits_update(&state, class_of_rank.data(), class_of_rank.size() * sizeof(class_of_rank[0]));
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  char hex[33];
  std::snprintf(hex, sizeof hex, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return hex;
}

std::string to_string(const Strategy& s) {
  std::string out = "stage " + std::to_string(s.stage) + " unit " + to_string(s.unit);
  if (s.unit == UnitKind::chunk) out += " of " + std::to_string(s.chunk_elems.count()) + " elements";
  out += std::string(" partition ") + to_string(s.partition) + " world " + std::to_string(s.world_size) +
         " micro_batch " + std::to_string(s.micro_batch) + " global_batch " + std::to_string(s.global_batch) +
         " sequence " + std::to_string(s.sequence) + " recompute " + to_string(s.recompute) + " optimizer " +
         to_string(s.optimizer) + " precision " + to_string(s.precision) + " prefetch " + std::to_string(s.prefetch) +
         " threads " + std::to_string(s.threads) + (s.reproducible ? " reproducible" : " fast_sums") + " transport " +
         to_string(s.transport);
  return out;
}

}  // namespace shard::plan
