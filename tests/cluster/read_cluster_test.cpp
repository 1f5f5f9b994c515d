// Are the examples readable, and does every wrong description name its place and the smallest help?
#include "sim/cluster/read_cluster.h"
#include "sim/cluster/write_cluster.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/cluster/examples.h"

namespace shard::cluster {
namespace {

nlohmann::json good() {
  return nlohmann::json::parse(example_clusters().front().json);
}

Error fault_of(const nlohmann::json& json) {
  const Result<Cluster> c = parse_cluster(json.dump(), "f.json");
  EXPECT_FALSE(c);
  return c ? Error{} : c.error();
}

TEST(Examples, AllAreReadByName) {
  std::vector<std::string> names;
  for (const ExampleCluster& e : example_clusters()) {
    const Result<Cluster> c = read_cluster(e.name);
    ASSERT_TRUE(c) << to_string(c.error());
    EXPECT_EQ(c->name, e.name);
    EXPECT_FALSE(c->source.empty());
    names.push_back(c->name);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"a100-40gb-x8", "a100-80gb-x8", "a800-80gb-x8", "b200-180gb-x8", "cpu-local",
                                      "gb200-186gb-x4", "gb300-279gb-x4", "h100-80gb-pcie-x8", "h100-80gb-x8",
                                      "h200-141gb-x1", "h200-141gb-x8", "l4-24gb-x8", "l40s-48gb-x8", "rtx3090-24gb-x1",
                                      "rtx4090-24gb-x1", "t4-16gb-x4", "v100-16gb-x8", "v100-32gb-x8"}));
}

TEST(Examples, EveryGpuHasLawsOfKernels) {
  for (const ExampleCluster& e : example_clusters()) {
    const Result<Cluster> c = read_cluster(e.name);
    ASSERT_TRUE(c);
    EXPECT_EQ(c->kernel_laws.has_value(), c->device == DeviceKind::cuda) << e.name;
    if (!c->kernel_laws) continue;
    EXPECT_FALSE(c->kernel_laws->source.empty()) << e.name;
    EXPECT_GT(c->kernel_laws->spread, 0) << e.name;
    const Result<Cluster> again = parse_cluster(to_json(*c), "again");
    ASSERT_TRUE(again) << to_string(again.error());
    EXPECT_EQ(to_json(*again), to_json(*c)) << e.name;
  }
}

// A host of another number of the same devices.
TEST(Examples, TheNumberOfDevicesIsFree) {
  const Result<Cluster> four = read_cluster("a100-80gb-x4");
  ASSERT_TRUE(four) << to_string(four.error());
  EXPECT_EQ(four->name, "a100-80gb-x4");
  EXPECT_EQ(four->devices_per_host, 4);
  EXPECT_EQ(four->device_memory, read_cluster("a100-80gb-x8")->device_memory);
  EXPECT_EQ(read_cluster("rtx4090-24gb-x2")->devices_per_host, 2);
  for (const char* none : {"a100-80gb-x0", "a100-80gb-x", "a100-80gb-x4.5", "a100-80gb-x999999", "a100-81gb-x4"})
    EXPECT_FALSE(read_cluster(none)) << none;
}

TEST(Examples, EveryGpuSaysWhichCardItIs) {
  for (const ExampleCluster& e : example_clusters()) {
    const Result<Cluster> c = read_cluster(e.name);
    ASSERT_TRUE(c);
    EXPECT_EQ(c->card.has_value(), c->device == DeviceKind::cuda) << e.name;
    if (!c->card) continue;
    // Cards of one compute capability have as many threads on a multiprocessor (CUDA C++ Programming Guide).
    const std::map<int, int> threads = {{70, 2048}, {75, 1024}, {80, 2048},  {86, 1536},
                                        {89, 1536}, {90, 2048}, {100, 2048}, {103, 2048}};
    ASSERT_TRUE(threads.contains(c->card->compute_capability)) << e.name;
    EXPECT_EQ(c->card->threads_per_multiprocessor, threads.at(c->card->compute_capability)) << e.name;
    // Sold as so many GB, and not less than nine tenths of it in GiB.
    const std::string name = c->name;
    const double sold = std::stod(name.substr(name.find('-') + 1));
    EXPECT_LT(c->device_memory->count(), sold * (1 << 30)) << name;
    EXPECT_GT(c->device_memory->count(), 0.9 * sold * (1 << 30)) << name;
  }
}

