// A plan: ordered ops over named buffers for one class of equal ranks, in phases. Immutable once compiled.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/chunk/layout.h"
#include "sim/ir/dealing.h"
#include "sim/ir/op.h"
#include "sim/ir/placed.h"
#include "sim/memory/arena.h"
#include "sim/model/graph.h"
#include "sim/strategy/strategy.h"
#include "sim/strategy/topology.h"
#include "sim/target/target.h"
#include "traces/base/ids.h"
#include "traces/base/units.h"

namespace shard::plan {

/// Every buffer of an arena starts at a multiple of this: a cache line, and the widest vector register.
inline constexpr std::int64_t kAlignment = kArenaAlignment;

struct Buffer {
  Name name{};  ///< in the plan's pool, its model or graph, or a literal
  Category category{};
  Memory memory = Memory::device;
  Dtype dtype = Dtype::f32;  ///< of its elements
  Bytes bytes{};             ///< what is used; the arena rounds up to kAlignment
  bool persistent = false;   ///< never released once born
  UnitId unit{};             ///< valid for parameters, gathered parameters and gradients
  std::int64_t offset = -1;  ///< in its memory's arena; set by allocate
};

/// A run of parameters laid out one behind the other and padded to a multiple of the ranks that share
/// its shards: what is cut into equal shards, or lies whole on its owner. Offsets and sizes in elements.
struct Flat {
  struct Item {
    model::ParamId param{};
    Elems offset{};
    Elems elems{};
  };
  UnitId unit{};
  Elems elems{};  ///< padding included
  Elems used{};   ///< up to the end of the last parameter
  std::vector<Item> items{};
  std::int32_t owner = -1;  ///< Ownership::rank: the member of the shard group that holds all of it; -1: split
  bool frozen = false;      ///< all its parameters are: no gradient, no master, no optimizer state, no step
  [[nodiscard]] Elems shard(std::int32_t shards) const { return shard_range(elems, 0, shards).end; }
};

/// What is gathered, released and reduced in one call: one flat, or several for UnitKind::bucket.
struct Unit {
  std::string name{};
  std::vector<std::int32_t> flats{};  ///< indices into Plan::flats
};

/// Elements [first, first + elems) of a parameter, at `offset` elements inside a flat.
struct ParamRange {
  model::ParamId param{};
  Elems first{};
  Elems offset{};
  Elems elems{};
};

/// The parts of a flat's parameters inside [begin, end) elements of the flat, in order.
[[nodiscard]] std::vector<ParamRange> param_ranges(const Flat& flat, Elems begin, Elems end);

/// The real elements (padding excluded) of a flat that are one rank's of `shards`: its shard, or where the flat has an
/// owner all or none. Empty when all padding.
[[nodiscard]] ElemRange real_shard(const Flat& flat, std::int32_t shard_rank, std::int32_t shards);

/// The ops of one phase, in plan order. The memory a phase starts with is what earlier phases left persistent.
struct PhaseOps {
  Phase phase{};
  std::vector<Op> ops{};
};

struct Plan {
  /// Lists and names of ops and buffers. Copies of a plan share it: none changes what it holds.
  std::shared_ptr<Pool> pool = std::make_shared<Pool>();
  std::shared_ptr<const model::Model> model{};
  std::shared_ptr<const model::Graph> graph{};  ///< one micro-batch
  Strategy strategy{};                          ///< what the passes go by; interpreters read the rest
  Target target{};
  Topology topology{};
  Dealing dealing{};  ///< since accumulate
  /// Of a folded plan, to predict by, not to run: for how many micro-steps of the step each of the plan's stands;
  /// empty: every micro-step is there.
  std::vector<std::int64_t> micro_step_times{};
  std::int64_t micro_batches = 1;  ///< M, of a step, over all ranks
  std::int32_t rank = 0;           ///< the representative of this class of ranks
  std::vector<Buffer> buffers{};   ///< BufferId indexes this
  std::vector<Flat> flats{};
  std::vector<Unit> units{};             ///< UnitId indexes this
  std::vector<PhaseOps> phases{};        ///< creation, first_step, steady_step, digest, save
  Bytes arena_bytes[kMemoryCount] = {};  ///< extent of each memory's arena over all phases; set by allocate
  /// By flat: the parameters that rest on this rank, all or its shard; invalid where another owns them.
  std::vector<BufferId> flat_parameters{};
  std::vector<BufferId> flat_gathered{};  ///< stage 3, by flat: the gathered parameters
  Placed placed{};                        ///< where model data rests
  BufferId losses{};                      ///< f32 [micro-steps], this rank's
  BufferId loss{};                        ///< mean loss of the step, f32 [1]
  BufferId scalars{};                     ///< what LoadScalars writes
  BufferId control{};                     ///< what Decide writes; invalid where the step is not controlled
  BufferId loss_scaler{};                 ///< ScalerState; invalid where losses are not scaled
  [[nodiscard]] const Buffer& buffer(BufferId id) const { return buffers[static_cast<std::size_t>(id.value)]; }
  [[nodiscard]] Buffer& buffer(BufferId id) { return buffers[static_cast<std::size_t>(id.value)]; }
  /// How often a step has the op.
  [[nodiscard]] std::int64_t times_of(const Op& op) const {
    return micro_step_times.empty() || op.micro_step < 0 ? 1
                                                         : micro_step_times[static_cast<std::size_t>(op.micro_step)];
  }
  template <class T>
  [[nodiscard]] List<T> list(std::initializer_list<T> elements) const {
    return pool->keep(std::span<const T>(elements.begin(), elements.size()));
  }
  template <class T>
  [[nodiscard]] List<T> list(const std::vector<T>& elements) const {
    return pool->keep(std::span<const T>(elements));
  }
  /// A name of these parts.
  template <class... Parts>
  [[nodiscard]] std::string_view text(const Parts&... parts) const {
    return pool->text({std::string_view(parts)...});
  }
  /// The op's operands, to be changed: its own from now on.
  [[nodiscard]] std::span<Operand> own_operands(Op& op) const {
    const std::span<Operand> own = pool->make<Operand>(op.operands.size());
    std::copy(op.operands.begin(), op.operands.end(), own.begin());
    op.operands = List<Operand>(own);
    return own;
  }
  /// Gives the op one more operand, the last.
  void add_operand(Op& op, const Operand& operand) const {
    const std::span<Operand> own = pool->make<Operand>(op.operands.size() + 1);
    std::copy(op.operands.begin(), op.operands.end(), own.begin());
    own.back() = operand;
    op.operands = List<Operand>(own);
  }
  /// Adds a buffer and returns its id.
  BufferId add_buffer(Buffer buffer) {
    buffers.push_back(std::move(buffer));
    return BufferId{static_cast<std::int32_t>(buffers.size()) - 1};
  }
  [[nodiscard]] PhaseOps* find(Phase phase) {
    for (PhaseOps& p : phases)
      if (p.phase == phase) return &p;
    return nullptr;
  }
  [[nodiscard]] const PhaseOps* find(Phase phase) const {
    for (const PhaseOps& p : phases)
      if (p.phase == phase) return &p;
    return nullptr;
  }
};

/// Whether work on all ops of such a plan is worth a thread, which costs as much as some hundred ops.
[[nodiscard]] bool is_worth_a_thread(const Plan& plan);

}  // namespace shard::plan
