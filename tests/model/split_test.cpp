// Do the parts of ranks that share a model make up the whole, and is each part the right one?
#include "sim/model/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/model/graph_text.h"
#include "tests/model/make_model.h"

namespace shard::model {
namespace {

using testing::Contains;
using testing::ElementsAre;

constexpr const char* kGpt2 =
    R"({"model_type": "gpt2", "vocab_size": 11, "n_positions": 6, "n_embd": 8, "n_layer": 1, "n_head": 4})";
constexpr const char* kLlama =
    R"({"model_type": "llama", "vocab_size": 10, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 8})";

const Parameter& parameter(const Model& model, std::string_view name) {
  for (const Parameter& p : model.parameters)
    if (p.name.ends_with(name)) return p;
  ADD_FAILURE() << "no parameter " << name;
  return model.parameters.front();
}
const ParameterSplit& split_of(const Model& model, std::string_view name) {
  return model.split.parameters[static_cast<std::size_t>(&parameter(model, name) - model.parameters.data())];
}

// Stretches against indices, one element at a time, of every cut that the families use.
TEST(Split, StretchesAreWhatIndicesSay) {
  for (const ParameterSplit& split :
       {ParameterSplit{{7, 3}, 0, 1}, ParameterSplit{{3, 8}, 1, 1}, ParameterSplit{{2, 24}, 1, 3},
        ParameterSplit{{12}, 0, 3}, ParameterSplit{{2, 3}, 0, 1}, ParameterSplit{{4, 5}, -1, 1}})
    for (std::int32_t degree : {2, 4}) {
      const auto axis = static_cast<std::size_t>(std::max(split.axis, 0));
      std::vector<std::int64_t> shape = split.whole;
      if (split.cut()) shape[axis] = split.pieces * ((shape[axis] / split.pieces + degree - 1) / degree);
      const auto product = [](auto begin, auto end) {
        return std::accumulate(begin, end, std::int64_t{1}, std::multiplies<>());
      };
      const std::int64_t inner = product(shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, shape.end());
      const std::int64_t elements = product(shape.begin(), shape.end());
      std::vector<int> holders(static_cast<std::size_t>(product(split.whole.begin(), split.whole.end())), 0);
      for (std::int32_t rank = 0; rank < degree; ++rank) {
        std::vector<std::int64_t> expected;
        for (std::int64_t e = 0; e < elements; ++e) {
          const std::int64_t along = e / inner % shape[axis];
          const std::int64_t before = e / inner / shape[axis];
          const std::int64_t index = whole_index(split, degree, rank, along);
          expected.push_back(index < 0 ? -1 : (before * split.whole[axis] + index) * inner + e % inner);
          if (index >= 0) ++holders[static_cast<std::size_t>(expected.back())];
        }
        for (std::int64_t first = 0; first < elements; ++first)
          for (std::int64_t count : {std::int64_t{1}, std::int64_t{5}, elements - first}) {
            if (first + count > elements) continue;
            std::vector<std::int64_t> found(static_cast<std::size_t>(count), -1);
            for_each_run(split, degree, rank, first, count,
                         [&](std::int64_t local, std::int64_t whole, std::int64_t n) {
                           for (std::int64_t i = 0; i < n; ++i)
                             found[static_cast<std::size_t>(local - first + i)] = whole + i;
                         });
            const auto begin = expected.begin() + first;
            ASSERT_EQ(found, std::vector<std::int64_t>(begin, begin + count));
          }
      }
      for (int n : holders) EXPECT_EQ(n, split.cut() ? 1 : degree);
    }
}

// Heads of 2 columns, 4 of them: rank 1 of 2 has heads 2 and 3, columns 4 to 7 of q, k and v each.
TEST(Split, PackedQueriesKeysAndValuesAreCutByHeads) {
  const Model part = split_model(make_model(kGpt2), 2, TensorLayout::megatron);
  const ParameterSplit& split = split_of(part, "c_attn.weight");
  std::vector<std::int64_t> columns;
  for (std::int64_t i = 0; i < parameter(part, "c_attn.weight").shape[1]; ++i)
    columns.push_back(whole_index(split, 2, 1, i));
  EXPECT_THAT(columns, ElementsAre(4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23));
  EXPECT_EQ(part.heads, 2);
}

TEST(Split, AVocabularyThatIsNotDividedIsPadded) {
  const Model part = split_model(make_model(kGpt2), 4, TensorLayout::megatron);
  EXPECT_THAT(parameter(part, "wte.weight").shape, ElementsAre(3, 8));
  EXPECT_EQ(whole_index(split_of(part, "wte.weight"), 4, 3, 1), 10);
  EXPECT_EQ(whole_index(split_of(part, "wte.weight"), 4, 3, 2), -1);
}

TEST(Split, ThePartsOfLlamaAreMegatrons) {
  const Model part = split_model(make_model(kLlama), 2, TensorLayout::megatron);
  const auto shape = [&](const char* name) { return shape_text(parameter(part, name).shape); };
  EXPECT_EQ(shape("q_proj.weight"), "[4,8]");
  EXPECT_EQ(shape("k_proj.weight"), "[2,8]");
  EXPECT_EQ(shape("o_proj.weight"), "[8,4]");
  EXPECT_EQ(shape("gate_proj.weight"), "[6,8]");
  EXPECT_EQ(shape("down_proj.weight"), "[8,6]");
  EXPECT_EQ(shape("lm_head.weight"), "[5,8]");
  EXPECT_EQ(shape("input_layernorm.weight"), "[8]");
}

// The tutorial: embeddings, c_attn, both halves of attention and c_fc by their last dimension, mlp.c_proj by its first.
TEST(Split, ThePartsOfTheTutorialAreColossalAis) {
  const Model part = split_model(make_model(kGpt2), 2, TensorLayout::colossalai);
  const auto shape = [&](const char* name) { return shape_text(parameter(part, name).shape); };
  EXPECT_EQ(shape("wte.weight"), "[11,4]");
  EXPECT_EQ(shape("wpe.weight"), "[6,4]");
  EXPECT_EQ(shape("c_attn.weight"), "[8,12]");
  EXPECT_EQ(shape("c_attn.bias"), "[12]");
  EXPECT_EQ(shape("attn.c_proj.weight"), "[8,4]");
  EXPECT_EQ(shape("attn.c_proj.bias"), "[4]");
  EXPECT_EQ(shape("mlp.c_fc.weight"), "[8,16]");
  EXPECT_EQ(shape("mlp.c_proj.weight"), "[16,8]");
  EXPECT_EQ(shape("mlp.c_proj.bias"), "[8]");
  EXPECT_EQ(shape("ln_1.weight"), "[8]");
  EXPECT_EQ(part.heads, 4) << "attention itself is not split";
}

TEST(Split, TheGraphExchangesWhereItMust) {
  const Model part = split_model(make_model(kGpt2), 2, TensorLayout::megatron);
  const std::vector<std::string> lines = graph_text(build_graph(part, 1, 3), part);
  EXPECT_THAT(lines, Contains("embedding_part transformer.wte(input; transformer.wte.weight) -> [1,3,8]"));
  EXPECT_THAT(lines, Contains("tensor_sum transformer.wte.sum(transformer.wte) -> [1,3,8]"));
  EXPECT_THAT(lines, Contains("tensor_input transformer.h.0.ln_1.shared(transformer.h.0.ln_1) -> [1,3,8] @0"));
  EXPECT_THAT(lines, Contains("linear transformer.h.0.attn.c_proj(transformer.h.0.attn; "
                              "transformer.h.0.attn.c_proj.weight) -> [1,3,8] @0"));
  EXPECT_THAT(lines, Contains("add_bias transformer.h.0.attn.c_proj.add_bias(transformer.h.0.attn.c_proj.sum; "
                              "transformer.h.0.attn.c_proj.bias) -> [1,3,8] @0"));
  EXPECT_THAT(lines, Contains("linear lm_head(transformer.ln_f.shared; transformer.wte.weight) -> [1,3,6]"));
  EXPECT_THAT(lines, Contains("cross_entropy_part loss(lm_head, target, loss.statistics.all) -> [1] [3]"));
}

TEST(Split, OneRankHasTheModelItself) {
  const Model whole = make_model(kLlama);
  const Model part = split_model(whole, 1, TensorLayout::megatron);
  EXPECT_EQ(graph_text(build_graph(part, 2, 3), part), graph_text(build_graph(whole, 2, 3), whole));
  EXPECT_TRUE(part.split.parameters.empty());
}

}  // namespace
}  // namespace shard::model
