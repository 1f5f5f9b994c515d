// Every field of a plan, as bytes, through one hash. Structured bindings name all fields of an action: one that is
// added to op.h and forgotten here does not compile.
#include "sim/ir/hash.h"

#define XXH_INLINE_ALL  // header only: the planner links no hash library
#include <xxhash.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace shard::plan {
namespace {

template <class Tag>
[[nodiscard]] auto raw(Id<Tag> id) {
  return id.value;
}
template <class Tag, class Rep>
[[nodiscard]] auto raw(shard::Unit<Tag, Rep> value) {
  return value.count();
}
template <class T>
requires std::is_arithmetic_v<T> || std::is_enum_v<T>
[[nodiscard]] T raw(T value) {
  return value;
}

/// Collects small values and hashes them by the block: a search hashes hundreds of plans.
class Sink {
 public:
  Sink() { XXH3_128bits_reset(&state_); }

  template <class... Values>
  void add(const Values&... values) {
    constexpr std::size_t kSize = (sizeof(raw(values)) + ...);
    static_assert(kSize <= kBlock);
    if (used_ + kSize > kBlock) flush();
    char* at = block_.data() + used_;
    const auto put = [&](auto value) {
      std::memcpy(at, &value, sizeof value);
      at += sizeof value;
    };
    (put(raw(values)), ...);
    used_ += kSize;
  }
  void text(std::string_view text) {
    add(text.size());
    bytes(text.data(), text.size());
  }
  /// Ids or numbers that lie one behind the other.
  template <class List>
  void list(const List& values) {
    static_assert(std::has_unique_object_representations_v<typename List::value_type>);
    add(values.size());
    bytes(values.data(), values.size() * sizeof(typename List::value_type));
  }
  [[nodiscard]] std::string hex() {
    flush();
    const XXH128_hash_t hash = XXH3_128bits_digest(&state_);
    char digits[33];
    std::snprintf(digits, sizeof digits, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                  static_cast<unsigned long long>(hash.low64));
    return digits;
  }

 private:
  static constexpr std::size_t kBlock = 4096;

  void bytes(const void* data, std::size_t size) {
    if (size == 0) return;
    if (used_ + size > kBlock) flush();
    if (size > kBlock) {
      XXH3_128bits_update(&state_, data, size);
      return;
    }
    std::memcpy(block_.data() + used_, data, size);
    used_ += size;
  }
  void flush() {
    XXH3_128bits_update(&state_, block_.data(), used_);
    used_ = 0;
  }

