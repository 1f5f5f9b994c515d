// Does the operating system see the memory that was predicted, wherever model data rests?
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/end_to_end/as_predicted.h"
#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;

constexpr double kMiB = 1 << 20;

/// Large enough that an arena that is not seen cannot hide in the 8 MiB that the answer may be off by.
constexpr const char* kModel =
    R"({"model_type": "gpt2", "vocab_size": 8192, "n_positions": 32, "n_embd": 256, "n_layer": 4, "n_head": 4})";

/// Runs it with `more` on `ranks`; the device arenas, and the host arenas where there must be any, are a signal.
void expect_seen(const std::string& ranks, bool host, const Words& more) {
  SCOPED_TRACE(ranks + " ranks " + json(more).dump());
  const ScratchDirectory scratch;
  Words words = train({"--model", scratch.write("config.json", kModel), "--data", "random", "--sequence", "16",
                       "--steps", "2", "--ranks", ranks});
  words.insert(words.end(), more.begin(), more.end());
  const json run = json_of(shardscope(words));
  ASSERT_TRUE(run.contains("arenas"));
  std::map<std::string, double> arenas;
  for (const json& arena : run["arenas"])
    arenas[arena["memory"].get<std::string>()] += arena["measured_peak_bytes"].get<double>();
  EXPECT_GT(arenas["device"], 16 * kMiB);
  EXPECT_EQ(arenas["host"] > 16 * kMiB, host) << arenas["host"];
  EXPECT_EQ(run["resident_bytes"]["predicted"], arenas["device"] + arenas["host"]);
  expect_as_predicted(run, std::stoul(ranks));
  expect_resident(run);
}

TEST(Resident, OnTheDevice) {
  expect_seen("1", false, {});
  expect_seen("2", false, {"--stage", "3"});
  expect_seen("2", false, {"--stage", "1", "--transport", "messages"});
}

TEST(Resident, InHostMemory) {
  expect_seen("1", true, {"--placement", "host"});
  expect_seen("2", true, {"--stage", "3", "--placement", "host"});
  expect_seen("2", true, {"--stage", "2", "--placement", "host", "--transport", "messages", "--precision", "bf16"});
}

TEST(Resident, PartlyInHostMemory) {
  const Words parts{"--stage", "3", "--param-placement", "0.5", "--optimizer-placement", "0.3"};
  expect_seen("1", true, parts);
  expect_seen("3", true, parts);
  expect_seen("2", true, {"--stage", "3", "--placement", "auto", "--device-capacity", "24Mi"});
}

// The file is read and written, not mapped: its pages are nobody's memory.
TEST(Resident, WithOptimizerStateOnDisk) {
  const ScratchDirectory scratch;
  const std::string disk = scratch.path().string();
  // Host memory holds what is on its way.
  expect_seen("1", true, {"--optimizer-placement", "disk", "--disk-path", disk});
  expect_seen("2", true,
              {"--stage", "3", "--param-placement", "host", "--optimizer-placement", "disk", "--disk-path", disk,
               "--transport", "messages"});
}

// What a rank keeps for itself beside its arenas counts as often as there are ranks.
TEST(Resident, OfManyRanks) {
  expect_seen("8", true,
              {"--stage", "3", "--precision", "bf16", "--param-placement", "0.5", "--optimizer-placement", "0.3"});
}

}  // namespace
}  // namespace shard::test
