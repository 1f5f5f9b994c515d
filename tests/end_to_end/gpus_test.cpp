// Does `shardscope train` on emulated GPUs, one or several, run as promised and end as promised?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/end_to_end/as_predicted.h"
#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;

/// A run of a small model, with what SHARDSCOPE_EMULATED_DEVICE says.
Outcome on_gpus(const ScratchDirectory& scratch, const std::string& device, Words more) {
  scratch.write("model.json", R"({"model_type": "gpt2", "vocab_size": 37, "n_positions": 8, "n_embd": 16,
                                  "n_layer": 2, "n_head": 4, "initializer_range": 0.2})");
  Words words{"train", "--device", "emulated-cuda", "--model", "model.json", "--data", "random"};
  for (const char* word : {"--sequence", "8", "--micro-batch", "1", "--global-batch", "4", "--steps", "3"})
    words.emplace_back(word);
  words.insert(words.end(), more.begin(), more.end());
  return shardscope(words, {.directory = scratch.path(), .environment = {{"SHARDSCOPE_EMULATED_DEVICE", device}}});
}

TEST(Gpus, ARankOnEachHasTheStateOfRanksThatShareOne) {
  const ScratchDirectory scratch;
  const json one = json_of(on_gpus(scratch, "", {"--ranks", "1", "--json"}));
  const json shared = json_of(on_gpus(scratch, "", {"--ranks", "4", "--stage", "3", "--json"}));
  const json own = json_of(on_gpus(scratch, "devices=4", {"--ranks", "4", "--stage", "3", "--json"}));
  const json steps = json_of(on_gpus(scratch, "devices=4", {"--ranks", "4", "--stage", "3", "--no-graph", "--json"}));
  EXPECT_EQ(shared["transport"], "same-device");
  EXPECT_EQ(own["transport"], "nccl");
  for (const json& run : {shared, own, steps}) EXPECT_EQ(run["state_sha256"], one["state_sha256"]);
  ASSERT_EQ(own["wire_bytes"].size(), 4U);
  for (const json& call : own["collectives"]) EXPECT_EQ(call["predicted_bytes"], call["measured_bytes"]);
}

TEST(Gpus, WhatIsInUseOnADeviceWasPredicted) {
  const ScratchDirectory scratch;
  for (const std::string device : {"", "devices=2"}) {
    const json run = json_of(on_gpus(scratch, device, {"--ranks", "2", "--stage", "3", "--json"}));
    const double predicted = run["device_in_use_bytes"]["predicted"];
    EXPECT_NEAR(run["device_in_use_bytes"]["measured"], predicted, 0.01 * predicted) << device;
  }
}

TEST(Gpus, HostMemoryIsPinned) {
  const ScratchDirectory scratch;
  const json run = json_of(on_gpus(scratch, "", {"--ranks", "2", "--stage", "3", "--placement", "host", "--json"}));
  std::map<std::string, std::int64_t> peak;
  for (const json& arena : run["arenas"]) {
    EXPECT_EQ(arena["predicted_peak_bytes"], arena["measured_peak_bytes"]) << arena;
    if (arena["rank"] == 0) peak[arena["memory"]] = arena["measured_peak_bytes"];
  }
  EXPECT_GT(peak["pinned"], 0);
  EXPECT_EQ(peak["host"], 0);
}

TEST(Gpus, FewerThanRanksAreNotTaken) {
  const ScratchDirectory scratch;
  EXPECT_EQ(json_of(on_gpus(scratch, "devices=2", {"--ranks", "4", "--json"}))["transport"], "same-device");
}

TEST(Gpus, StagingIsAskedForOnlyWhereBitsArePromised) {
  const ScratchDirectory scratch;
  const Words shared{"--ranks", "2", "--stage", "2", "--transport", "shared", "--json"};
  const Outcome refused = on_gpus(scratch, "devices=2", shared);
  EXPECT_EQ(refused.exit_code, 78);
  EXPECT_THAT(refused.err, HasSubstr("--transport shared (command line)"));
  Words own_sums = shared;
  own_sums.emplace_back("--no-reproducible");
  EXPECT_EQ(json_of(on_gpus(scratch, "devices=2", own_sums))["transport"], "nccl");
}

TEST(Gpus, FaultsOfOneEndAllRanks) {
  const ScratchDirectory scratch;
  const Words ranks{"--ranks", "2", "--stage", "2", "--timeout", "2"};
  const Outcome failed = on_gpus(scratch, "devices=2,error=nccl_send:5", ranks);
  EXPECT_EQ(failed.exit_code, 69);
  EXPECT_THAT(failed.err, HasSubstr("rank 1 "));
  const Outcome hung = on_gpus(scratch, "devices=2,hang=launch:40", ranks);
  EXPECT_EQ(hung.exit_code, 75);
  EXPECT_THAT(hung.err, HasSubstr("rank 1 op "));
}

TEST(Gpus, AHangSaysWhereEachRankWasAndKeepsTheRecorders) {
  const ScratchDirectory scratch;
  const Words ranks{"--ranks", "2", "--stage", "3", "--timeout", "1", "--recorder", "kept/"};
  const Outcome hung = on_gpus(scratch, "devices=2,hang=launch:60", ranks);
  EXPECT_EQ(hung.exit_code, 75);
  EXPECT_THAT(hung.err,
              ContainsRegex("\n  rank 1 has made no progress for [0-9]+ s in [a-z ]*(step 1|the digest|creation)"));
  EXPECT_THAT(hung.err, HasSubstr("recorders are in kept/: shardscope inspect kept/"));
  const Outcome read = shardscope({"inspect", "kept/"}, {.directory = scratch.path()});
  EXPECT_EQ(read.exit_code, 0) << read.err;
  EXPECT_THAT(read.out, HasSubstr("rank 1"));
  const Outcome well = on_gpus(scratch, "devices=2", {"--ranks", "2", "--recorder", "none/"});
  EXPECT_EQ(well.exit_code, 0) << well.err;
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "none")) << "a run that ends well leaves nothing";
}

}  // namespace
}  // namespace shard::test
