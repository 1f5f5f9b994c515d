// Is docs/json.md what the program prints, and does it tell of every key of the answers, and of no other?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "sim/cli/answers.h"
#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

namespace fs = std::filesystem;
using cli::Presence;

/// The keys of a command's table that answers always have; all of them.
std::set<std::string> keys_of(const std::string& command, bool with_others) {
  std::set<std::string> keys;
  const cli::Answer* const answer = cli::answer_of(command);
  EXPECT_NE(answer, nullptr) << command;
  if (answer == nullptr) return keys;
  for (const cli::AnswerKey& row : answer->keys) {
    if (row.presence == Presence::sometimes && !with_others) continue;
    for (const std::string& name : names_of(row))
      EXPECT_TRUE(keys.insert(name).second) << command << " has " << name << " twice";
  }
  return keys;
}

/// `others`: keys that are told as sometimes there, and are in this answer.
void expect_told(const std::string& command, const Outcome& outcome, const std::set<std::string>& others = {}) {
  const nlohmann::json answer = json_of(outcome);
  const std::set<std::string> all = keys_of(command, true);
  for (const auto& [key, value] : answer.items())
    EXPECT_TRUE(all.contains(key)) << "sim/cli/answers*.cpp: the table of '" << command << "' lacks " << key;
  for (const std::string& key : keys_of(command, false))
    EXPECT_TRUE(answer.contains(key)) << command << " has no " << key;
  for (const std::string& key : others) {
    EXPECT_TRUE(answer.contains(key)) << command << ": " << key;
    EXPECT_TRUE(all.contains(key)) << command << ": " << key;
  }
}

// After a change of the tables: SHARDSCOPE_UPDATE_GOLDEN=1 tests/documents_test writes the document.
TEST(JsonDocument, IsWhatTheProgramPrints) {
  const fs::path document = fs::path(TEST_DATA).parent_path() / "docs" / "json.md";
  const Outcome outcome = shardscope({"help", "json"});
  EXPECT_EQ(outcome.exit_code, 0);
  if (std::getenv("SHARDSCOPE_UPDATE_GOLDEN") != nullptr) std::ofstream(document, std::ios::binary) << outcome.out;
  EXPECT_EQ(read_file(document), outcome.out);
}

TEST(JsonDocument, TellsEveryKeyOfPredictions) {
  expect_told("search", shardscope({"search", "--model", "gpt2", "--world-size", "8", "--rule", "variable", "--json"}),
              {"chunks", "try_command"});
  expect_told("simulate", shardscope({"simulate", "--model", "gpt2-nano", "--world-size", "2", "--json"}));
  expect_told("simulate", shardscope({"simulate", "--model", "gpt2-nano", "--what-if", "--json"}), {"levers"});
  expect_told("simulate",
              shardscope({"simulate", "--model", "gpt2-nano", "--find", "max-micro-batch", "--device-capacity", "64Mi",
                          "--json"}),
              {"found"});
  expect_told("sweep", shardscope({"sweep", "--model", "gpt2-nano", "--stage", "0,1", "--json"}));
}

TEST(JsonDocument, TellsEveryKeyOfOtherFrameworksMemory) {
  for (const char* framework : {"ddp", "fsdp1", "fsdp2", "deepspeed"})
    expect_told("simulate --like NAME",
                shardscope({"simulate", "--like", framework, "--model", "gpt2", "--world-size", "2", "--cluster",
                            "h100-80gb-x8", "--json"}),
                {"dry_run"});
  expect_told("simulate --like NAME", shardscope({"simulate", "--like", "pytorch@1.8", "--model", "mlp-20x2000",
                                                  "--world-size", "2", "--json"}));
  expect_told("simulate --like colossalai-gemini", shardscope({"simulate", "--like", "colossalai-gemini", "--model",
                                                               "gpt2", "--world-size", "2", "--json"}));
}

TEST(JsonDocument, TellsEveryKeyOfDescriptions) {
  expect_told("inspect MODEL", shardscope({"inspect", "gpt2", "--json"}));
  const ScratchDirectory folder;
  const std::string log = folder.write(
      "train.log",
      "Tried to allocate 1.00 MiB (GPU 0; 2.00 MiB total capacity; 1.50 MiB already allocated; 0 bytes free; 1.50 MiB "
      "reserved in total by PyTorch)");
  const std::string snapshot = std::string(TEST_DATA) + "/fuzz/corpus/snapshot_fuzz/protocol4.pickle";
  expect_told("inspect --oom FILE", shardscope({"inspect", snapshot, "--oom", log, "--json"}), {"peak"});
  const Outcome converted = shardscope({"convert", snapshot, folder.file("events.csv"), "--json"});
  expect_told("convert", converted);
  const nlohmann::json said = json_of(converted);
  EXPECT_EQ(said["bytes"], fs::file_size(folder.file("events.csv")));
  EXPECT_EQ(said["files"][0]["format"], "pytorch-snapshot");
  EXPECT_EQ(said["form"], "csv");
  expect_told("plan", shardscope({"plan", "--model", "gpt2-nano", "--verify", "--json"}), {"verified"});
}

TEST(JsonDocument, TellsEveryKeyOfRunsAndTheirComparisons) {
  const ScratchDirectory folder;
  const std::vector<std::string> data{"--model", "gpt2-nano", "--data", "random", "--steps", "1", "--json"};
  std::vector<std::string> train{"train", "--trace", folder.file("measured.sst"), "--trace-predicted",
                                 folder.file("predicted.sst")};
  train.insert(train.end(), data.begin(), data.end());
  expect_told("train", shardscope(train));
  expect_told("compare of two traces",
              shardscope({"compare", folder.file("predicted.sst"), folder.file("measured.sst"), "--json"}));
  std::vector<std::string> verify{"verify", "--ranks", "2", "--stage", "2"};
  verify.insert(verify.end(), data.begin(), data.end());
  expect_told("verify", shardscope(verify));
  folder.write("a.conf", "model = gpt2-nano\nworld-size = 2\nstage = 2\n");
  folder.write("b.conf", "model = gpt2-nano\nworld-size = 2\nstage = 3\n");
  expect_told("inspect TRACE", shardscope({"inspect", folder.file("measured.sst"), "--json"}));
  expect_told("compare of two strategies",
              shardscope({"compare", folder.file("a.conf"), folder.file("b.conf"), "--json"}));
}

TEST(JsonDocument, TellsEveryKeyOfRecordings) {
  const std::string data(TEST_DATA);
  const std::string snapshot = data + "/data/snapshots/small_decoder.pickle";
  expect_told("inspect TRACE", shardscope({"inspect", snapshot, "--json"}), {"peak", "snapshot"});
  expect_told("compare of two snapshots", shardscope({"compare", snapshot, snapshot, "--json"}));
  expect_told("validate", shardscope({"validate", data + "/validation/typed.csv", "--json"}));
}

}  // namespace
}  // namespace shard::test
