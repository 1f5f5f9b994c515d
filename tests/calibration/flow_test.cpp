// Do simulate, search and train take the file of a calibration, here of an emulated GPU, as any other?
#include <gtest/gtest.h>

#include <set>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

TEST(CalibratedGpu, IsAClusterToAllCommands) {
  const ScratchDirectory folder;
  const std::string file = folder.file("gpu.json");
  const nlohmann::json made = json_of(shardscope({"calibrate", "--device", "emulated-cuda", "-o", file, "--json"}));
  EXPECT_EQ(made["device"], "emulated-cuda");
  EXPECT_EQ(made["left_out"], 0);
  EXPECT_EQ(made["repetitions"], 1);
  EXPECT_EQ(made["steps"].size(), 4U);
  ASSERT_FALSE(made["figures"].empty());
  for (const nlohmann::json& figure : made["figures"])
    EXPECT_NE(figure["method"].get<std::string>().find("mean nothing"), std::string::npos) << figure["name"];

  const nlohmann::json cluster = nlohmann::json::parse(read_file(file));
  EXPECT_EQ(cluster["device"], "cuda");
  EXPECT_GT(cluster["device_memory_bytes"], 0);
  EXPECT_NE(cluster["source"].get<std::string>().find("mean nothing"), std::string::npos);
  EXPECT_EQ(cluster["measured"]["figures"].size(), made["figures"].size());
  std::set<std::pair<int, std::string>> laws;
  for (const nlohmann::json& o : cluster["measured"]["occupancies"])
    for (const nlohmann::json& law : o["laws"]) laws.emplace(o["ranks"], law["kind"]);
  for (const char* kind : {"linear forward", "attention backward", "adamw", "copy"})
    EXPECT_TRUE(laws.contains({1, kind})) << kind;
  EXPECT_TRUE(laws.contains({2, "all_gather"}));

  const Words run{"--model", "gpt2-nano", "--sequence", "8",  "--ranks", "2",
                  "--stage", "3",         "--cluster",  file, "--json"};
  const auto with = [&](Words words) {
    words.insert(words.end(), run.begin(), run.end());
    return json_of(shardscope(words));
  };
  // Of the run that train makes, and so not of PyTorch, which is what people mean on a GPU where nobody says.
  const nlohmann::json predicted = with({"simulate", "--like", "shardscope"});
  const nlohmann::json trained = with({"train", "--device", "emulated-cuda", "--data", "random", "--steps", "2"});
  EXPECT_GT(trained["step_seconds"]["predicted"], 0);
  EXPECT_DOUBLE_EQ(trained["step_seconds"]["predicted"], predicted["step_seconds"]);
  for (const nlohmann::json& arena : trained["arenas"])
    EXPECT_EQ(arena["predicted_peak_bytes"], arena["measured_peak_bytes"]);
  const nlohmann::json found =
      json_of(shardscope({"search", "--model", "gpt2-nano", "--ranks", "2", "--cluster", file, "--json"}));
  EXPECT_FALSE(found.empty());
}

TEST(CalibratedGpu, OfSeveralHasTheLinkBetweenThem) {
  const ScratchDirectory folder;
  const std::string file = folder.file("gpus.json");
  const Surroundings three{.directory = {}, .environment = {{"SHARDSCOPE_EMULATED_DEVICE", "devices=3"}}};
  const nlohmann::json made =
      json_of(shardscope({"calibrate", "--device", "emulated-cuda", "-o", file, "--json"}, three));
  std::set<std::string> names;
  for (const nlohmann::json& figure : made["figures"]) names.insert(figure["name"]);
  for (const char* name :
       {"all_gather of 2 ranks, 4096 bytes, time", "all_gather of 2 GPUs, 4096 bytes, time",
        "all_reduce of 3 GPUs, 4104 bytes, bus bandwidth", "reduce_scatter of 3 GPUs, reproducible, 1032 bytes, time"})
    EXPECT_TRUE(names.contains(name)) << name;
  const nlohmann::json cluster = nlohmann::json::parse(read_file(file));
  EXPECT_EQ(cluster["devices_per_host"], 3);
  EXPECT_EQ(cluster["ranks_share_device"], false);
  EXPECT_GT(cluster["intra_host_link"]["bus_bandwidth_bytes_per_second"], 1);

  const Words run{"--model", "gpt2-nano", "--sequence", "8", "--stage", "3", "--cluster", file, "--json"};
  const auto with = [&](Words words) {
    words.insert(words.end(), run.begin(), run.end());
    return shardscope(words, three);
  };
  EXPECT_GT(json_of(with({"simulate", "--like", "shardscope", "--ranks", "3"}))["step_seconds"], 0);
  for (const char* framework : {"shardscope", "fsdp2"})
    EXPECT_EQ(with({"simulate", "--like", framework, "--ranks", "4"}).exit_code, 78) << framework;
  const Words chunks{"simulate",          "--like", "colossalai-gemini", "--model", "gpt2-nano",
                     "--device-capacity", "8Gi",    "--cluster",         file,      "--ranks"};
  for (const auto& [ranks, exit_code] : {std::pair{"3", 0}, std::pair{"4", 78}}) {
    Words words = chunks;
    words.emplace_back(ranks);
    EXPECT_EQ(shardscope(words, three).exit_code, exit_code) << ranks;
  }
  EXPECT_EQ(with({"simulate", "--ranks", "4"}).exit_code, 78);
  const nlohmann::json trained =
      json_of(with({"train", "--ranks", "3", "--device", "emulated-cuda", "--data", "random", "--steps", "2"}));
  for (const nlohmann::json& arena : trained["arenas"])
    EXPECT_EQ(arena["predicted_peak_bytes"], arena["measured_peak_bytes"]);
}

TEST(CalibratedGpu, WithoutOneNothingIsWritten) {
  const ScratchDirectory folder;
  const std::string file = folder.file("gpu.json");
  const Outcome outcome = shardscope({"calibrate", "--device", "cuda", "-o", file},
                                     {.directory = {}, .environment = {{"SHARDSCOPE_CUDA_MODULE", "/no/module.so"}}});
  EXPECT_EQ(outcome.exit_code, 69);
  EXPECT_NE(outcome.err.find("/no/module.so"), std::string::npos) << outcome.err;
  EXPECT_TRUE(folder.list().empty());
}

}  // namespace
}  // namespace shard::test
