// Random strategies of random classes: do those of one class train a random small model to the same bits?
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "sim/strategy/checks.h"
#include "tests/agreement/matrix.h"
#include "tests/compile/random_cases.h"

namespace shard {

/// How many strategies ran, and how many of them were held against another.
struct RandomRuns {
  int ran = 0;
  int compared = 0;
};

/// What may not differ inside a class is `of`'s: data, arithmetic, what is trained and by which rule.
inline plan::Strategy in_class_of(plan::Strategy s, const plan::Strategy& of) {
  s.micro_batch = of.micro_batch;
  s.global_batch = of.global_batch;
  s.sequence = of.sequence;
  s.precision = of.precision;
  s.fp32_reduce_scatter = of.fp32_reduce_scatter;
  s.predivide = of.predivide;
  s.optimizer = of.optimizer;
  s.clip_norm = of.clip_norm;
  s.loss_scaling = of.loss_scaling;
  s.freeze = of.freeze;
  s.dropout = of.dropout;
  s.tensor_parallel = of.tensor_parallel;
  s.tensor_layout = of.tensor_layout;
  s.reproducible = true;
  return s;
}

/// One class on up to eight data-parallel ranks; strategies that contradict themselves are drawn again.
inline RandomRuns expect_random_class_agrees(unsigned seed, int strategies, plan::Device device = plan::Device::cpu) {
  plan::RandomCases cases(seed);
  const auto model = cases.model();
  plan::Strategy of = cases.strategy(*model);
  of.global_batch = of.micro_batch * (cases.flag() ? 8 : 16);
  if (of.precision == plan::Precision::tf32) of.precision = plan::Precision::fp32;
  if (cases.flag()) of.tensor_layout = model::TensorLayout::colossalai;
  of.tensor_parallel = of.world_size = 2;
  if (cases.upto(3) != 1 || !plan::check_tensor_parallel(*model, of)) of.tensor_parallel = 1;
  RandomRuns runs;
  std::string sha;
  std::string first;
  for (int tries = 0; runs.ran < strategies && tries < 50 * strategies; ++tries) {
    plan::Strategy s = in_class_of(cases.strategy(*model), of);
    // A predivided gradient is as large as the number of ranks makes it, which fp16 rounds differently near its ends.
    const std::int32_t world = of.predivide != 1 ? 4 : 1 << (cases.upto(s.tensor_parallel == 1 ? 4 : 3) - 1);
    s.world_size = world * s.tensor_parallel;
    s.device = device;
    if (s.shard_group >= world) s.shard_group = 0;
    if (s.has_variable_chunks()) cases.vary_chunks(s, *model);
    if (s.chunk_elems.count() > 0) s.chunk_elems = round_up(s.chunk_elems, world);
    if (!plan::check(*model, s)) continue;
    const std::string what = "seed " + std::to_string(seed) + ": " + model->name + ' ' + to_string(s);
    train::SessionOptions session = session_of(3);
    session.knobs = {.scaler = {.growth_interval = 2}, .max_norm = 0.5F};
    session.seed = seed;
    const auto run = run_in_process(model, s, session);
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
