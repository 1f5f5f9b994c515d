// Random strategies of random classes: do those of one class train a random small model to the same bits?
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "sim/strategy/checks.h"
#include "sim/strategy/number_class.h"
#include "tests/agreement/matrix.h"
#include "tests/compile/random_cases.h"

namespace shard {

/// How many strategies ran, and how many of them were held against another.
struct RandomRuns {
  int ran = 0;
  int compared = 0;
};

/// A random small model, and strategies of one class on up to eight data-parallel ranks.
class RandomClass {
 public:
  explicit RandomClass(unsigned seed) : cases_(seed), model_(cases_.model()), of_(cases_.strategy(*model_)) {
    of_.global_batch = of_.micro_batch * (cases_.flag() ? 8 : 16);
    if (of_.precision == plan::Precision::tf32) of_.precision = plan::Precision::fp32;
    if (cases_.flag()) of_.tensor_layout = model::TensorLayout::colossalai;
    of_.tensor_parallel = of_.world_size = 2;
    if (cases_.upto(3) != 1 || !plan::check_tensor_parallel(*model_, of_)) of_.tensor_parallel = 1;
  }
  [[nodiscard]] const plan::ModelPtr& model() const { return model_; }

  /// Drawn once; nothing where it contradicts itself.
  [[nodiscard]] std::optional<plan::Strategy> draw(plan::Device device) {
    plan::Strategy s = plan::in_number_class(cases_.strategy(*model_), of_);
    // A predivided gradient is as large as the number of ranks makes it, which fp16 rounds differently near its ends.
    const std::int32_t world = of_.predivide != 1 ? 4 : 1 << (cases_.upto(s.tensor_parallel == 1 ? 4 : 3) - 1);
    s.world_size = world * s.tensor_parallel;
    s.device = device;
    if (s.shard_group >= world) s.shard_group = 0;
    if (s.has_variable_chunks()) cases_.vary_chunks(s, *model_);
    if (s.chunk_elems.count() > 0) s.chunk_elems = round_up(s.chunk_elems, world);
    if (!plan::check(*model_, s)) return std::nullopt;
    return s;
  }

 private:
  plan::RandomCases cases_;
  plan::ModelPtr model_;
  plan::Strategy of_;
};

/// Steps of such a run.
inline train::SessionOptions random_session(unsigned seed) {
  train::SessionOptions session = session_of(3);
  session.knobs = {.scaler = {.growth_interval = 2}, .max_norm = 0.5F};
  session.seed = seed;
  return session;
}

/// Strategies that contradict themselves are drawn again.
inline RandomRuns expect_random_class_agrees(unsigned seed, int strategies, plan::Device device = plan::Device::cpu) {
  RandomClass drawn(seed);
  const plan::ModelPtr& model = drawn.model();
  RandomRuns runs;
  std::string sha;
  std::string first;
  for (int tries = 0; runs.ran < strategies && tries < 50 * strategies; ++tries) {
    const std::optional<plan::Strategy> strategy = drawn.draw(device);
    if (!strategy) continue;
    const plan::Strategy& s = *strategy;
    const std::string what = "seed " + std::to_string(seed) + ": " + model->name + ' ' + to_string(s);
    const auto run = run_in_process(model, s, random_session(seed));
    if (!run) {
      ADD_FAILURE() << what << ": " << to_string(run.error());
      return runs;
    }
    expect_as_planned(*run, 3, what);
    ++runs.ran;
    if (sha.empty()) {
      sha = run->ranks[0].state_sha256;
      first = what;
      continue;
    }
    EXPECT_EQ(run->ranks[0].state_sha256, sha) << what << "\n against " << first;
    ++runs.compared;
  }
  return runs;
}

}  // namespace shard
