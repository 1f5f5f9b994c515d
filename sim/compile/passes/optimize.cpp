// Pass optimize: optimizer state and steps, refresh of parameters, the mean loss, creation, digest and saving of a run.
#include <algorithm>

#include "sim/compile/parameter_units.h"
#include "sim/compile/passes/collectives.h"
#include "sim/compile/passes/control.h"
#include "sim/compile/passes/operands.h"
#include "sim/compile/passes/passes.h"
#include "sim/compile/passes/step_order.h"
#include "sim/ir/control_block.h"

namespace shard::plan {
namespace {

class Optimizer {
 public:
  explicit Optimizer(Draft plan)
      : plan_(std::move(plan)),
        stage_(plan_.strategy.effective_stage()),
        shards_(plan_.strategy.cuts()),
        at_(position(plan_.topology, plan_.rank)),
        whole_parameters_(stage_ == 1 && plan_.strategy.partition == Partition::parameter) {
    if (whole_parameters_)
      owners_ = greedy_owners(plan_.model->parameters, plan_.strategy.data_parallel(), plan_.model->frozen);
    state_count_ = plan_.strategy.optimizer == OptimizerKind::sgd ? 0 : 2;
  }

  Draft run() {
    plan_.scalars = plan_.add_buffer({.name = "optimizer scalars",
                                      .category = Category::input,
                                      .bytes = kOptimizerScalarsBytes,
                                      .persistent = true});
    counts_ = plan_.add_buffer({.name = "step counts",
                                .category = Category::optimizer_state,
                                .bytes = Bytes{static_cast<std::int64_t>(plan_.model->parameters.size()) * 4},
                                .persistent = true});
    stretches_ = stretches();
    create();
    step();
    digest();
    save();
    return std::move(plan_);
  }

 private:
  [[nodiscard]] const Flat& flat(std::int32_t f) const { return plan_.flats[static_cast<std::size_t>(f)]; }
  [[nodiscard]] BufferId parameters(std::int32_t f) const { return plan_.flat_parameters[static_cast<std::size_t>(f)]; }
  [[nodiscard]] std::string_view flat_name(std::int32_t f) const { return plan_.text(plan::flat_name(plan_, flat(f))); }
  [[nodiscard]] const std::string& param_name(model::ParamId p) const {
    return plan_.model->parameters[static_cast<std::size_t>(p.value)].name;
  }
  [[nodiscard]] std::vector<std::int32_t> all_flats() const {
    std::vector<std::int32_t> flats;
    for (std::size_t f = 0; f < plan_.flats.size(); ++f) flats.push_back(static_cast<std::int32_t>(f));
    return flats;
  }

  void create() {
    PhaseOps phase{.phase = Phase::creation, .ops = {}};
    for (std::int32_t f : all_flats()) {
      Op op{.name = plan_.text("initialize ", plan::flat_name(plan_, flat(f))),
            .part = Part::creation,
            .action = Absent{},
            .operands = {}};
      if (parameters(f).valid()) {
        const bool shard = stage_ == 3 && flat(f).owner < 0;
        op.action =
            shard ? Initialize{.flat = f, .rank_stride_elems = flat(f).shard(shards_), .elems = flat(f).shard(shards_)}
                  : Initialize{.flat = f, .elems = flat(f).elems};
        op.operands = plan_.list({writes(plan_, parameters(f))});
      }
      phase.ops.push_back(op);
    }
    for (const Stretch& s : stretches_) {
      if (!plan_.strategy.has_masters()) break;
      Op op{.name = plan_.text("initialize masters ", s.name),
            .part = Part::creation,
            .action = Absent{.lacks = Absent::Lacks::initialize, .flat = s.flat},
            .operands = {}};
      if (s.elems > 0) {
        op.action = Initialize{.flat = s.flat,
                               .first_elem = Elems{s.first},
                               .rank_stride_elems = Elems{s.rank_stride},
                               .elems = Elems{s.elems}};
        op.operands = plan_.list({writes(plan_, s.master)});
      }
      phase.ops.push_back(op);
    }
    plan_.phases.insert(plan_.phases.begin(), std::move(phase));
  }

  /// One stretch of parameters that this rank steps: part of a flat, or a whole parameter.
  struct Stretch {
    std::int32_t flat = -1;
    model::ParamId param{};
    std::int64_t first = 0;        ///< elements, on rank 0
    std::int64_t rank_stride = 0;  ///< elements
    std::int64_t elems = 0;        ///< 0: not on this rank
    std::string_view name{};
    BufferId master{};
    std::vector<BufferId> state{};
  };

