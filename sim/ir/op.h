// The instruction set: what one op does, over which bytes of which planned buffers. SPEC.md gives each op's meaning.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <variant>

#include "sim/ir/pool.h"
#include "sim/model/direction.h"
#include "sim/model/fusion.h"
#include "sim/model/graph.h"
#include "sim/model/signature.h"
#include "sim/strategy/strategy.h"
#include "sim/strategy/topology.h"
#include "traces/base/ids.h"
#include "traces/base/units.h"

namespace shard::plan {

using model::Access;
using model::Direction;
using shard::Part;

/// A byte range of a planned buffer. On the rank that holds shard r it starts at
/// offset + r * rank_stride (topology.h), so equal ranks share one plan.
struct Operand {
  BufferId buffer{};
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::int64_t rank_stride = 0;
  Access access = Access::read;
  /// The buffer's earlier content is dead before this access: a new lifetime begins here.
  bool fresh = false;
  [[nodiscard]] bool reads() const { return access != Access::write; }
  [[nodiscard]] bool writes() const { return access != Access::read; }
  [[nodiscard]] std::int64_t offset_on(std::int32_t shard_rank) const { return offset + shard_rank * rank_stride; }
  friend bool operator==(const Operand&, const Operand&) = default;
};

inline constexpr model::Attributes kNoAttributes{};

/// An operator that an op does behind its own, of what that makes: one op where there were two (model/fusion.h).
struct Then {
  model::OperatorKind kind{};
  std::int32_t source = -1;                              ///< index of the operator in the graph, -1: there is none
  const model::Attributes* attributes = &kNoAttributes;  ///< never null; of the operator, in the plan's graph
  [[nodiscard]] bool present() const { return source >= 0; }
  friend bool operator==(const Then&, const Then&) = default;
};

/// An operator of the model on one micro-batch. Operands: those of its signature().
struct Compute {
  model::OperatorKind kind{};
  Direction direction = Direction::forward;
  std::int32_t source = -1;                              ///< index of the operator in the graph
  const model::Attributes* attributes = &kNoAttributes;  ///< never null; of the operator, in the plan's graph
  bool input_gradient = false;                           ///< backward: there is a gradient of the input
  bool in_place = false;                                 ///< backward: it takes the place of that of the result
  bool accumulate_input = false;                         ///< the input gradient is added to, not written
  bool accumulate_weight = false;                        ///< the parameter gradient is added to, not written
  bool workspace = false;
  float scale = 1.0f;   ///< loss operators, backward: 1 / M, so that nothing divides afterwards
  bool scaled = false;  ///< loss operators, backward: times the loss scale, which is an operand
  bool drops = true;    ///< false: nothing is dropped, whatever the probability
  Then then{};
  /// Of an element of what the operator drops from.
  [[nodiscard]] float drop_probability() const { return drops ? attributes->probability : 0; }
  friend bool operator==(const Compute&, const Compute&) = default;
};

[[nodiscard]] inline model::Signature signature(const Compute& c) {
  const model::Signature own = model::signature(c.kind, c.direction, *c.attributes,
                                                {.input_gradient = c.input_gradient,
                                                 .in_place = c.in_place,
                                                 .accumulate_input = c.accumulate_input,
                                                 .accumulate_weight = c.accumulate_weight,
                                                 .scaled = c.scaled,
                                                 .workspace = c.workspace});
  if (!c.then.present()) return own;
  const Direction behind = model::direction_behind(c.direction);
  return model::fused(own, model::signature(c.then.kind, behind, *c.then.attributes, {.input_gradient = true}),
                      c.direction);
}

/// Writes the samples and targets of one micro-batch of this step. Operands: input (write), target (write).
struct LoadBatch {
  std::int64_t first = 0;
  std::int64_t shard_stride = 0;    ///< from one rank of a shard group to the next
  std::int64_t replica_stride = 0;  ///< from one shard group to the next
  [[nodiscard]] constexpr std::int64_t micro_batch(std::int32_t shard_rank, std::int32_t replica) const {
    return first + shard_rank * shard_stride + replica * replica_stride;
  }
  friend bool operator==(const LoadBatch&, const LoadBatch&) = default;
};

/// Writes learning rate, step number and the other scalars that ops read. Operands: scalars (write), where the step is
/// controlled (Strategy::is_controlled) the knobs of control_block.h (write).
struct LoadScalars {
  friend bool operator==(const LoadScalars&, const LoadScalars&) = default;
};

/// One part of a collective: full bytes [full, full + elems) hold one shard per member of the group, in order.
struct Segment {
  std::int32_t shard_operand = 0;  ///< index into operands: this rank's shard (may lie inside full)
  std::int32_t full_operand = 0;   ///< index into operands
  Elems elems{};                   ///< of full; a multiple of the group's size for gather and scatter
  friend bool operator==(const Segment&, const Segment&) = default;
};

/// So many collectives of a rank may be in flight at once, started and not landed.
inline constexpr std::size_t kCollectivesAtOnce = 16;

/// A collective over a group of ranks: one call, however many segments. Counted once, bytes = sum of full segments.
/// all_reduce, broadcast and reduce use full_operand alone.
struct Communicate {
  Collective kind{};
  UnitId unit{};
  List<Segment> segments{};
  Group group = Group::shard;
  std::int32_t root = 0;                ///< broadcast, reduce: a member's number in the group
  std::int32_t workspace_operand = -1;  ///< staging of the message transport, -1: none
  /// It starts when this earlier collective of the phase, and all before that, have landed: the newest whose bytes meet
  /// its own, or the one that would make too many. Invalid: it may be in flight together with all before it.
  OpId behind{};
  friend bool operator==(const Communicate&, const Communicate&) = default;
};

/// dst += src, the inner node of the gradient tree. Operands: dst (update), src (read).
struct Accumulate {
  UnitId unit{};
  friend bool operator==(const Accumulate&, const Accumulate&) = default;
};

/// Writes the first values of elements [first_elem + shard rank * rank_stride_elems, + elems) of a flat, padding too.
/// Operands: parameters (write).
struct Initialize {
  std::int32_t flat = -1;
  Elems first_elem{};
  Elems rank_stride_elems{};
  Elems elems{};
  friend bool operator==(const Initialize&, const Initialize&) = default;
};

/// What of a run's state an op is about.
enum class StateContent : std::uint8_t {
  parameter,  ///< as it is stored
  first_moment,
  second_moment,
  master,       ///< fp32, where parameters are stored with 16 bits
  step_counts,  ///< i32, by parameter
  loss_scaler,  ///< ScalerState
};

/// Optimizer state is born: zeros, or what a run that goes on had. Operands: each state buffer (write). Elements as
/// OptimizerStep says them; the operands are the moments in order.
struct ZeroState {
  StateContent content = StateContent::first_moment;  ///< first_moment: both moments
  std::int32_t flat = -1;
  model::ParamId param{};
  Elems first_elem{};
  Elems rank_stride_elems{};
  Elems elems{};
  friend bool operator==(const ZeroState&, const ZeroState&) = default;
};

/// Hands elements of a flat, or what steps count, to whoever keeps the state of the run. Operands: content (read).
/// Elements as OptimizerStep says them; step counts are those of a flat's parameters. Of ranks that hold the same each
/// hands out its part.
struct Save {
  enum class Held : std::uint8_t { here, by_replicas, by_data_ranks } held{};
  StateContent content{};
  std::int32_t flat = -1;
  Elems first_elem{};
  Elems rank_stride_elems{};
  Elems elems{};
  friend bool operator==(const Save&, const Save&) = default;
};

/// One optimizer step over parameters of a flat that this rank owns.
/// Operands: parameters, the masters where there are some (update), gradient (read), scalars (read), step counts
/// (update), then each state buffer (update), then where the step is controlled what decide wrote (read): gradients are
/// multiplied as it says, and a skipped step changes nothing. first_elem and elems say which elements of the flat: on
/// the rank that holds shard r they start at first_elem + r * rank_stride_elems.
struct OptimizerStep {
  std::int32_t flat = -1;
  model::ParamId param{};  ///< partition parameter: the only parameter stepped; else invalid
  Elems first_elem{};
  Elems rank_stride_elems{};
  Elems elems{};        ///< real elements on this rank class, padding excluded
  float factor = 1.0f;  ///< of the gradient: what --gradient-predivide-factor left to do
  OptimizerKind kind{};
  friend bool operator==(const OptimizerStep&, const OptimizerStep&) = default;
};

/// Begins the control of a step. Operands: knobs (read), gradient facts (write: nothing seen yet), and with a loss
/// scaler its state (update: a newborn scale becomes the initial one) and the loss scale of this step (write).
struct BeginControl {
  friend bool operator==(const BeginControl&, const BeginControl&) = default;
};

/// Adds what it finds in gradients to what is known of them (control_block.h, GradientFacts). Operands: gradient
/// (read), facts (update). Elements as OptimizerStep says them.
struct InspectGradient {
  enum class Of : std::uint8_t {
    stepped,  ///< what this rank steps: squares and non-finite elements; of ranks that share a model the first looks at
              ///< parameters that are not cut, the others leave them out
    local,    ///< a rank's own gradient before it is summed over ranks: non-finite elements only, last tensor first
  } of{};
  std::int32_t flat = -1;
  Elems first_elem{};
  Elems rank_stride_elems{};
  Elems elems{};
  friend bool operator==(const InspectGradient&, const InspectGradient&) = default;
};

/// Decides for all ranks alike by what factor gradients are multiplied, whether the step is skipped, and how the loss
/// scale goes on. Operands: facts of all members (read), knobs (read), control (write), and with a loss scaler its
/// state (update). Facts of one member: of its stepped gradients, then with a scaler of its local ones.
struct Decide {
  std::int32_t members = 1;  ///< whose facts are there
  std::int32_t counted = 1;  ///< how many of them, from the first, step every element once between them
  float factor = 1.0f;       ///< as OptimizerStep: the norm is that of the gradients multiplied by it
  bool clips = false;        ///< the norm is kept within the knobs' threshold
  friend bool operator==(const Decide&, const Decide&) = default;
};

/// Mean of all micro-batches' losses. Operands: losses (read), mean (write). Plan::dealing says which micro-batch the
/// loss of a rank's micro-step belongs to.
struct MeanLoss {
  friend bool operator==(const MeanLoss&, const MeanLoss&) = default;
};

/// Copies elements, rounded to nearest even where the destination's type is smaller, between memories where the
/// buffers' differ. Operands: source (read), destination (write or update), equally many elements.
struct Copy {
  UnitId unit{};  ///< whose data moves between memories; invalid where it stays in one
  friend bool operator==(const Copy&, const Copy&) = default;
};

/// Feeds a whole flat's content to the run's digest, parameter by parameter (rank 0 hashes). Operands: content (read).
struct Digest {
  using Content = StateContent;
  Content content{};
  std::int32_t flat = -1;
  model::ParamId param{};  ///< valid: this parameter only, content starts at its first element
  friend bool operator==(const Digest&, const Digest&) = default;
};

/// An op that this rank lacks; keeps ids equal on all ranks and is dropped before the plan is used. Where other ranks'
/// ops are moved about, it says what they have in its place.
struct Absent {
  enum class Lacks : std::uint8_t { other, initialize, inspect, step, store, stage, accumulate, all_reduce };
  Lacks lacks = Lacks::other;
  std::int32_t flat = -1;  ///< what it would be about: pass place adds absent moves where other ranks have moves
  friend bool operator==(const Absent&, const Absent&) = default;
};

using Action = std::variant<Compute, LoadBatch, LoadScalars, Communicate, Accumulate, Initialize, ZeroState,
                            OptimizerStep, MeanLoss, Copy, Digest, BeginControl, InspectGradient, Decide, Absent, Save>;

/// Lists and name lie in the pool of the op's plan, or are literals. Equal: of one plan set, or at least of one graph,
/// whose attributes are compared by where they are.
struct Op {
  OpId id{};
  Name name{};  ///< e.g. "h.0.attn.c_attn backward_weight"
  Part part = Part::forward;
  Stream stream = Stream::compute;
  std::int32_t block = -1;
  std::int32_t micro_step = -1;  ///< -1: once per step
  bool first_step_only = false;  ///< births of optimizer state
  Action action{};
  List<Operand> operands{};
  List<OpId> dependencies{};  ///< ops of other streams that must have finished; order inside a stream is implied
  List<BufferId> acquire{};   ///< buffers whose lifetime begins with this op
  List<BufferId> release{};   ///< buffers whose lifetime ends with this op
  friend bool operator==(const Op&, const Op&) = default;
};
static_assert(std::is_trivially_copyable_v<Op>, "ranks and phases copy ops by the thousand");

/// One visitor made of lambdas; a forgotten alternative does not compile.
template <class... F>
struct on : F... {
  using F::operator()...;
};
template <class... F>
on(F...) -> on<F...>;

}  // namespace shard::plan
