// Does a run say which instruction set its numbers belong to, and can it be held to one?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "tests/end_to_end/as_predicted.h"
#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// Those of the option that this machine has.
const Words& instruction_sets() {
  static const Words sets = [] {
    Words found;
    for (const char* set : {"avx2", "avx512"}) {
      const Outcome outcome = shardscope(train(
          {"--model", "gpt2-nano", "--data", "random", "--sequence", "8", "--steps", "1", "--instruction-set", set}));
      if (outcome.exit_code == 0)
        found.emplace_back(set);
      else
        EXPECT_EQ(outcome.exit_code, 69) << outcome.err;
    }
    return found;
  }();
  return sets;
}

Words small(const Words& more) {
  Words words =
      train({"--model", "gpt2-nano", "--data", "random", "--sequence", "16", "--steps", "2", "--global-batch", "2"});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Six micro-batches: a rank that sums three of them sums no subtree of the tree over all.
TEST(Numerics, SaysWhereOtherStrategiesHaveOtherBits) {
  std::set<std::string> digests;
  for (const Words& strategy : {Words{}, Words{}, Words{"--ranks", "2"}}) {
    Words words = train({"--model", "gpt2-nano", "--data", "random", "--sequence", "16", "--steps", "2",
                         "--global-batch", "6", "--micro-batch", "1"});
    words.insert(words.end(), strategy.begin(), strategy.end());
    const json run = json_of(shardscope(words));
    EXPECT_EQ(run["numerics"]["reproducible"], true);
    EXPECT_EQ(run["numerics"]["bits_promised"], false);
    digests.insert(run["state_sha256"]);
  }
  EXPECT_EQ(digests.size(), 2U) << "what is said would not be so";
  const json promised = json_of(shardscope(small({})));
  EXPECT_EQ(promised["numerics"]["bits_promised"], true);
  const Outcome text = shardscope({"train", "--model", "gpt2-nano", "--data", "random", "--sequence", "16", "--steps",
                                   "1", "--global-batch", "6", "--micro-batch", "1"});
  EXPECT_THAT(text.out,
              HasSubstr("reproducible by this strategy alone, since 6 micro-batches in the global batch are no "
                        "power of two\n"));
}

TEST(Numerics, OneDigestOfEachInstructionSetWhateverTheStrategy) {
  std::set<std::string> digests;
  for (const std::string& set : instruction_sets()) {
    std::string sha;
    for (const Words& strategy : {Words{}, Words{}, Words{"--threads", "2", "--recompute", "block"},
                                  Words{"--ranks", "2", "--stage", "3", "--unit", "chunk", "--placement", "host"},
                                  Words{"--ranks", "2", "--stage", "1", "--transport", "messages"}}) {
      Words words = small({"--instruction-set", set});
      words.insert(words.end(), strategy.begin(), strategy.end());
      const json run = json_of(shardscope(words));
      EXPECT_EQ(run["numerics"]["instruction_set"], set);
      EXPECT_EQ(run["numerics"]["reproducible"], true);
      EXPECT_THAT(run["numerics"]["library"].get<std::string>(), HasSubstr("oneDNN "));
      if (sha.empty()) sha = run["state_sha256"];
      EXPECT_EQ(run["state_sha256"], sha) << json(words);
    }
    digests.insert(sha);
  }
  EXPECT_EQ(digests.size(), instruction_sets().size()) << "the option would be of no use";
}

// As on a machine that has no more: it says so, and its bits are those of a run that was held to it.
TEST(Numerics, WithoutTheOptionItIsWhatTheLibraryTakes) {
  const json best = json_of(shardscope(small({"--no-reproducible"})));
  EXPECT_EQ(best["numerics"]["reproducible"], false);
  if (instruction_sets().empty()) GTEST_SKIP() << "the library has " << best["numerics"]["instruction_set"] << " here";
  EXPECT_EQ(best["numerics"]["instruction_set"], instruction_sets().back());
  const json limited = json_of(shardscope(small({}), {.environment = {{"ONEDNN_MAX_CPU_ISA", "AVX2"}}}));
  EXPECT_EQ(limited["numerics"]["instruction_set"], "avx2");
  EXPECT_EQ(limited["state_sha256"], json_of(shardscope(small({"--instruction-set", "avx2"})))["state_sha256"]);
  const std::string last = instruction_sets().back();
  const json asked =
      json_of(shardscope(small({"--instruction-set", last}), {.environment = {{"ONEDNN_MAX_CPU_ISA", "AVX2"}}}));
  EXPECT_EQ(asked["numerics"]["instruction_set"], last);
}

TEST(Numerics, AreSaidInTextAndTrace) {
  const ScratchDirectory scratch;
  scratch.write("run.conf", "instruction-set = avx2\n");
  if (instruction_sets().empty()) GTEST_SKIP() << "no AVX2";
  const Outcome outcome = shardscope({"train", "--model", "gpt2-nano", "--data", "random", "--sequence", "16",
                                      "--steps", "2", "--trace", "run.sst", "--config", "run.conf"},
                                     {.directory = scratch.path()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nnumerics  avx2 (oneDNN "));
  EXPECT_THAT(outcome.out, HasSubstr(", computed with avx2\n"));
  const json trace = json_of(shardscope({"inspect", "run.sst", "--json"}, {.directory = scratch.path()}));
  EXPECT_EQ(trace["metadata"]["instruction_set"], "avx2");
  EXPECT_THAT(trace["metadata"]["matrix_library"].get<std::string>(), HasSubstr("oneDNN "));
}

TEST(Numerics, ComparingRunsOfTwoSetsSaysSo) {
  if (instruction_sets().size() < 2) GTEST_SKIP() << "one instruction set here";
  const ScratchDirectory scratch;
  for (const std::string& set : instruction_sets())
    static_cast<void>(
        json_of(shardscope(small({"--instruction-set", set, "--trace", set + ".sst"}), {.directory = scratch.path()})));
  const Outcome apart = shardscope({"compare", "avx2.sst", "avx512.sst", "--check"}, {.directory = scratch.path()});
  EXPECT_EQ(apart.exit_code, 0) << apart.err;
  EXPECT_THAT(apart.err, HasSubstr("note: measured with avx2 and with avx512"));
  const Outcome alike = shardscope({"compare", "avx2.sst", "avx2.sst"}, {.directory = scratch.path()});
  EXPECT_EQ(alike.err, "");
}

TEST(Numerics, RanksThatDifferAreRefused) {
  if (instruction_sets().size() < 2) GTEST_SKIP() << "one instruction set here";
  Words words{shardscope_path()};
  for (const std::string& word : small({})) words.push_back(word);
  Words command{MPIRUN, "--allow-run-as-root",    "--oversubscribe", "--bind-to", "none", "-n", "1",
                "env",  "ONEDNN_MAX_CPU_ISA=AVX2"};
  command.insert(command.end(), words.begin(), words.end());
  command.insert(command.end(), {":", "-n", "1"});
  command.insert(command.end(), words.begin(), words.end());
  const Outcome refused = run(command, under_mpirun_here());
  EXPECT_EQ(refused.exit_code, 78);
  EXPECT_THAT(refused.err, HasSubstr("rank 0 would compute with avx2 and rank 1 with avx512, whose bits differ"));
  EXPECT_THAT(refused.err, HasSubstr("try: --instruction-set avx2"));
}

// The digests in the documents are those of this release, for the library that they name.
TEST(Numerics, AreThoseOfTheDocuments) {
  const std::string page = read_file(std::filesystem::path(TEST_DATA).parent_path() / "docs" / "agreement.md");
  for (const std::string& set : instruction_sets()) {
    for (const char* precision : {"fp32", "bf16", "fp16"}) {
      const json run = json_of(
          shardscope(train({"--model", "gpt2-nano", "--data", "random", "--sequence", "32", "--global-batch", "8",
                            "--steps", "3", "--seed", "7", "--precision", precision, "--instruction-set", set})));
      const std::string library = run["numerics"]["library"];
      if (page.find(library) == std::string::npos) GTEST_SKIP() << "the page is not about " << library;
      EXPECT_THAT(page, HasSubstr("`" + run["state_sha256"].get<std::string>() + "`")) << set << ' ' << precision;
    }
  }
}

}  // namespace
}  // namespace shard::test
