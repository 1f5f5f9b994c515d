// Runs a plan on meanings instead of numbers: every byte is a piece of a value, a parameter, a gradient or state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/check/content.h"
#include "sim/check/control_book.h"
#include "sim/check/fault.h"
#include "sim/check/gradient_nodes.h"
#include "sim/check/graph_gradients.h"
#include "sim/check/roles.h"
#include "sim/ir/control_block.h"
#include "sim/ir/plan.h"

namespace shard::plan::verification {

/// One rank's run of all phases. An op that does not find what it is about breaks the rule that the comment names; the
/// first fault ends the run. Each section below is a source of its own.
class Interpreter {
 public:
  Interpreter(const Plan& plan, std::int32_t rank, Faults& faults);
  void check();

 private:
  struct InFlat {
    std::int32_t flat = -1;
    std::int64_t offset = 0;  ///< elements
  };
  [[nodiscard]] Contents& of(BufferId id) { return contents_[static_cast<std::size_t>(id.value)]; }
  [[nodiscard]] const Flat& flat(std::int32_t f) const { return plan_.flats[static_cast<std::size_t>(f)]; }
  [[nodiscard]] std::int64_t used(std::int32_t f) const { return flat(f).used.count(); }
  [[nodiscard]] std::string name(const Operand& o) const {
    return '\'' + std::string(plan_.buffer(o.buffer).name) + '\'';
  }

  // --- the plan's own tables -------------------------------------------------------------------------------------
  /// P32: what interpreters read in place of the strategy says what it says.
  void check_choices();
  /// P30: the parameters that the strategy names are frozen, and no others.
  void check_frozen();
  /// P31: what can drop does so with the probability of the strategy, and no two operators draw one mask.
  void check_masks();
  /// P22: a chunk has the size that the strategy says, or begins where it says and has the size of what it holds.
  void check_chunk(const Flat& chunk, const std::string& name);
  /// P22
  void check_flats();
  /// P20: every micro-batch of the global batch is loaded by exactly one rank in one micro-step.
  void check_dealing(const PhaseOps& phase);
  /// P22: creation leaves every rank with what rests on it.
  void check_created();
  /// P17: what rests on this rank is what the optimizer made. P16 says that it made all.
  void end_step();

  // --- reading and writing ---------------------------------------------------------------------------------------
  [[nodiscard]] static Content parameters(std::int32_t f, std::int64_t start, std::uint64_t version);
  [[nodiscard]] static Content masters(std::int32_t f, std::int64_t start, std::uint64_t version);
  /// This rank's shard of a flat, in elements: all or none where the flat has an owner.
  [[nodiscard]] Range own_part(std::int32_t f) const;
  [[nodiscard]] Dtype dtype(const Operand& o) const { return plan_.buffer(o.buffer).dtype; }
  /// The operand as elements of its buffer: contents are kept by element, so that copies may change their size.
  [[nodiscard]] Range elements(const Operand& o) const;
  [[nodiscard]] std::int64_t elems(const Operand& o) const { return o.bytes / bytes_per_element(dtype(o)); }
  /// `count` elements of the operand from `first` on.
  [[nodiscard]] Operand part_of(Operand o, std::int64_t first, std::int64_t count) const;
  [[nodiscard]] std::vector<Piece> read(const Operand& o);
  void write(const Operand& o, const Content& content);
  [[nodiscard]] static Content simple(Meaning meaning, std::int32_t step = -1);
  /// P30: what is only for parameters that are trained.
  bool trained(std::int32_t f, const char* what);
  /// The operand holds `content` and nothing else. Unwritten bytes are P8, others the rule given.
  bool expect(const Operand& o, const Content& content, const char* rule);
  bool access(const Operand& o, Access wanted, const char* rule);
  bool count(const Op& op, std::size_t wanted, const char* rule);
  void issue(const Op& op);

  // --- the model -------------------------------------------------------------------------------------------------
  void load_batch(const Op& op);
  [[nodiscard]] Content value(model::ValueId v, std::int32_t step) const;
  [[nodiscard]] static Content value_gradient(std::uint64_t sum, std::int32_t step);
  void compute(const Op& op, const Compute& c);
  /// P9: what an op does behind its own operator is one that the target fuses with it, of what that makes.
  bool check_then(const Compute& c);
  /// With a predivide factor f the leaves' sum over ranks is the gradient times D / f, else the gradient.
  [[nodiscard]] float leaf_scale() const;
  [[nodiscard]] float left_to_multiply() const;
  [[nodiscard]] InFlat place_of(const model::Operator& source, const Expected& e) const;
  /// In micro-step j: that the operand is accessed as it should be, and holds what is read.
  void read_operand(std::int32_t j, const model::Operator& source, const Operand& o, const Expected& e);
  void write_operand(std::int32_t j, const model::Operator& source, const Operand& o, const Expected& e);
  /// P13: one more contribution to a parameter's gradient.
  void contribute(std::int32_t j, const model::Operator& source, const Operand& o, const Expected& e);
  [[nodiscard]] std::int32_t index_of(const model::Operator& source) const {
    return static_cast<std::int32_t>(&source - plan_.graph->operators.data());
  }

