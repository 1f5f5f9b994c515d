// Does a model's own graph give the figures of its parameter list where they must agree, and tied weights where not?
#include "sim/model/read_model.h"
#include "tests/like/gemini.h"
#include "tests/like/recipe.h"

namespace shard::like {
namespace {

using test::calls;
using test::kSplit;
using test::kWhole;

GeminiResult of_model(const char* name, const model::Model& model, const GeminiOptions& options,
                      plan::Strategy strategy = {}) {
  strategy.world_size = options.world_size;
  strategy.global_batch = strategy.micro_batch * options.world_size;
  Result<GeminiResult> result = simulate_gemini(name, std::make_shared<const model::Model>(model), strategy, options);
  if (!result) {
    ADD_FAILURE() << to_string(result.error());
    return {};
  }
  return std::move(*result);
}

// An mlp's operators are its modules and no weight is tied.
TEST(GeminiModel, AnMlpIsItsListOfParameters) {
  const model::Model mlp = test::mlp(6, 20);
  for (const double fraction : {0.0, 1.0}) {
    const GeminiOptions options{
        .world_size = 4, .chunk = Elems{1000}, .offload_optim_frac = fraction, .offload_param_frac = fraction};
    for (const char* name : {kSplit, kWhole}) {
      plan::Strategy strategy;
      strategy.micro_batch = 500;
      const GeminiResult graph = of_model(name, mlp, options, strategy);
      const GeminiResult list = test::gemini(name, mlp.parameters, options);
      EXPECT_EQ(graph.iterations, list.iterations) << name;
      EXPECT_GT(graph.device_peak, list.device_peak);  // activations
    }
  }
}

// gpt2's head reads the embedding: its chunk is gathered for the first op and again for the last, is there when
// backward begins with the head, is evicted (its gradient is not complete), and gathered again for the embedding.
TEST(GeminiModel, ATiedWeightsChunkIsGatheredForBothOfItsUses) {
  const Result<model::Model> model = model::read_model("gpt2-nano");
  ASSERT_TRUE(model);
  ASSERT_TRUE(model->tied_embeddings);
  plan::Strategy strategy;
  strategy.sequence = 8;
  const GeminiResult r = of_model(kSplit, *model, {.world_size = 2, .chunk = Elems{20000}}, strategy);
  const auto chunks = static_cast<std::int64_t>(r.layout.chunks.size());
  ASSERT_GT(chunks, 3);
  const GeminiResult list = test::gemini(kSplit, model->parameters, r.options);
  for (std::size_t i = 0; i < r.iterations.size(); ++i) {
    const LedgerMoment& all = r.iterations[i].after_backward;
    const auto added = [&](const LedgerMoment& graph, const LedgerMoment& bare) {
      return calls(graph, Collective::all_gather).count - calls(bare, Collective::all_gather).count;
    };
    EXPECT_EQ(added(r.iterations[i].after_forward, list.iterations[i].after_forward), 1);
    EXPECT_EQ(added(all, list.iterations[i].after_backward), 2);
    EXPECT_EQ(calls(all, Collective::reduce_scatter).count, chunks);
  }
}

TEST(GeminiModel, RecomputationKeepsTheReductions) {
  const Result<model::Model> model = model::read_model("gpt2-nano");
  ASSERT_TRUE(model);
  plan::Strategy strategy;
  strategy.sequence = 64;
  const GeminiOptions options{.world_size = 2, .chunk = Elems{20000}};
  const GeminiResult whole = of_model(kSplit, *model, options, strategy);
  strategy.recompute = plan::Recompute::block;
  const GeminiResult again = of_model(kSplit, *model, options, strategy);
  EXPECT_LT(again.device_peak, whole.device_peak);
  EXPECT_EQ(calls(again.iterations[1].after_backward, Collective::reduce_scatter),
            calls(whole.iterations[1].after_backward, Collective::reduce_scatter));
  EXPECT_GE(calls(again.iterations[1].after_backward, Collective::all_gather).count,
            calls(whole.iterations[1].after_backward, Collective::all_gather).count);
}

TEST(GeminiModel, AccumulationIsRefused) {
  plan::Strategy strategy;
  strategy.global_batch = 4;
  const Result<GeminiResult> r = simulate_gemini(kSplit, std::make_shared<const model::Model>(test::mlp(2, 8)),
                                                 strategy, {.world_size = 1, .chunk = Elems{8}});
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, Errc::contradiction);
  EXPECT_EQ(r.error().help, "--global-batch 1");
}

}  // namespace
}  // namespace shard::like
