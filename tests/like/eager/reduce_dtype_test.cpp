// Do gradients that are summed in another type than parameters rest in take what PyTorch's FSDP took?
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "sim/like/simulate_eager.h"
#include "sim/model/read_model.h"
#include "tests/like/recipe.h"

namespace shard::like {
namespace {

/// Peaks of `shardscope dryrun --recipe fsdp1|fsdp2 --world-size 8 --sequence 512 --weights bf16|fp32`, rank 0, and of
/// `--recipe hf-trainer --accelerate-config` of FSDP, mixed_precision bf16, of --model llama-3.2-1b or llama-3.1-8b:
/// PyTorch 2.11.0, transformers 5.24.
struct Measured {
  const char* what;
  const char* model;
  eager::Framework framework;
  bool masters;
  ReduceIn reduce_in;
  eager::Update update;
  std::int64_t peak;
  std::int64_t off = 0;  ///< by so many bytes at most
};

constexpr Measured kMeasured[] = {
    {"fsdp2, bf16, reduced in fp32", "llama-3.1-8b", eager::Framework::fsdp2, false, ReduceIn::fp32,
     eager::Update::foreach, 14'619'575'296},
    {"fsdp2, fp32", "llama-3.1-8b", eager::Framework::fsdp2, true, ReduceIn::usual, eager::Update::foreach,
     21'908'443'136},
    {"fsdp1, bf16", "llama-3.2-1b", eager::Framework::fsdp1, false, ReduceIn::precision, eager::Update::foreach,
     3'373'098'496},
    {"fsdp1, fp32, reduced in bf16", "llama-3.2-1b", eager::Framework::fsdp1, true, ReduceIn::precision,
     eager::Update::foreach, 4'546'170'880, 1 << 20},
    {"accelerate's FSDP 2", "llama-3.2-1b", eager::Framework::fsdp2, true, ReduceIn::precision, eager::Update::fused,
     4'652'737'024, 8192},
    {"accelerate's FSDP 1", "llama-3.1-8b", eager::Framework::fsdp1, true, ReduceIn::precision, eager::Update::fused,
     21'906'435'584, 8192},
};

TEST(ReduceDtype, PeaksArePyTorchs) {
  for (const Measured& run : kMeasured) {
    Result<model::Model> model = model::read_model(run.model);
    ASSERT_TRUE(model) << to_string(model.error());
    const plan::Strategy strategy{.world_size = 8,
                                  .stage = 3,
                                  .micro_batch = 1,
                                  .global_batch = 8,
                                  .sequence = 512,
                                  .precision = plan::Precision::bf16};
    const EagerOptions options{
        .framework = run.framework, .masters = run.masters, .reduce_in = run.reduce_in, .update = run.update};
    const Result<LikeResult> result =
        simulate_eager(std::make_shared<const model::Model>(std::move(*model)), strategy, options);
    ASSERT_TRUE(result) << run.what << ": " << to_string(result.error());
    EXPECT_LE(std::abs(result->peak_allocated().count() - run.peak), run.off) << run.model << ' ' << run.what;
  }
}

}  // namespace
}  // namespace shard::like