  std::vector<Stretch> stretches() {
    std::vector<Stretch> result;
    for (std::int32_t f : all_flats()) {
      const Flat& source = flat(f);
      if (source.frozen) continue;
      if (whole_parameters_) {
        for (const Flat::Item& item : source.items) {
          const bool mine = owners_[static_cast<std::size_t>(item.param.value)] == at_.data;
          result.push_back({.flat = f,
                            .param = item.param,
                            .first = item.offset.count(),
                            .elems = mine ? item.elems.count() : 0,
                            .name = param_name(item.param),
                            .state = {}});
        }
      } else if (stage_ == 0) {
        result.push_back({.flat = f, .param = {}, .elems = source.used.count(), .name = flat_name(f), .state = {}});
      } else {
        const ElemRange real = real_shard(source, at_.shard, shards_);
        result.push_back({.flat = f,
                          .param = {},
                          .rank_stride = source.owner < 0 ? source.shard(shards_).count() : 0,
                          .elems = (real.end - real.begin).count(),
                          .name = flat_name(f),
                          .state = {}});
      }
    }
    static constexpr const char* kMoments[] = {" first moment", " second moment"};
    for (Stretch& s : result) {
      if (s.elems == 0) continue;
      const auto state = [&](const char* what, Category category) {
        return plan_.add_buffer({.name = plan_.text(s.name, what),
                                 .category = category,
                                 .bytes = bytes_of(Dtype::f32, Elems{s.elems}),
                                 .persistent = true});
      };
      if (plan_.strategy.has_masters()) s.master = state(" master", Category::master_parameter);
      for (int k = 0; k < state_count_; ++k) s.state.push_back(state(kMoments[k], Category::optimizer_state));
    }
    return result;
  }

  /// The bytes of a stretch inside a buffer that holds the whole flat, or only the shard.
  [[nodiscard]] Operand inside(BufferId buffer, const Stretch& s, bool shard_only, Access access) const {
    const std::int64_t size = element_bytes(plan_, buffer);
    Operand o{.buffer = buffer, .bytes = s.elems * size, .access = access};
    if (!shard_only) {
      o.offset = s.first * size;
      o.rank_stride = s.rank_stride * size;
    }
    return o;
  }

  void step() {
    std::vector<Op>& ops = plan_.find(Phase::steady_step)->ops;
    ops.insert(ops.begin(), Op{.name = "load scalars",
                               .part = Part::data,
                               .action = LoadScalars{},
                               .operands = plan_.list({writes(plan_, plan_.scalars)})});
    ops.push_back({.name = "zero step counts",
                   .part = Part::optimizer,
                   .first_step_only = true,
                   .action = ZeroState{.content = StateContent::step_counts},
                   .operands = plan_.list({writes(plan_, counts_)})});
    if (plan_.strategy.is_controlled()) control(ops);
    const std::vector<const Stretch*> order = step_order();
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Stretch& s = *order[i];
      step_stretch(ops, s);
      const bool unit_ends = i + 1 == order.size() || flat(order[i + 1]->flat).unit != flat(s.flat).unit;
      if (whole_parameters_)
        refresh_parameter(ops, s);
      else if ((stage_ == 1 || stage_ == 2) && unit_ends)
        refresh_unit(ops, flat(s.flat).unit);
    }
    report(ops);
  }

  /// As parameters are; a step away from the device may begin while backward still runs, so those go by their gradients.
  [[nodiscard]] std::vector<const Stretch*> step_order() const {
    std::vector<const Stretch*> order;
    for (const Stretch& s : stretches_) order.push_back(&s);
    if (plan_.strategy.placement.all_on_device() || plan_.strategy.is_controlled()) return order;
    const std::vector<std::size_t> complete = last_backward_of_units(plan_);
    std::ranges::stable_sort(
        order, {}, [&](const Stretch* s) { return complete[static_cast<std::size_t>(flat(s->flat).unit.value)]; });
    return order;
  }

  void control(std::vector<Op>& ops) {
    std::vector<SteppedGradient> stepped;
    for (const Stretch& s : stretches_)
      stepped.push_back({.name = s.name,
                         .flat = s.flat,
                         .first = s.first,
                         .rank_stride = s.rank_stride,
                         .elems = s.elems,
                         .gradient = gradient_of(s)});
    Control control(plan_);
    control.begin(ops);
    control.decide(ops, stepped);
  }

  [[nodiscard]] Operand gradient_of(const Stretch& s) const {
    if (s.elems == 0) return {};  // it is another rank's, who has a buffer for it
    return inside(plan_.flat_gradients[static_cast<std::size_t>(s.flat)], s, stage_ >= 2, Access::read);
  }