  // --- the gradient tree -----------------------------------------------------------------------------------------
  /// A whole gradient: P13.
  bool complete(const Operand& o, const Content& c);
  void accumulate(const Op& op);

  // --- collectives -----------------------------------------------------------------------------------------------
  void communicate(const Op& op, const Communicate& call);
  bool operand_exists(const Op& op, std::int32_t i);
  /// This rank's number in its group of that kind, and the group's size.
  [[nodiscard]] std::int32_t member(Group group) const;
  /// Whether the two are the same ranks.
  bool wants_group(Group found, Group wanted);
  void check_shard(const Operand& shard, const Operand& full, Group group);
  void check_staging(const Op& op, const Communicate& call, Bytes largest);
  /// P27: a sum or gather over the ranks that share the model is one that the graph has there: of a whole value, or of
  /// a whole gradient, which every rank has done its part of.
  void exchange(const Op& op, const Operand& own, const Operand& full, Collective kind);
  void all_gather(const Operand& shard, const Operand& full, Group group);
  /// Whether this rank's part of the flat that `full` holds is all padding.
  [[nodiscard]] bool all_padding(const Operand& full) const;
  /// Shards of one flat become the whole: parameters, all of one version, or a moment.
  void gather_flat(const Operand& shard, const Operand& full, std::int32_t f);
  /// The gradients in `o` must be one whole flat from its first element on, or where replicas are summed one whole
  /// shard; padding may be unwritten.
  bool expect_whole_gradient(const Operand& o, const std::vector<Piece>& pieces, Group group);
  [[nodiscard]] bool in_flats(std::int32_t f) const;
  void reduce_scatter(const Operand& full, const Operand& shard, Group group);
  void all_reduce(const Operand& full, Group group);
  void broadcast(const Operand& full, std::int32_t root, Group group);
  /// Gradients of whole flats become sums on one rank; what others keep means nothing.
  void reduce_to_owner(const Operand& full, std::int32_t root, Group group);
  /// Parameters of whole flats, or their state, from their owner.
  void send_owned(const Operand& full, std::int32_t root, Group group);

  // --- optimizer and reports -------------------------------------------------------------------------------------
  void initialize(const Op& op, const Initialize& a);
  void zero(const Op& op, const ZeroState& a);
  void step(const Op& op, const OptimizerStep& a);
  /// The whole gradient of the step, reduced, of a flat's elements from `start` on.
  bool expect_step_gradient(const Operand& o, std::int32_t f, std::int64_t start, const char* does);

  // --- control: P26 ----------------------------------------------------------------------------------------------
  [[nodiscard]] std::int64_t fact_slots() const { return plan_.strategy.has_scaler() ? 2 : 1; }
  static constexpr std::int64_t kFactWords = kGradientFactsBytes.count() / 8;
  void load_scalars(const Op& op);
  void begin_control(const Op& op);
  /// One more inspection in the slot of the facts that `o` must be.
  void note(const Operand& o, std::int64_t slot, std::uint64_t before);
  void inspect(const Op& op, const InspectGradient& a);
  void inspect_local(const Op& op, const InspectGradient& a);
  /// All of this rank's facts, with everything that was inspected until now.
  bool expect_facts(const Operand& o);
  /// Ranks that share a model have the norm in parts.
  [[nodiscard]] Group facts_group() const;
  void decide(const Op& op, const Decide& a);
  void end_control();
  void mean_loss(const Op& op);
  void copy(const Op& op);
  void digest(const Op& op, const Digest& a);
  /// P36
  void save(const Op& op, const Save& a);
  [[nodiscard]] static Meaning meaning_of(StateContent content);

  const Plan& plan_;
  Position at_;
  std::int32_t shards_;  ///< ranks that share a flat
  std::int32_t ranks_;   ///< data-parallel ranks
  Faults& faults_;
  GraphGradients expected_;
  GradientNodes nodes_;
  ControlBook book_;
  std::vector<Contents> contents_;     // by buffer
  std::vector<InFlat> place_;          // by parameter
  std::vector<std::int32_t> same_as_;  // by value: the one whose name its bytes have
  const PhaseOps* phase_ = nullptr;
  bool in_step_ = false;
  bool loss_known_ = false;
};

}  // namespace shard::plan::verification
