// Does `inspect` answer as documented: a recording replayed, several files on one axis, an estimate, the GPUs here?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(Inspect, ReplaysARecordingOfPyTorchsAllocator) {
  for (const char* name : {"small", "transformer_forward"}) {
    const json j = json_of(shardscope({"inspect", std::string(TEST_DATA) + "/data/allocator/" + name + ".csv",
                                       "--replay-allocator", "pytorch", "--json"}));
    const json& replay = j.at("allocator_replay");
    EXPECT_GT(replay["allocation_count"], 100);
    EXPECT_EQ(replay["allocation_count"], replay["same_address_count"]) << name;
    EXPECT_EQ(replay["segment_count"], replay["same_segment_count"]) << name;
    EXPECT_EQ(replay["peak_reserved_bytes"]["predicted"], replay["peak_reserved_bytes"]["measured"]) << name;
  }
}

TEST(Inspect, SaysWhatARecordingWouldHaveReservedUnderOtherSettings) {
  const auto reserved = [](const char* settings) {
    const json j = json_of(shardscope({"inspect", std::string(TEST_DATA) + "/data/allocator/transformer_forward.csv",
                                       "--replay-allocator", "pytorch", "--allocator-conf", settings, "--json"}));
    return j.at("allocator_replay").at("peak_reserved_bytes");
  };
  const json as_it_was = reserved("backend:native");
  EXPECT_EQ(as_it_was["predicted"], as_it_was["measured"]);
  const json expandable = reserved("expandable_segments:True");
  EXPECT_NE(expandable["predicted"], expandable["measured"]);  // pages of 20 MiB beside the segments that stay
  const Outcome refused = shardscope({"inspect", std::string(TEST_DATA) + "/data/allocator/small.csv",
                                      "--replay-allocator", "pytorch", "--allocator-conf", "max_split_size_mb:1"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("at least 20"));
}

// The message's form is PyTorch 2.6's.
TEST(Inspect, SaysWhatAnOutOfMemoryMessageMeans) {
  const ScratchDirectory folder;
  const std::string log = folder.write(
      "train.log",
      "step 3\n[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 1 has a total "
      "capacity "
      "of 79.25 GiB of which 512.00 MiB is free. Including non-PyTorch memory, this process has 78.75 GiB memory in "
      "use. Of "
      "the allocated memory 70.00 GiB is allocated by PyTorch, and 7.50 GiB is reserved by PyTorch but unallocated.\n");
  const Outcome text = shardscope({"inspect", "--oom", log});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, testing::StartsWith("Fragmentation: 1.00 GiB was asked for, and 7.50 GiB lies idle"));
  EXPECT_THAT(text.out, HasSubstr("expandable_segments:True"));
  EXPECT_THAT(text.out, HasSubstr("shardscope simulate --what-if"));
  const json j = json_of(shardscope({"inspect", "--oom", log, "--json"}));
  EXPECT_EQ(j["cause"], "fragmentation");
  EXPECT_EQ(j["unallocated_bytes"], 7516192768 + 536870912);
  EXPECT_EQ(j["outside_allocator_bytes"], 1342177280);
  EXPECT_EQ(j["other_processes_bytes"], 0);
  const Outcome piped = run({"sh", "-c", "exec \"$0\" inspect --oom - < \"$1\"", shardscope_path(), log});
  EXPECT_EQ(piped.out, text.out);
  const std::string snapshot = std::string(TEST_DATA) + "/fuzz/corpus/snapshot_fuzz/protocol4.pickle";
  const Outcome both = shardscope({"inspect", snapshot, "--oom", log});
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_THAT(both.out, testing::StartsWith(text.out + "\n"));
  EXPECT_GT(both.out.size(), text.out.size() + 100);
}

TEST(Inspect, RefusesATextWithoutSuchAMessage) {
  const ScratchDirectory folder;
  const Outcome none = shardscope({"inspect", "--oom", folder.write("train.log", "Segmentation fault\n")});
  EXPECT_EQ(none.exit_code, 65);
  EXPECT_THAT(none.err, HasSubstr("no out-of-memory message of PyTorch"));
  EXPECT_THAT(none.err, HasSubstr("Tried to allocate 20.00 MiB"));
  EXPECT_EQ(shardscope({"inspect", "--oom", folder.file("absent.log")}).exit_code, 66);
}

/// The oracle's rows of a model, as the command writes them, by "GPUs NODES".
std::map<std::string, std::set<std::string>> estimates_of(const std::string& model) {
  std::ifstream rows(std::string(TEST_DATA) + "/data/deepspeed_estimates/estimates.tsv");
  std::string line;
  std::map<std::string, std::set<std::string>> all;
  while (std::getline(rows, line)) {
    std::istringstream cells(line);
    int stage = 0;
    std::string name, gpus, nodes;
    std::int64_t parameters = 0, layer = 0, host = 0, gpu = 0;
    bool offload = false, offload_parameters = false, zero_init = false;
    cells >> stage >> name >> parameters >> layer >> gpus >> nodes >> offload >> offload_parameters >> zero_init >>
        host >> gpu;
    if (!cells || name != model) continue;
    json row = {{"fn", stage == 2 ? "zero2" : "zero3"}, {"cpu_offload", offload}, {"cpu_mem", host}, {"gpu_mem", gpu}};
    if (stage == 3) row.update({{"cpu_offload_params", offload_parameters}, {"zero_init", zero_init}});
    all[gpus + " " + nodes].insert(row.dump());
  }
  return all;
}

