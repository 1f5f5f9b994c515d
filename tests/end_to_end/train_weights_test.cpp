// Does a run that begins with a checkpoint compute what its model computes, and leave what the next one begins with?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/daily.h"
#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;

/// The checkpoints of tests/data/weights, their models, and their losses by reference_loss.py, which is fp64 of numpy.
struct Reference {
  const char* weights;
  const char* model;
  double loss;
};
constexpr Reference kReferences[] = {
    {"gpt2_base.safetensors",
     R"({"model_type":"gpt2","vocab_size":16,"n_positions":8,"n_embd":8,"n_layer":1,"n_head":2})", 17.595001895195228},
    {"llama_bf16",
     R"({"model_type":"llama","vocab_size":16,"hidden_size":8,"intermediate_size":16,"num_hidden_layers":1,)"
     R"("num_attention_heads":2,"num_key_value_heads":1,"tie_word_embeddings":false})",
     3.3242196804002404},
    {"llama_tied_f16.safetensors",
     R"({"model_type":"llama","vocab_size":16,"hidden_size":8,"intermediate_size":16,"num_hidden_layers":1,)"
     R"("num_attention_heads":2,"num_key_value_heads":1,"tie_word_embeddings":true})",
     2.713491298859627},
};

/// One sequence of 8 tokens and its last target, as a file that has no other.
std::string nine_tokens() {
  std::string bytes;
  for (int i = 0; i <= 8; ++i) (bytes += static_cast<char>((5 * i + 3) % 16)) += '\0';
  return bytes;
}

TEST(TrainWeights, FirstLossIsThatOfTheModelInDoublePrecision) {
  const ScratchDirectory scratch;
  scratch.write("nine.bin", nine_tokens());
  for (const Reference& r : kReferences)
    for (const Words& more : {Words{"--ranks", "1"}, Words{"--ranks", "2", "--stage", "3"},
                              Words{"--ranks", "2", "--device", "emulated-cuda"}}) {
      Words words{"train",  "--model",  r.model,      "--weights", std::string(TEST_DATA "/data/weights/") + r.weights,
                  "--data", "nine.bin", "--sequence", "8",         "--steps",
                  "1",      "--json"};
      words.insert(words.end(), more.begin(), more.end());
      const json run = json_of(shardscope(words, {.directory = scratch.path()}));
      ASSERT_EQ(run["steps"].size(), 1u) << r.weights;
      EXPECT_NEAR(run["steps"][0]["loss"].get<double>(), r.loss, 1e-6 * r.loss) << r.weights << ' ' << more.back();
    }
}

