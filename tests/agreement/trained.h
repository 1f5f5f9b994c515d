// Trains on one rank and looks at the parameters afterwards.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/agreement/in_process_run.h"
#include "tests/agreement/tap.h"
#include "tests/model/tiny_models.h"

namespace shard {

using Patterns = std::vector<std::string>;

/// A run on one rank: its losses, and the bytes of every parameter when it ended.
struct Trained {
  std::vector<float> losses;
  std::map<std::string, std::vector<std::byte>> parameters;
};

inline Trained trained(const ModelPtr& model, plan::Strategy strategy, const Patterns& freeze, std::int64_t steps,
                       float learning_rate = 0.1F, double weight_decay = 0) {
  strategy.freeze = freeze;
  Trained result;
  Result<plan::PlanSet> plans = plan::compile(model, strategy);
  if (!plans) {
    ADD_FAILURE() << to_string(plans.error());
    return result;
  }
  const plan::Plan& plan = plans->of_rank(0);
  auto communicators = make_in_process(1);
  Tap tap(*communicators[0]);
  cpu::ThreadPool pool(1);
  auto data = open_data("random", *model, {.batch = strategy.micro_batch, .sequence = strategy.sequence, .seed = 7});
  const auto run = train::run_session(plan, tap, **data, pool,
                                      {.steps = steps,
                                       .digest = false,
                                       .scalars = {.learning_rate = learning_rate, .weight_decay = weight_decay},
                                       .seed = 7,
                                       .after_step = {},
                                       .before_phase = {}});
  if (!run) {
    ADD_FAILURE() << to_string(run.error());
    return result;
  }
  result.losses = run->losses;
  const std::int64_t size = bytes_per_element(strategy.storage());
  for (std::size_t f = 0; f < plan.flats.size(); ++f)
    for (const plan::Flat::Item& item : plan.flats[f].items) {
      const std::byte* content =
          tap.arena.data() + plan.buffer(plan.flat_parameters[f]).offset + size * item.offset.count();
      result.parameters[plan.model->parameters[static_cast<std::size_t>(item.param.value)].name].assign(
          content, content + size * item.elems.count());
    }
  return result;
}

}  // namespace shard
