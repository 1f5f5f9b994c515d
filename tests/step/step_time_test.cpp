// Does a step's time behave as a step does: parts that sum up, more work that takes longer, an interval around it?
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sim/cluster/read_cluster.h"
#include "sim/step/step_time.h"

namespace shard::step {
namespace {

cluster::Cluster cards(const char* name) {
  Result<cluster::Cluster> c = cluster::read_cluster(name);
  EXPECT_TRUE(c);
  return *std::move(c);
}

TrainingStep llama_8b() {
  TrainingStep s;
  s.model = {
      .layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8, .head_size = 128, .ffn = 14336, .vocabulary = 128256};
  s.spread = {.ranks = 8, .stage = 3, .shard_ranks = 8};
  s.sequence = 8192;
  s.copies_around_gathers = true;
  s.attention = cluster::AttentionKernel::newest;
  return s;
}

StepTime time_of(const TrainingStep& step, const char* name = "h100-80gb-x8") {
  const Result<StepTime> time = step_time(step, cards(name));
  EXPECT_TRUE(time) << to_string(time.error());
  return time ? *time : StepTime{};
}

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::int64_t of(std::initializer_list<std::int64_t> values) {
    return std::data(values)[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(engine_)];
  }
  TrainingStep step() {
    TrainingStep s;
    s.model = {.layers = of({2, 8, 32}),
               .hidden = of({1024, 4096, 8192}),
               .head_size = 128,
               .ffn = of({4096, 14336}),
               .vocabulary = of({32000, 128256}),
               .tied = of({0, 1}) == 1,
               .gated = of({0, 1}) == 1};
    s.model.heads = s.model.hidden / 128;
    s.model.kv_heads = s.model.gated ? 8 : s.model.heads;
    s.spread.tensor = of({1, 2, 8});
    s.spread.pipeline = of({1, 1, 2});
    s.spread.chunks = of({1, 2});
    s.spread.ranks = s.spread.tensor * s.spread.pipeline * of({1, 2, 8, 64});
    s.spread.stage = static_cast<std::int32_t>(s.spread.pipeline > 1 ? of({0, 1}) : of({0, 1, 2, 3}));
    s.spread.shard_ranks = s.data_ranks();
    s.spread.sequence_parallel = s.spread.tensor > 1;
    s.code = static_cast<Code>(of({0, 1, 2, 3, 4}));
    s.compiled = of({0, 1}) == 1;
    s.recompute = static_cast<Recompute>(of({0, 1, 2, 3}));
    s.loss = static_cast<Loss>(of({0, 1, 2}));
    s.float8 = static_cast<Float8>(of({0, 0, 0, 1, 2, 3}));
    s.micro_batch = of({1, 2, 4}), s.sequence = of({512, 2048, 8192}), s.accumulation = of({1, 4});
    return s;
  }

