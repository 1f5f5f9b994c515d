// Does every page of `shardscope help` give commands that run, and is each page found by the words people use?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/cli/questions.h"
#include "tests/end_to_end/command_lines.h"
#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Questions : public testing::TestWithParam<std::string> {};

TEST_P(Questions, CommandsOfThePageRun) {
  const Outcome page = shardscope({"help", GetParam()});
  ASSERT_EQ(page.exit_code, 0) << page.err;
  const std::vector<CommandLine> lines = command_lines(page.out);
  EXPECT_GE(lines.size(), 1u) << "nothing to paste";
  const ScratchDirectory scratch;
  make_inputs(scratch);
  for (const CommandLine& line : lines) {
#ifndef WITH_RANKS
    if (line.text.find("shardscope train") == 0 || line.text.find("shardscope verify") == 0) continue;
#endif
    // Without PyTorch a dry run whose options are right says what is missing.
    const bool is_dry_run = line.text.starts_with("shardscope dryrun");
    if (is_dry_run && has_pytorch()) continue;
    const Outcome outcome = run_line(line, scratch);
    EXPECT_EQ(outcome.exit_code, is_dry_run ? 69 : line.exit_code) << line.text << "\n" << outcome.err;
  }
}

TEST_P(Questions, FitOnAScreen) {
  const std::string page = shardscope({"help", GetParam()}).out;
  EXPECT_LE(std::count(page.begin(), page.end(), '\n'), 24) << page;
}

std::vector<std::string> topics() {
  std::vector<std::string> names;
  for (const cli::Question& each : cli::questions()) names.emplace_back(each.topic);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Questions, testing::ValuesIn(topics()), [](const auto& each) {
  std::string name = each.param;
  std::erase(name, '-');
  return name;
});

TEST(QuestionsList, NamesEveryTopicInBothPrograms) {
  const Outcome list = shardscope({"help"});
  const Outcome other = run({programs_directory() + "/shardscope-train", "help"});
  for (const std::string& topic : topics()) {
    EXPECT_THAT(list.out, HasSubstr("\n  " + topic + " ")) << topic;
    EXPECT_THAT(other.out, HasSubstr("\n  " + topic + " ")) << topic;
  }
  EXPECT_THAT(run({programs_directory() + "/shardscope-train", "help", "fit"}).out, StartsWith("Will it fit?\n"));
}

/// A topic, another word for it, a question, a word of one.
TEST(QuestionsList, AreFoundByPeoplesWords) {
  for (const auto& [words, page] :
       std::vector<std::pair<Words, std::string>>{{{"help", "fit"}, "Will it fit?"},
                                                  {{"help", "will", "it", "fit?"}, "Will it fit?"},
                                                  {{"help", "Why is it slow?"}, "Why is it slow?"},
                                                  {{"help", "why", "is", "it", "so", "slow"}, "Why is it slow?"},
                                                  {{"help", "deepspeed"}, "How do I start from the configuration"},
                                                  {{"help", "ds_config"}, "How do I start from the configuration"},
                                                  {{"help", "allocator"}, "Is it the allocator?"},
                                                  {{"help", "lora"}, "What will my own script take"},
                                                  {{"help", "pipeline"}, "What will my own script take"},
                                                  {{"help", "expandable_segments"}, "Is it the allocator?"},
                                                  {{"help", "stage"}, "  stage ("},
                                                  {{"help", "zero-3"}, "  stage ("},
                                                  {{"help", "unit"}, "  unit: "},
                                                  {{"help", "chunk"}, "Which chunk size?"}})
    EXPECT_THAT(shardscope(words).out, StartsWith(page)) << words.back();
  // What is asked about and stands in outputs, too, is both.
  EXPECT_THAT(shardscope({"help", "chunk"}).out, HasSubstr("\n  chunk (chunks): "));
  const Outcome unknown = shardscope({"help", "stratgey"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'strategy'?"));
}

TEST(KnownNames, AreListedWithTheirSource) {
  const nlohmann::json models = json_of(shardscope({"inspect", "--models", "--json"}));
  std::size_t with_source = 0;
  bool llama = false;
  for (const nlohmann::json& each : models["models"]) {
    with_source += each["source"].get<std::string>().find('/') != std::string::npos ? 1 : 0;
    // As transformers counts it: tests/data/families.
    if (each["name"] == "llama-3.1-8b") llama = each["parameter_count"] == 8030261248;
  }
  EXPECT_EQ(with_source, models["models"].size());
  EXPECT_GE(with_source, 80u);
  EXPECT_TRUE(llama);
  const nlohmann::json clusters = json_of(shardscope({"inspect", "--clusters", "--json"}));
  EXPECT_GE(clusters["clusters"].size(), 16u);
  for (const nlohmann::json& each : clusters["clusters"])
    EXPECT_GE(each["source"].get<std::string>().size(), 10u) << each["name"];
  EXPECT_THAT(shardscope({"inspect", "--clusters"}).out, HasSubstr("\nh100-80gb-x8: NVIDIA H100 data sheet"));
  EXPECT_EQ(shardscope({"inspect", "--models", "--clusters"}).exit_code, 2);
  EXPECT_EQ(shardscope({"inspect", "--models", "a.sst"}).exit_code, 2);
  EXPECT_THAT(shardscope({"inspect", "--models", "--format", "csv"}).out, StartsWith("name,class,parameter_count,"));
}

}  // namespace
}  // namespace shard::test
