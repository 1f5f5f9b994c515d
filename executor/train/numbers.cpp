// Finding who lost the numbers first.
#include "executor/train/numbers.h"

#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

namespace shard::train {
namespace {

struct FoundOnRank {
  executor::NotFinite what;
  std::int32_t rank = 0;
};

/// The earliest of all ranks; of one step the first parameter in the model's order.
Result<std::optional<FoundOnRank>> first_of_all(const executor::Health& own, Communicator& communicator) {
  const std::string said =
      own.state ? std::to_string(own.state->step) + ' ' + std::to_string(own.state->param.value) : "";
  const auto all = communicator.exchange(said);
  if (!all) return all.error();
  std::optional<FoundOnRank> first;
  for (std::size_t rank = 0; rank < all->size(); ++rank) {
    long long step = 0;
    int param = 0;
    if (std::sscanf((*all)[rank].c_str(), "%lld %d", &step, &param) != 2) continue;
    if (first && (first->what.step < step || (first->what.step == step && first->what.param.value <= param))) continue;
    first = {.what = {.step = step, .param = model::ParamId{param}}, .rank = static_cast<std::int32_t>(rank)};
  }
  return first;
}

Error lost(std::int64_t step, std::string what) {
  return {.code = Errc::contradiction,
          .what = std::move(what),
          .where = "step " + std::to_string(step + 1),
          .help = "a lower --lr, --clip-norm 1 or a wider --precision; --keep-going trains on without numbers"};
}

const std::string& name_of(const plan::Plan& plan, std::int32_t param) {
  return plan.model->parameters[static_cast<std::size_t>(param)].name;
}

std::string describe(const FoundOnRank& found, const plan::Plan& plan) {
  return name_of(plan, found.what.param.value) + " was not finite behind step " + std::to_string(found.what.step + 1) +
         " on rank " + std::to_string(found.rank);
}

/// The first of the ranks that worked on a micro-batch.
std::int32_t rank_of(const plan::Plan& plan, std::int64_t micro_batch) {
  const std::int64_t micro_steps = plan.micro_batches / plan.topology.data_parallel();
  const std::int64_t place = plan.dealing.place(micro_batch, micro_steps, plan.topology.shard_degree);
  return static_cast<std::int32_t>(place / micro_steps) * plan.topology.tensor_parallel;
}

std::string shown(double value) {
  return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
}

}  // namespace

Result<void> check_step(const StepResult& step, const executor::Health& own, const plan::Plan& plan,
                        Communicator& communicator) {
  const bool no_loss = !std::isfinite(step.loss);
  const bool no_norm = step.control && step.control->skip == 0 && !std::isfinite(step.control->norm);
  if (!no_loss && !no_norm) return {};
  const auto first = first_of_all(own, communicator);
  if (!first) return first.error();
  if (no_loss && *first && (*first)->what.step < step.step)
    return lost(step.step,
                "the loss is " + shown(static_cast<double>(step.loss)) + ": parameter " + describe(**first, plan));
  if (no_loss)
    return lost(step.step, "the loss is " + shown(static_cast<double>(step.loss)) + ", first that of micro-batch " +
                               std::to_string(own.lost_micro_batch + 1) + " of " + std::to_string(plan.micro_batches) +
                               ", on rank " + std::to_string(rank_of(plan, own.lost_micro_batch)) +
                               (*first ? "; parameter " + describe(**first, plan) : ""));
  return lost(step.step, "the gradient of " + name_of(plan, step.control->tensor) + " is not finite at element " +
                             std::to_string(step.control->element) +
                             (*first ? "; parameter " + describe(**first, plan) : ""));
}

Result<void> check_state(const executor::Health& own, const plan::Plan& plan, Communicator& communicator) {
  const auto first = first_of_all(own, communicator);
  if (!first) return first.error();
  if (!*first) return {};
  return lost((*first)->what.step, "parameter " + describe(**first, plan));
}

}  // namespace shard::train