  void step_stretch(std::vector<Op>& ops, const Stretch& s) {
    Op born{.name = plan_.text("zero state ", s.name),
            .part = Part::optimizer,
            .first_step_only = true,
            .action = ZeroState{.flat = s.flat,
                                .param = s.param,
                                .first_elem = Elems{s.first},
                                .rank_stride_elems = Elems{s.rank_stride},
                                .elems = Elems{s.elems}},
            .operands = {}};
    Op op{.name = plan_.text("step ", s.name), .part = Part::optimizer, .action = {}, .operands = {}};
    Op store{.name = plan_.text("store ", s.name), .part = Part::optimizer, .action = Copy{}, .operands = {}};
    if (s.elems == 0) {
      born.action = Absent{};
      op.action = Absent{.lacks = Absent::Lacks::step, .flat = s.flat};
      store.action = Absent{.lacks = Absent::Lacks::store, .flat = s.flat};
    } else {
      std::vector<Operand> born_operands;
      for (BufferId b : s.state) born_operands.push_back(writes(plan_, b));
      born.operands = plan_.list(born_operands);
      op.action = OptimizerStep{.flat = s.flat,
                                .param = s.param,
                                .first_elem = Elems{s.first},
                                .rank_stride_elems = Elems{s.rank_stride},
                                .elems = Elems{s.elems},
                                .factor = plan_.strategy.gradient_factor(),
                                .kind = plan_.strategy.optimizer};
      const auto f = static_cast<std::size_t>(s.flat);
      const Operand stored = inside(plan_.flat_parameters[f], s, stage_ == 3, Access::update);
      if (s.master.valid()) store.operands = plan_.list({reads(plan_, s.master), stored});
      std::vector<Operand> operands{s.master.valid() ? updates(plan_, s.master) : stored, gradient_of(s),
                                    reads(plan_, plan_.scalars), updates(plan_, counts_)};
      for (BufferId b : s.state) operands.push_back(updates(plan_, b));
      if (plan_.control.valid()) operands.push_back(reads(plan_, plan_.control));
      op.operands = plan_.list(operands);
    }
    if (state_count_ > 0) ops.push_back(born);
    ops.push_back(op);
    if (plan_.strategy.has_masters()) ops.push_back(store);
  }

  void refresh_unit(std::vector<Op>& ops, UnitId id) {
    const Unit unit = trained_part(plan_, plan_.units[static_cast<std::size_t>(id.value)]);
    ops.push_back(make_refresh(plan_, unit.flats, plan_.text("refresh ", unit.name)));
  }

  /// A broadcast of one whole parameter from its owner.
  Op broadcast(std::string_view name, Part part, const Stretch& s, Operand content) {
    Op op = make_collective(plan_, Collective::broadcast, Group::data, name, part, flat(s.flat).unit,
                            {{.flat = s.flat, .full = content, .shard = {}}});
    std::get<Communicate>(op.action).root = owners_[static_cast<std::size_t>(s.param.value)];
    return op;
  }

  void refresh_parameter(std::vector<Op>& ops, const Stretch& s) {
    const std::int64_t elems = plan_.model->parameters[static_cast<std::size_t>(s.param.value)].elems.count();
    ops.push_back(broadcast(plan_.text("refresh ", s.name), Part::gather, s,
                            {.buffer = parameters(s.flat),
                             .offset = s.first * element_bytes(plan_, parameters(s.flat)),
                             .bytes = elems * element_bytes(plan_, parameters(s.flat)),
                             .access = Access::update}));
  }

  void report(std::vector<Op>& ops) {
    plan_.loss = plan_.add_buffer(
        {.name = "mean loss", .category = Category::input, .bytes = Bytes{kScalarBytes}, .persistent = true});
    BufferId all = plan_.losses;
    if (const std::int32_t ranks = plan_.strategy.data_parallel(); ranks > 1) {
      all = plan_.add_buffer({.name = "losses",
                              .category = Category::input,
                              .bytes = Bytes{plan_.buffer(plan_.losses).bytes.count() * ranks}});
      ops.push_back(make_collective(plan_, Collective::all_gather, Group::data, "gather losses", Part::report, UnitId{},
                                    {{.flat = -1, .full = writes(plan_, all), .shard = reads(plan_, plan_.losses)}}));
    }
    ops.push_back({.name = "mean loss",
                   .part = Part::report,
                   .action = MeanLoss{},
                   .operands = plan_.list({reads(plan_, all), writes(plan_, plan_.loss)})});
  }