TEST(TrainWeights, OneRunBeginsWithWhatAnotherSaved) {
  const ScratchDirectory scratch;
  const auto train = [&](const Words& more) {
    Words words{"train", "--model", "gpt2-nano", "--data", "random", "--sequence", "16", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return json_of(shardscope(words, {.directory = scratch.path()}));
  };
  const json first = train({"--ranks", "2", "--stage", "3", "--steps", "2", "--save-weights", "a"});
  EXPECT_EQ(first["saved_weights"]["file"], "a/model.safetensors");
  EXPECT_EQ(first["weights"], nullptr);
  // Steps that change nothing.
  const json second = train(
      {"--steps", "1", "--lr", "0", "--optimizer", "sgd", "--weights", "a", "--seed", "3", "--save-weights", "b"});
  EXPECT_EQ(second["weights"]["tensors"], 52);
  EXPECT_EQ(second["weights"]["read_bytes"], json({4 * first["parameter_elements"].get<std::int64_t>()}));
  const std::string saved = read_file(scratch.path() / "a/model.safetensors");
  EXPECT_EQ(static_cast<std::int64_t>(saved.size()), first["saved_weights"]["file_bytes"].get<std::int64_t>());
  EXPECT_TRUE(saved == read_file(scratch.path() / "b/model.safetensors"));
  const json half = train({"--steps", "1", "--save-weights", "c", "--weights-dtype", "bf16"});
  EXPECT_LT(half["saved_weights"]["file_bytes"], 2 * first["parameter_elements"].get<std::int64_t>() + 8192);
}

// Behind steps that change nothing, ranks that share the model leave what they began with, in one file and in several.
TEST(TrainWeights, RanksThatShareTheModelSaveIt) {
  const ScratchDirectory scratch;
  const auto train = [&](const char* model, const Words& more) {
    Words words{"train", "--model",     model, "--data",  "random", "--sequence",
                "8",     "--optimizer", "sgd", "--steps", "1",      "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return json_of(shardscope(words, {.directory = scratch.path()}));
  };
  // 67 words: a vocabulary that ranks pad.
  scratch.write("odd.json",
                R"({"model_type":"gpt2","vocab_size":67,"n_positions":8,"n_embd":16,"n_layer":1,"n_head":2})");
  const std::vector<Words> layouts{{"2", "2", "0"}, {"4", "2", "3"}, {"4", "2", "1"}};
  const std::vector<const char*> models{"gpt2-nano", "odd.json", TEST_DATA "/data/models/llama-nano.json"};
  for (const char* const model : daily::part_of(models, 3)) {
    train(model, {"--seed", "5", "--save-weights", "whole"});
    const std::string whole = read_file(scratch.path() / "whole/model.safetensors");
    for (const Words& ranks : daily::part_of(layouts, 3)) {
      train(model, {"--lr", "0", "--weights", "whole", "--ranks", ranks[0], "--tensor-parallel", ranks[1], "--stage",
                    ranks[2], "--save-weights", "shared"});
      EXPECT_TRUE(read_file(scratch.path() / "shared/model.safetensors") == whole) << model;
    }
    const json parts = train(model, {"--lr", "0", "--weights", "whole", "--ranks", "2", "--tensor-parallel", "2",
                                     "--save-weights", "parts", "--max-shard-size", "4Ki"});
    EXPECT_GT(parts["saved_weights"]["files"], 2);
    EXPECT_EQ(parts["saved_weights"]["file"], "parts/model.safetensors.index.json");
    train(model, {"--lr", "0", "--weights", "parts", "--seed", "6", "--save-weights", "again"});
    EXPECT_TRUE(read_file(scratch.path() / "again/model.safetensors") == whole) << model;
  }
}

// Nothing is replaced that the run reads, and nothing stays of one that fails.
TEST(TrainWeights, WhatIsReadIsNotWrittenOver) {
  const ScratchDirectory scratch;
  const Words words{"train", "--model", "gpt2-nano", "--data",         "random", "--sequence",
                    "16",    "--steps", "1",         "--save-weights", "a"};
  ASSERT_EQ(shardscope(words, {.directory = scratch.path()}).exit_code, 0);
  Words again = words;
  again.insert(again.end(), {"--weights", "a"});
  const Outcome outcome = shardscope(again, {.directory = scratch.path()});
  EXPECT_EQ(outcome.exit_code, 78);
  EXPECT_THAT(outcome.err,
              testing::HasSubstr("writes a/model.safetensors, which is the file of --weights a (command line)"));
  std::filesystem::resize_file(scratch.path() / "a/model.safetensors", 1'000'000);
  Words damaged = words;
  damaged.back() = "b";
  damaged.insert(damaged.end(), {"--weights", "a", "--ranks", "2"});
  EXPECT_EQ(shardscope(damaged, {.directory = scratch.path()}).exit_code, 65);
  EXPECT_EQ(scratch.list(), (Words{"a", "a/config.json", "a/model.safetensors"}));
}

// A file that may not be so large is known before the first step.
TEST(TrainWeights, BeyondTheLimitOnSizesTheFileIsNamed) {
  const ScratchDirectory scratch;
  const Words line{"sh",
                   "-c",
                   "ulimit -c 0; ulimit -f 2; exec \"$@\"",
                   "sh",
                   shardscope_path(),
                   "train",
                   "--model",
                   "gpt2-nano",
                   "--data",
                   "random",
                   "--sequence",
                   "16",
                   "--steps",
                   "1",
                   "--save-weights",
                   "w"};
  const Outcome outcome = run(line, {.directory = scratch.path()});
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_EQ(outcome.exit_code, 73) << outcome.err;
  EXPECT_THAT(outcome.err,
              testing::HasSubstr("w/model.safetensors: there is no room for its 3440568 bytes: File too large"));
  EXPECT_THAT(outcome.err, testing::HasSubstr("ulimit -f"));
  EXPECT_EQ(scratch.list(), Words{});
}

}  // namespace
}  // namespace shard::test