TEST(Examples, A100HasTheFiguresOfItsDataSheet) {
  const Result<Cluster> c = read_cluster("a100-40gb-x8");
  ASSERT_TRUE(c);
  EXPECT_EQ(c->devices_per_host, 8);
  EXPECT_EQ(c->peak_fp32.count(), 19.5e12);
  ASSERT_TRUE(c->peak_tf32 && c->peak_bf16 && c->peak_fp16);
  EXPECT_EQ(c->peak_tf32->count(), 156e12);
  EXPECT_EQ(c->peak_bf16->count(), 312e12);
  EXPECT_EQ(c->peak_fp16->count(), 312e12);
  EXPECT_EQ(c->memory_bandwidth.count(), 1555e9);
  EXPECT_EQ(c->device_memory, Bytes{42'412'802'048});
  EXPECT_EQ(c->intra_host.bus_bandwidth.count(), 12 * 20e9);
  EXPECT_EQ(c->hosts, std::nullopt);
}

TEST(Examples, CpuLocalSetsNoLimitAndIsShared) {
  const Result<Cluster> c = read_cluster("cpu-local");
  ASSERT_TRUE(c);
  EXPECT_EQ(c->device, DeviceKind::cpu);
  EXPECT_EQ(c->device_memory, std::nullopt);
  EXPECT_EQ(c->cores, 2);
  EXPECT_TRUE(check_ranks(*c, 64));
}

TEST(ReadCluster, AnUnknownNameGetsTheClosestMatch) {
  const Result<Cluster> c = read_cluster("a100-40gbx8");
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().code, Errc::usage);
  EXPECT_NE(c.error().help.find("did you mean 'a100-40gb-x8'"), std::string::npos) << c.error().help;
}

TEST(ReadCluster, AnAbsentFileIsNoInput) {
  for (const char* path : {"/nowhere/cluster.json", "absent.json", "./a100-40gb-x8", "."}) {
    const Result<Cluster> c = read_cluster(path);
    ASSERT_FALSE(c);
    EXPECT_EQ(c.error().code, Errc::no_input) << path;
  }
}

TEST(ReadCluster, ReadsAFile) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "read_cluster_test.json";
  nlohmann::json json = good();
  json["name"] = "mine";
  json["hosts"] = 2;
  std::ofstream(path) << json;
  const Result<Cluster> c = read_cluster(path.string());
  std::filesystem::remove(path);
  ASSERT_TRUE(c) << to_string(c.error());
  EXPECT_EQ(c->name, "mine");
  EXPECT_EQ(c->hosts, 2);
}

TEST(ParseCluster, TextThatIsNotJsonIsMalformed) {
  for (const char* text : {"", "{", "{\"a\": }", "[1, 2", "{\"devices_per_host\": 1e999}"}) {
    const Result<Cluster> c = parse_cluster(text, "f.json");
    ASSERT_FALSE(c) << text;
    EXPECT_EQ(c.error().code, Errc::malformed) << text;
    EXPECT_EQ(c.error().where, "f.json") << text;
  }
}

TEST(ParseCluster, EveryMissingKeyIsNamed) {
  for (const char* key : {"schema_version", "name", "device", "devices_per_host", "memory_bandwidth_bytes_per_second",
                          "memory_efficiency", "peak_fp32_flops_per_second", "matrix_efficiency",
                          "attention_efficiency", "launch_seconds", "intra_host_link", "host_link"}) {
    nlohmann::json json = good();
    json.erase(key);
    const Error e = fault_of(json);
    EXPECT_EQ(e.where, std::string("f.json#/") + key);
    EXPECT_EQ(e.code, Errc::malformed);
  }
}

TEST(ParseCluster, WrongValuesAreNamedByPointer) {
  struct Case {
    const char* pointer;
    nlohmann::json value;
  };
  for (const Case& c : std::vector<Case>{{"/devices_per_host", 0},
                                         {"/devices_per_host", 1.5},
                                         {"/devices_per_host", "8"},
                                         {"/hosts", -1},
                                         {"/device", "gpu"},
                                         {"/device_memory_bytes", 1e30},
                                         {"/memory_efficiency", 1.5},
                                         {"/matrix_efficiency", 0},
                                         {"/peak_fp32_flops_per_second", nullptr},
                                         {"/peak_bf16_flops_per_second", 0},
                                         {"/peak_tf32_flops_per_second", "fast"},
                                         {"/launch_seconds", -1},
                                         {"/name", 7},
                                         {"/ranks_share_device", 1},
                                         {"/intra_host_link", 3},
                                         {"/intra_host_link/latency_seconds", "fast"},
                                         {"/inter_host_link/bus_bandwidth_bytes_per_second", 0}}) {
    nlohmann::json json = good();
    json[nlohmann::json::json_pointer(c.pointer)] = c.value;
    const Error e = fault_of(json);
    EXPECT_EQ(e.where, std::string("f.json#") + c.pointer) << c.value;
    EXPECT_EQ(e.code, Errc::malformed);
  }
}

TEST(ParseCluster, AMisspelledKeyIsRefusedWithTheRightOne) {
  nlohmann::json json = good();
  json["device_memory_byte"] = 1;
  const Error e = fault_of(json);
  EXPECT_EQ(e.where, "f.json#/device_memory_byte");
  EXPECT_NE(e.help.find("device_memory_bytes"), std::string::npos);
}

TEST(ParseCluster, ANewerSchemaIsAContradiction) {
  nlohmann::json json = good();
  json["schema_version"] = 2;
  EXPECT_EQ(fault_of(json).code, Errc::contradiction);
}

}  // namespace
}  // namespace shard::cluster