 private:
  std::mt19937 engine_;
};

double part_of(const StepTime& time, const std::string& name) {
  for (const StepPart& part : time.parts)
    if (part.name == name) return part.time.count();
  return 0;
}

TrainingStep in_stages(std::int64_t stages, std::int64_t chunks) {
  TrainingStep s = llama_8b();
  s.code = Code::megatron;
  s.spread = {.ranks = stages, .pipeline = stages, .chunks = chunks, .stage = 1, .shard_ranks = 1};
  s.accumulation = 8;
  return s;
}

// (p - 1) / chunks times the blocks of a micro-step, of which a step has as many as it accumulates.
TEST(StepTime, APipelinesBubbleIsThatOf1F1B) {
  const double whole = part_of(time_of(in_stages(4, 1)), "pipeline bubble");
  EXPECT_GT(whole, 0);
  EXPECT_NEAR(part_of(time_of(in_stages(4, 2)), "pipeline bubble"), whole / 2, 1e-9 * whole);
  TrainingStep more = in_stages(4, 1);
  more.accumulation = 16;
  EXPECT_NEAR(part_of(time_of(more), "pipeline bubble"), whole, 1e-9 * whole);
  // Half of the layers in each, and one that is waited for instead of three.
  EXPECT_NEAR(part_of(time_of(in_stages(2, 1)), "pipeline bubble"), whole * 2 / 3, 0.01 * whole);
  EXPECT_EQ(part_of(time_of(in_stages(1, 1)), "pipeline bubble"), 0);
}

TEST(StepTime, MoreMicroStepsFillAPipeline) {
  TrainingStep few = in_stages(4, 1), many = few;
  many.accumulation = 64;
  EXPECT_GT(time_of(many).tokens_per_second, time_of(few).tokens_per_second);
}

TEST(StepTime, PartsSumUpToTheStep) {
  Random random(7);
  for (int i = 0; i < 300; ++i) {
    const StepTime time = time_of(random.step());
    double sum = 0;
    for (const StepPart& part : time.parts) {
      EXPECT_GT(part.time.count(), 0) << part.name;
      sum += part.time.count();
    }
    EXPECT_NEAR(sum, time.seconds.count(), 1e-9 * time.seconds.count());
    EXPECT_LT(time.low, time.seconds);
    EXPECT_GT(time.high, time.seconds);
    EXPECT_GT(time.model_flops_share, 0);
  }
}

TEST(StepTime, MoreWorkTakesLonger) {
  Random random(11);
  for (int i = 0; i < 200; ++i) {
    const TrainingStep step = random.step();
    const double one = time_of(step).seconds.count();
    TrainingStep deeper = step, longer = step, again = step, more = step;
    deeper.model.layers *= 2;
    longer.sequence *= 2;
    more.accumulation *= 2;
    again.recompute = Recompute::block;
    EXPECT_GT(time_of(deeper).seconds.count(), one);
    EXPECT_GT(time_of(longer).seconds.count(), one);
    EXPECT_GT(time_of(more).seconds.count(), one);
    EXPECT_GE(time_of(again).seconds.count(), 0.999 * one);
  }
}

// A step takes at least its products at the peak.
TEST(StepTime, NoStepBeatsTheDataSheet) {
  Random random(13);
  for (int i = 0; i < 200; ++i) {
    TrainingStep step = random.step();
    step.float8 = Float8::none;
    for (const char* const name : {"a100-80gb-x8", "h100-80gb-x8", "b200-180gb-x8"})
      EXPECT_LT(time_of(step, name).model_flops_share, 0.95) << name;
  }
}

TEST(StepTime, WiderValuesTakeLongerAndTensorCoresHelp) {
  TrainingStep step = llama_8b();
  const StepTime narrow = time_of(step);
  step.values = Values::tf32;
  const StepTime tensor_float = time_of(step);
  step.values = Values::fp32;
  const StepTime wide = time_of(step);
  EXPECT_GT(tensor_float.seconds.count(), 1.8 * narrow.seconds.count()) << "half as many flops, twice the bytes";
  EXPECT_GT(wide.seconds.count(), 2 * tensor_float.seconds.count());
  const auto above = [](const StepTime& t) { return t.high.count() / t.seconds.count() - 1; };
  EXPECT_GT(above(wide), 2 * above(narrow)) << "nothing published was compared";
  const Seconds without_tensor_float = time_of(step, "v100-32gb-x8").seconds;
  step.values = Values::tf32;
  EXPECT_EQ(time_of(step, "v100-32gb-x8").seconds, without_tensor_float) << "a card without TF32";
}

TEST(StepTime, DoubtGrowsWithWhatIsLessKnown) {
  const cluster::Cluster h100 = cards("h100-80gb-x8");
  const TrainingStep plain = llama_8b();
  const double known = doubt_of(plain, h100).above;
  TrainingStep tensor = plain;
  tensor.spread.tensor = 2;
  EXPECT_GT(doubt_of(tensor, h100).above, known);
  TrainingStep few_bits = plain;
  few_bits.float8 = Float8::per_tensor;
  EXPECT_GT(doubt_of(few_bits, h100).above, known);
  EXPECT_GE(doubt_of(plain, cards("b200-180gb-x8")).above, 0.25);
  EXPECT_GT(doubt_of(plain, cards("l4-24gb-x8")).above, known);  // a card without kernels of its own
}

TEST(StepTime, ACardWithoutLawsIsRefused) {
  cluster::Cluster card = cards("h100-80gb-x8");
  card.kernel_laws.reset();
  const Result<StepTime> time = step_time(llama_8b(), card);
  ASSERT_FALSE(time);
  EXPECT_EQ(time.error().code, Errc::contradiction);
  EXPECT_NE(time.error().help.find("kernel_laws"), std::string::npos);
}

TEST(StepTime, ExchangesThatRunBesideProductsAreHidden) {
  TrainingStep step = llama_8b();
  const double spread = time_of(step).seconds.count();
  step.spread.no_exchange = true;
  const double alone = time_of(step).seconds.count();
  EXPECT_LT(alone, spread);
  EXPECT_LT(spread, 1.15 * alone);  // of 0.9 s, NVLink gathers 16 GB twice in 0.1 s
}

}  // namespace
}  // namespace shard::step