TEST(Inspect, EstimatesAsDeepSpeedDoesBesideOurOwnAnswer) {
  for (const char* model : {"gpt2", "llama-7b", "mlp-20x2000"}) {
    const auto expected = estimates_of(model);
    ASSERT_FALSE(expected.empty()) << model;
    for (const auto& [machines, rows] : expected) {
      const std::string gpus = machines.substr(0, machines.find(' '));
      const std::string nodes = machines.substr(machines.find(' ') + 1);
      const json answer = json_of(shardscope(
          {"inspect", model, "--estimate", "deepspeed", "--gpus-per-node", gpus, "--nodes", nodes, "--json"}));
      std::set<std::string> said;
      for (json row : answer["estimate"]["rows"]) {
        EXPECT_GT(row["own_gpu_bytes"], 0);
        EXPECT_EQ(row["own_host_bytes"] > 0, row["cpu_offload"].get<bool>()) << row;
        row.erase("own_gpu_bytes");
        row.erase("own_host_bytes");
        said.insert(row.dump());
      }
      EXPECT_EQ(said, rows) << model << " on " << machines;
    }
  }
}

TEST(Inspect, EstimatesOfOneModelOnly) {
  const Outcome without = shardscope({"inspect", "gpt2", "--nodes", "2"});
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_THAT(without.err, HasSubstr("--nodes is of --estimate"));
  const Outcome unknown = shardscope({"inspect", "gpt2", "--estimate", "fairscale"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("--estimate deepspeed"));
}

/// A kernel of one rank.
std::string profile_of(int rank) {
  return R"({"baseTimeNanoseconds": 1000000000, "distributedInfo": {"rank": )" + std::to_string(rank) +
         R"(, "world_size": 2}, "traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 10,
             "dur": 5, "args": {"device": 0, "stream": 7}}]})";
}

TEST(Inspect, SaysOfEachOfSeveralFilesOnceHowItWasAligned) {
  const ScratchDirectory scratch;
  const Outcome shown =
      shardscope({"inspect", scratch.write("a.json", profile_of(0)), scratch.write("b.json", profile_of(1))});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, testing::ContainsRegex("\naligned: [^\n]*a\\.json[^\n]*\naligned: [^\n]*b\\.json"));
  std::size_t lines = 0;
  for (std::size_t at = shown.out.find("\naligned: "); at != std::string::npos;
       at = shown.out.find("\naligned: ", at + 1))
    ++lines;
  EXPECT_EQ(lines, 2U) << shown.out;
}

TEST(Inspect, SaysThatATimeIsAfterTheEndOfTheTrace) {
  const ScratchDirectory scratch;
  const std::string trace = scratch.file("p.sst");
  ASSERT_EQ(shardscope({"simulate", "--model", "gpt2-nano", "--trace", trace}).exit_code, 0);
  EXPECT_EQ(shardscope({"inspect", trace, "--at", "1ms"}).err, "");
  const Outcome late = shardscope({"inspect", trace, "--at", "100s"});
  EXPECT_EQ(late.exit_code, 0);
  EXPECT_THAT(late.err, testing::HasSubstr("is after the end: the trace lasts "));
}

TEST(Inspect, SaysWhatGpusAreHereOrWhatIsMissing) {
  const Outcome outcome = shardscope({"inspect", "--device", "cuda", "--json"});
  if (outcome.exit_code == 0) {  // a machine with a GPU
    const json j = json_of(outcome);
    for (const char* key : {"driver_cuda", "runtime_cuda"}) EXPECT_TRUE(j.contains(key)) << key;
    EXPECT_TRUE(j.at("devices").at(0).contains("name") && j.at("devices").at(0).contains("free_bytes"));
    EXPECT_TRUE(j.at("libraries").at(0).contains("name"));
    return;
  }
  EXPECT_EQ(json_of(outcome, 69)["error"]["code"], "unavailable");
  // Without nvcc, without a driver, or with one but no GPU.
  EXPECT_THAT(outcome.err, testing::AnyOf(HasSubstr("this build has no part for GPUs"), HasSubstr("needs driver "),
                                          HasSubstr("no GPU that CUDA can use")));
  EXPECT_THAT(outcome.err, HasSubstr("\n  try: "));
  const Outcome help = shardscope({"inspect", "--device", "cuda", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("says what GPUs are here"));
}

}  // namespace
}  // namespace shard::test
