// Which ops are one on a GPU, and which stay two?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/check/verify.h"
#include "sim/ir/effects.h"
#include "sim/ir/op_class.h"
#include "tests/compile/support.h"

namespace shard::plan {
namespace {

using testing::HasSubstr;
using testing::Not;

Strategy on_gpu(Recompute recompute = Recompute::none) {
  Strategy s{.micro_batch = 1, .global_batch = 2, .sequence = 4};
  s.recompute = recompute;
  s.device = Device::cuda;
  return s;
}

/// The names of a micro-step's fused ops.
std::vector<std::string> fused_of(const ModelPtr& model, const Strategy& s) {
  const PlanSet plans = compiled(model, s);
  EXPECT_TRUE(verify(plans)) << to_string(verify(plans).error());
  std::vector<std::string> names;
  for (const Op& op : plans.classes.front().find(Phase::steady_step)->ops)
    if (const auto* c = std::get_if<Compute>(&op.action); c != nullptr && c->then.present() && op.micro_step == 0)
      names.emplace_back(op.name);
  return names;
}

const std::vector<std::string> kGpt2{
    "transformer.h.0.attn.residual + transformer.h.0.ln_2", "transformer.h.0.mlp.residual + transformer.h.1.ln_1",
    "transformer.h.1.attn.residual + transformer.h.1.ln_2", "transformer.h.1.mlp.residual + transformer.ln_f"};

TEST(Fuse, EveryResidualSumWithTheNormBehindIt) {
  EXPECT_EQ(fused_of(small_gpt2(), on_gpu()), kGpt2);
  EXPECT_EQ(fused_of(small_llama(), on_gpu()).size(), 4U);
}

TEST(Fuse, WhatABlockMakesAgainIsFusedWhereBothAreMadeAgain) {
  // Each block makes its own sum and norm again; its first norm alone, as its input is kept.
  std::vector<std::string> names = kGpt2;
  for (const char* block : {"transformer.h.1.", "transformer.h.0."})
    names.push_back(std::string(block) + "attn.residual again + " + block + "ln_2 again");
  EXPECT_EQ(fused_of(small_gpt2(), on_gpu(Recompute::block)), names);
  // Norms alone are made again: their inputs are kept.
  EXPECT_EQ(fused_of(small_gpt2(), on_gpu(Recompute::selective)), kGpt2);
}

TEST(Fuse, TheCpuFusesNothing) {
  Strategy s = on_gpu();
  s.device = Device::cpu;
  EXPECT_THAT(fused_of(small_gpt2(), s), testing::IsEmpty());
  const std::string before = to_text(compiled_until(small_gpt2(), s, "recompute"));
  EXPECT_EQ(to_text(compiled_until(small_gpt2(), s, "fuse")), before);
}

TEST(Fuse, TensorRanksFuseBehindTheSum) {
  Strategy s = on_gpu();
  s.world_size = 2;
  s.tensor_parallel = 2;
  EXPECT_EQ(fused_of(small_gpt2(), s), kGpt2);
}

TEST(Fuse, WhatIsDroppedBeforeTheSumIsNoneOfItsBusiness) {
  Strategy s = on_gpu();
  s.dropout = 0.1F;
  EXPECT_EQ(fused_of(small_gpt2(), s), kGpt2);
}

TEST(Fuse, OneOpMovesLessThanTwo) {
  Strategy s = on_gpu();
  const auto moved = [&](std::string_view pass) {
    const Plan plan = compiled_until(small_gpt2(), s, pass);
    Bytes bytes{0};
    double flops = 0;
    for (const Op& op : plan.find(Phase::steady_step)->ops) {
      const Effects e = effects(plan, op);
      bytes += e.bytes_read + e.bytes_written;
      flops += e.flops.count();
    }
    return std::pair{bytes, flops};
  };
  // Four sums of 4 tokens and 8 columns in fp32 are not read for their norm; arithmetic is what it was.
  EXPECT_EQ(moved("recompute").first - moved("fuse").first, Bytes{4 * 4 * 8 * 4});
  EXPECT_EQ(moved("recompute").second, moved("fuse").second);
}

/// A fused op of a plan that passes the verifier, to be spoilt.
struct Spoilt {
  PlanSet plans = compiled(small_gpt2(), on_gpu());
  Op& op() {
    Plan& plan = plans.classes.front();
    for (PhaseOps& phase : plan.phases)
      if (phase.phase == Phase::first_step)
        for (Op& op : phase.ops)
          if (const auto* c = std::get_if<Compute>(&op.action); c != nullptr && c->then.present()) return op;
    ADD_FAILURE() << "no fused op";
    return plan.phases.front().ops.front();
  }
  Compute& compute() { return std::get<Compute>(op().action); }
  [[nodiscard]] std::string fault() const {
    const Result<void> ok = verify(plans);
    return ok ? "none" : to_string(ok.error());
  }
};

TEST(Fuse, TheVerifierSeesWhatDoesNotBelongTogether) {
  EXPECT_EQ(Spoilt().fault(), "none");
  Spoilt other;  // the norm of another sum
  const model::Graph& graph = *other.plans.classes.front().graph;
  for (std::size_t i = 0; i < graph.operators.size(); ++i)
    if (graph.operators[i].name == "transformer.ln_f")
      other.compute().then = {.kind = graph.operators[i].kind,
                              .source = static_cast<std::int32_t>(i),
                              .attributes = &graph.operators[i].attributes};
  EXPECT_THAT(other.fault(), HasSubstr("takes no result"));
  Spoilt alone;  // the sum alone, with the norm's operands
  alone.compute().then = {};
  EXPECT_THAT(alone.fault(), HasSubstr("P9"));
  Spoilt swapped;  // sum and normalised rows in each other's place
  const model::Signature slots = signature(swapped.compute());
  const std::span<Operand> operands = swapped.plans.classes.front().own_operands(swapped.op());
  std::swap(operands[slots.position(model::Role::y)], operands[slots.position(model::Role::y, 0, true)]);
  EXPECT_THAT(swapped.fault(), Not("none"));
  Spoilt target;  // a target that fuses nothing
  for (Plan& plan : target.plans.classes) plan.target.device = Device::cpu;
  EXPECT_THAT(target.fault(), Not("none"));
}

TEST(Fuse, AFusedOpIsAClassOfItsOwn) {
  Spoilt plan;
  EXPECT_EQ(to_string(class_of(plan.op())), "add forward + layer_norm forward");
}

}  // namespace
}  // namespace shard::plan