  XXH3_state_t state_;
  std::array<char, kBlock> block_;
  std::size_t used_ = 0;
};

void add(Sink& sink, const model::Attributes& attributes) {
  const auto& [rows, columns, out_columns, batch, sequence, heads, kv_heads, head_dim, epsilon, rotary_base,
               weight_in_out, has_bias, probability, mask, parts, vocabulary, frozen, first_row, factor, weight_offset,
               turn] = attributes;
  sink.add(rows, columns, out_columns, batch, sequence, heads, kv_heads, head_dim, epsilon, rotary_base, weight_in_out,
           has_bias, probability, mask, parts, vocabulary, frozen);
  // Nothing where there is none, so that plans of models that lack these have the hashes they had.
  if (first_row != 0 || factor != 0 || weight_offset != 0) sink.add(first_row, factor, weight_offset);
  if (turn == model::RotaryTurn{}) return;
  const auto& [turned, passed_heads, rotary_factor, frequencies] = turn;
  sink.add(turned, passed_heads, rotary_factor);
  for (const float frequency : frequencies) sink.add(frequency);
}

/// Whether the attributes are those of the operator in the graph, which are hashed with the graph.
template <class Op>  // Compute, Then
[[nodiscard]] bool has_operators_attributes(const model::Graph& graph, const Op& a) {
  return a.source >= 0 && a.attributes == &graph.operators[static_cast<std::size_t>(a.source)].attributes;
}

/// Nothing where there is none, so that plans of targets that fuse nothing have the hashes they had.
void add(Sink& sink, const Then& then, const model::Graph& graph) {
  if (!then.present()) return;
  const auto& [kind, source, attributes] = then;
  const bool known = has_operators_attributes(graph, then);
  sink.add(kind, source, known);
  if (!known) add(sink, *attributes);
}

void add(Sink& sink, const Action& action, const model::Graph& graph) {
  sink.add(action.index());
  std::visit(on{[&](const Compute& a) {
                  const auto& [kind, direction, source, attributes, input_gradient, in_place, accumulate_input,
                               accumulate_weight, workspace, scale, scaled, drops, then] = a;
                  const bool known = has_operators_attributes(graph, a);
                  sink.add(kind, direction, source, input_gradient, in_place, accumulate_input, accumulate_weight,
                           workspace, scale, scaled, known);
                  if (!known) add(sink, *attributes);
                  if (!drops) sink.add(drops);  // nothing where it does, so that plans that only train have one hash
                  add(sink, then, graph);
                },
                [&](const LoadBatch& a) {
                  const auto& [first, shard_stride, replica_stride] = a;
                  sink.add(first, shard_stride, replica_stride);
                },
                [](const LoadScalars&) {},
                [&](const Communicate& a) {
                  const auto& [kind, unit, segments, group, root, workspace, behind] = a;
                  sink.add(kind, unit, segments.size(), group, root, workspace, behind);
                  for (const auto& [shard, full, elems] : segments) sink.add(shard, full, elems);
                },
                [&](const Accumulate& a) {
                  const auto& [unit] = a;
                  sink.add(unit);
                },
                [&](const Initialize& a) {
                  const auto& [flat, first, stride, elems] = a;
                  sink.add(flat, first, stride, elems);
                },
                [&](const ZeroState& a) {
                  const auto& [content, flat, param, first, stride, elems] = a;
                  sink.add(content, flat, param, first, stride, elems);
                },
                [&](const OptimizerStep& a) {
                  const auto& [flat, param, first, stride, elems, factor, kind] = a;
                  sink.add(flat, param, first, stride, elems, factor, kind);
                },
                [](const MeanLoss&) {},
                [&](const Copy& a) {
                  const auto& [unit] = a;
                  sink.add(unit);
                },
                [&](const Digest& a) {
                  const auto& [content, flat, param] = a;
                  sink.add(content, flat, param);
                },
                [](const BeginControl&) {},
                [&](const InspectGradient& a) {
                  const auto& [of, flat, first, stride, elems] = a;
                  sink.add(of, flat, first, stride, elems);
                },
                [&](const Decide& a) {
                  const auto& [members, counted, factor, clips] = a;
                  sink.add(members, counted, factor, clips);
                },
                [&](const Absent& a) {
                  const auto& [lacks, flat] = a;
                  sink.add(lacks, flat);
                },
                [&](const Save& a) {
                  const auto& [held, content, flat, first, stride, elems] = a;
                  sink.add(held, content, flat, first, stride, elems);
                }},
             action);
}

void add(Sink& sink, const Op& op, const model::Graph& graph) {
  const auto& [id, name, part, stream, block, micro_step, first_step_only, action, operands, dependencies, acquire,
               release] = op;
  sink.add(id, part, stream, block, micro_step, first_step_only, operands.size());
  sink.text(name);
  add(sink, action, graph);
  for (const auto& [buffer, offset, bytes, rank_stride, access, fresh] : operands)
    sink.add(buffer, offset, bytes, rank_stride, access, fresh);
  sink.list(dependencies);
  sink.list(acquire);
  sink.list(release);
}

/// What follows a run of ops that are equal to the next ones of another plan.
enum class Then : std::uint8_t { own, lacking, end };

/// Ops as they differ from `others`, which has them under the same ids, ascending like these: runs of equal ones by
/// their number, its own whole, those that it lacks by that.
void add(Sink& sink, const std::vector<Op>& ops, std::span<const Op> others, const model::Graph& graph) {
  std::size_t equal = 0;
  const auto then = [&](Then what) {
    sink.add(equal, what);
    equal = 0;
  };
  auto other = others.begin();
  for (const Op& op : ops) {
    for (; other != others.end() && other->id < op.id; ++other) then(Then::lacking);
    if (other != others.end() && other->id == op.id) {
      if (const Op& same = *other++; same == op) {
        ++equal;
        continue;
      }
    }
    then(Then::own);
    add(sink, op, graph);
  }
  then(Then::end);
}

[[nodiscard]] std::vector<bool> touched_buffers(const Plan& plan) {
  std::vector<bool> touched(plan.buffers.size(), false);
  for (const PhaseOps& phase : plan.phases)
    for (const Op& op : phase.ops)
      for (const Operand& o : op.operands) touched[static_cast<std::size_t>(o.buffer.value)] = true;
  return touched;
}

/// `first`: a class hashed before, from which this one may differ little; null for none.
void add(Sink& sink, const Plan& plan, const Plan* first) {
  sink.text(plan.model->name);
  sink.text(to_string(plan.strategy));
  const auto& [device, threads, storage, tensor_float] = plan.target;
  sink.add(device, threads, storage, tensor_float);
  const auto& [world_size, tensor_parallel, shard_degree] = plan.topology;
  const auto& [micro_stride, shard_stride, replica_stride] = plan.dealing;
  sink.add(world_size, tensor_parallel, shard_degree, micro_stride, shard_stride, replica_stride, plan.micro_batches);
  for (const Bytes bytes : plan.arena_bytes) sink.add(bytes);
  for (const model::Operator& op : plan.graph->operators) add(sink, op.attributes);
  const std::vector<bool> touched = touched_buffers(plan);
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    if (!touched[i]) continue;
    const auto& [name, category, memory, dtype, bytes, persistent, unit, offset] = plan.buffers[i];
    sink.add(i, category, memory, dtype, bytes, persistent, unit, offset);
    sink.text(name);
  }
  for (std::size_t p = 0; p < plan.phases.size(); ++p) {
    const PhaseOps& phase = plan.phases[p];
    sink.add(phase.phase, phase.ops.size());
    const bool has_other = first != nullptr && p < first->phases.size();
    add(sink, phase.ops, has_other ? std::span<const Op>(first->phases[p].ops) : std::span<const Op>(), *plan.graph);
  }
}

}  // namespace

std::string hash_of(const std::vector<Plan>& classes, const std::vector<std::int32_t>& class_of_rank) {
  Sink sink;
  for (const Plan& plan : classes) add(sink, plan, &plan == classes.data() ? nullptr : classes.data());
  sink.list(class_of_rank);
  return sink.hex();
}

}  // namespace shard::plan