  void digest() {
    PhaseOps phase{.phase = Phase::digest, .ops = {}};
    for (std::int32_t f : all_flats()) {
      BufferId content = parameters(f);
      if (stage_ == 3) {
        content = plan_.flat_gathered[static_cast<std::size_t>(f)];
        phase.ops.push_back(
            make_gather(plan_, {f}, plan_.text("gather ", plan::flat_name(plan_, flat(f))), Part::digest));
      }
      phase.ops.push_back({.name = plan_.text("digest ", plan::flat_name(plan_, flat(f))),
                           .part = Part::digest,
                           .action = Digest{.content = Digest::Content::parameter, .flat = f, .param = {}},
                           .operands = plan_.list({reads(plan_, content)})});
    }
    using Content = Digest::Content;
    for (const Stretch& s : stretches_) {
      const auto state = [&](int k) { return s.elems > 0 ? s.state[static_cast<std::size_t>(k)] : BufferId{}; };
      if (plan_.strategy.has_masters()) digest_state(phase.ops, s, Content::master, s.master, " master");
      if (state_count_ > 0) digest_state(phase.ops, s, Content::first_moment, state(0), " first moment");
      if (state_count_ > 1) digest_state(phase.ops, s, Content::second_moment, state(1), " second moment");
    }
    plan_.phases.push_back(std::move(phase));
  }

  /// `state`: the stretch's fp32 buffer; invalid where this rank has none.
  void digest_state(std::vector<Op>& ops, const Stretch& s, Digest::Content content, BufferId state,
                    const char* suffix) {
    const Digest what{.content = content, .flat = s.flat, .param = s.param};
    const std::string_view name = plan_.text(s.name, suffix);
    if (stage_ == 0) {
      ops.push_back({.name = plan_.text("digest ", name),
                     .part = Part::digest,
                     .action = what,
                     .operands = plan_.list({reads(plan_, state)})});
      return;
    }
    if (flat(s.flat).owner >= 0) return digest_owned(ops, s, what, state, name);
    const std::int64_t elems = whole_parameters_
                                   ? plan_.model->parameters[static_cast<std::size_t>(s.param.value)].elems.count()
                                   : flat(s.flat).elems.count();
    const BufferId staging = plan_.add_buffer({.name = plan_.text(name, " staged"),
                                               .category = Category::communication,
                                               .bytes = bytes_of(Dtype::f32, Elems{elems}),
                                               .unit = flat(s.flat).unit});
    Op stage{.name = plan_.text("stage ", name),
             .part = Part::digest,
             .action = Absent{.lacks = Absent::Lacks::stage, .flat = s.flat},
             .operands = {}};
    if (s.elems > 0) {
      stage.action = Copy{};
      Operand to = inside(staging, s, whole_parameters_, Access::write);
      to.fresh = true;
      stage.operands = plan_.list({reads(plan_, state), to});
    }
    ops.push_back(stage);
    if (whole_parameters_)
      ops.push_back(broadcast(plan_.text("broadcast ", name), Part::digest, s, updates(plan_, staging)));
    else
      ops.push_back(make_collective(plan_, Collective::all_gather, Group::shard, plan_.text("gather ", name),
                                    Part::digest, flat(s.flat).unit,
                                    {{.flat = s.flat,
                                      .full = updates(plan_, staging),
                                      .shard = own_part(plan_, s.flat, staging, Access::read)}}));
    ops.push_back({.name = plan_.text("digest ", name),
                   .part = Part::digest,
                   .action = what,
                   .operands = plan_.list({reads(plan_, staging)})});
  }

  /// The owner sends what it has.
  void digest_owned(std::vector<Op>& ops, const Stretch& s, const Digest& what, BufferId state, std::string_view name) {
    const Flat& source = flat(s.flat);
    const BufferId content = state.valid() ? state
                                           : plan_.add_buffer({.name = plan_.text(name, " staged"),
                                                               .category = Category::communication,
                                                               .bytes = bytes_of(Dtype::f32, source.used),
                                                               .unit = source.unit});
    Op op = make_collective(
        plan_, Collective::broadcast, Group::shard, plan_.text("broadcast ", name), Part::digest, source.unit,
        {{.flat = s.flat, .full = whole(plan_, content, state.valid() ? Access::read : Access::write), .shard = {}}});
    std::get<Communicate>(op.action).root = source.owner;
    ops.push_back(op);
    ops.push_back({.name = plan_.text("digest ", name),
                   .part = Part::digest,
                   .action = what,
                   .operands = plan_.list({reads(plan_, content)})});
  }

