// Pass script: one step of a plain training script, and how long its variables hold their tensors.
#include <algorithm>
#include <map>

#include "sim/compile/passes/operands.h"
#include "sim/like/passes.h"

namespace shard::like {
namespace {

using plan::Access;
using plan::Compute;
using plan::Operand;

class Script {
 public:
  explicit Script(plan::Draft plan)
      : plan_(std::move(plan)),
        body_(std::move(plan_.find(Phase::steady_step)->ops)),
        loss_(static_cast<std::size_t>(std::find_if(body_.begin(), body_.end(), is_loss) - body_.begin())),
        output_(input_of_loss(0)),
        labels_(input_of_loss(1)) {
    plan_.buffer(output_).name = "outputs";
    plan_.buffer(labels_).name = "labels";
  }

  plan::Draft run() {
    const std::int64_t micro_steps = plan_.strategy.accumulation();
    for (std::int64_t j = 0; j < micro_steps; ++j) micro_step(static_cast<std::int32_t>(j));
    ops_.push_back({.name = "the script ends",
                    .part = plan::Part::report,
                    .action = plan::Copy{},
                    .operands = plan_.list({plan::reads(plan_, now(output_)), plan::reads(plan_, now(labels_))})});
    *plan_.find(Phase::steady_step) = {.phase = Phase::first_step, .ops = std::move(ops_)};
    return std::move(plan_);
  }

 private:
  static bool is_loss(const plan::Op& op) {
    const auto& compute = std::get<Compute>(op.action);
    return compute.direction == plan::Direction::forward && model::row(compute.kind).loss;
  }
  [[nodiscard]] BufferId input_of_loss(int i) const {
    const plan::Op& loss = body_[loss_];
    return loss.operands[plan::signature(std::get<Compute>(loss.action)).position(model::Role::x, i)].buffer;
  }

  [[nodiscard]] BufferId now(BufferId id) const {
    const auto it = bound_.find(id.value);
    return it == bound_.end() ? id : it->second;
  }

  void load(const char* name, BufferId buffer) {
    ops_.push_back({.name = name,
                    .part = plan::Part::data,
                    .micro_step = micro_step_,
                    .action = plan::LoadBatch{.first = micro_step_, .shard_stride = plan_.strategy.accumulation()},
                    .operands = plan_.list({plan::writes(plan_, buffer)})});
  }

  /// A variable's new tensor exists before it lets go of the old one.
  BufferId bind_again(BufferId id) {
    plan::Buffer copy = plan_.buffer(id);
    copy.name = plan_.text(copy.name, " of micro-step ", std::to_string(micro_step_));
    return plan_.add_buffer(copy);
  }
  void let_go(const char* name, BufferId old) {
    ops_.push_back({.name = name,
                    .part = plan::Part::data,
                    .micro_step = micro_step_,
                    .action = plan::Copy{},
                    .operands = plan_.list({plan::reads(plan_, old)})});
  }

  void micro_step(std::int32_t j) {
    micro_step_ = j;
    const BufferId old_output = now(output_), old_labels = now(labels_);
    if (j > 0) {
      bound_[output_.value] = bind_again(output_);
      bound_[labels_.value] = bind_again(labels_);
    }
    load("input to the device", plan_.value_buffer(plan_.graph->input));
    for (std::size_t i = 0; i < body_.size(); ++i) {
      if (i == loss_) {
        if (j > 0) let_go("outputs bound again", old_output);
        load("labels to the device", now(labels_));
        if (j > 0) let_go("labels bound again", old_labels);
      }
      plan::Op op = body_[i];
      op.micro_step = j;
      for (std::size_t k = 0, count = op.operands.size(); k < count; ++k) {
        plan_.own_operands(op)[k].buffer = now(op.operands[k].buffer);
        if (j > 0 && op.operands[k].access == Access::write) add_to_gradient(op, k);
      }
      ops_.push_back(op);
    }
  }

  void add_to_gradient(plan::Op& op, std::size_t k) {
    const BufferId gradient = op.operands[k].buffer;
    if (std::find(plan_.gradients.begin(), plan_.gradients.end(), gradient) == plan_.gradients.end()) return;
    plan_.own_operands(op)[k].access = Access::update;
    std::get<Compute>(op.action).accumulate_weight = true;
    BufferId& contribution = contributions_[gradient.value];
    if (!contribution.valid()) {
      contribution = plan_.add_buffer({.name = plan_.text(plan_.buffer(gradient).name, " contribution"),
                                       .category = Category::workspace,
                                       .bytes = plan_.buffer(gradient).bytes});
    }
    plan_.add_operand(op, plan::writes(plan_, contribution));
  }

  plan::Draft plan_;
  std::vector<plan::Op> body_;
  std::size_t loss_;
  BufferId output_, labels_;
  std::map<std::int32_t, BufferId> bound_;
  std::map<std::int32_t, BufferId> contributions_;
  std::vector<plan::Op> ops_;
  std::int32_t micro_step_ = 0;
};

}  // namespace

plan::Draft script(plan::Draft plan) {
  return Script(std::move(plan)).run();
}

}  // namespace shard::like