  /// Every rank hands out what it alone holds, and its part of what others hold too.
  void save() {
    PhaseOps phase{.phase = Phase::save, .ops = {}};
    for (std::int32_t f : all_flats())
      if (flat(f).frozen) save_frozen(phase.ops, f);
    for (const Stretch& s : stretches_) {
      const bool here = s.elems > 0;
      const auto state = [&](int k) { return here ? reads(plan_, s.state[static_cast<std::size_t>(k)]) : Operand{}; };
      const auto content = plan_.strategy.has_masters() ? StateContent::master : StateContent::parameter;
      const auto values = [&] {
        if (!here) return Operand{};
        return s.master.valid() ? reads(plan_, s.master) : inside(parameters(s.flat), s, stage_ == 3, Access::read);
      };
      save_stretch(phase.ops, s, content, values());
      if (state_count_ > 0) save_stretch(phase.ops, s, StateContent::first_moment, state(0));
      if (state_count_ > 1) save_stretch(phase.ops, s, StateContent::second_moment, state(1));
    }
    for (std::int32_t f : all_flats())
      if (!flat(f).frozen) save_counts(phase.ops, f);
    if (plan_.loss_scaler.valid())
      phase.ops.push_back({.name = "save loss scaler",
                           .part = Part::save,
                           .action = Save{.held = Save::Held::by_data_ranks, .content = StateContent::loss_scaler},
                           .operands = plan_.list({reads(plan_, plan_.loss_scaler)})});
    plan_.phases.push_back(std::move(phase));
  }

  void save_stretch(std::vector<Op>& ops, const Stretch& s, StateContent content, const Operand& from) {
    Op op{
        .name = plan_.text("save ", s.name, word_of(content)), .part = Part::save, .action = Absent{}, .operands = {}};
    if (s.elems > 0) {
      op.action = Save{.held = whole_parameters_ ? Save::Held::here
                               : stage_ == 0     ? Save::Held::by_data_ranks
                                                 : Save::Held::by_replicas,
                       .content = content,
                       .flat = s.flat,
                       .first_elem = Elems{s.first},
                       .rank_stride_elems = Elems{s.rank_stride},
                       .elems = Elems{s.elems}};
      op.operands = plan_.list({from});
    }
    ops.push_back(op);
  }

  void save_frozen(std::vector<Op>& ops, std::int32_t f) {
    Op op{.name = plan_.text("save ", plan::flat_name(plan_, flat(f))),
          .part = Part::save,
          .action = Absent{},
          .operands = {}};
    const bool shard = stage_ == 3 && flat(f).owner < 0;
    const ElemRange real = shard ? real_shard(flat(f), at_.shard, shards_) : ElemRange{Elems{0}, flat(f).used};
    if (parameters(f).valid() && real.begin < real.end) {
      const Elems elems = real.end - real.begin;
      Operand from = whole(plan_, parameters(f), Access::read);
      from.bytes = bytes_of(plan_.buffer(parameters(f)).dtype, elems).count();
      op.action = Save{.held = stage_ == 3 ? Save::Held::by_replicas : Save::Held::by_data_ranks,
                       .content = StateContent::parameter,
                       .flat = f,
                       .rank_stride_elems = shard ? flat(f).shard(shards_) : Elems{0},
                       .elems = elems};
      op.operands = plan_.list({from});
    }
    ops.push_back(op);
  }

  /// By who steps some of the flat.
  void save_counts(std::vector<Op>& ops, std::int32_t f) {
    Op op{.name = plan_.text("save step counts ", plan::flat_name(plan_, flat(f))),
          .part = Part::save,
          .action = Absent{},
          .operands = {}};
    if (std::ranges::any_of(stretches_, [&](const Stretch& s) { return s.flat == f && s.elems > 0; })) {
      op.action = Save{.held = Save::Held::by_data_ranks, .content = StateContent::step_counts, .flat = f};
      op.operands = plan_.list({reads(plan_, counts_)});
    }
    ops.push_back(op);
  }

  [[nodiscard]] static const char* word_of(StateContent content) {
    switch (content) {
      case StateContent::master: return " master";
      case StateContent::first_moment: return " first moment";
      case StateContent::second_moment: return " second moment";
      case StateContent::parameter:
      case StateContent::step_counts:
      case StateContent::loss_scaler: break;
    }
    return "";
  }

  Draft plan_;
  std::int32_t stage_;
  std::int32_t shards_;
  Position at_;
  bool whole_parameters_;
  std::vector<std::int32_t> owners_;
  int state_count_ = 2;
  BufferId counts_;
  std::vector<Stretch> stretches_;
};

}  // namespace

Draft optimize(Draft plan) {
  return Optimizer(std::move(plan)).run();
}

}  // namespace shard::plan
