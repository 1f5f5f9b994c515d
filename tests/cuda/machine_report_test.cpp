// Is what there is of GPUs said in text and JSON, and what is not known as such?
#include "executor/commands/machine_report.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace shard::cuda {
namespace {

using testing::HasSubstr;

/// An H200 that somebody uses, and one of which nothing is known.
MachineReport two_devices() {
  MachineReport report{.driver = "580.65.06", .cuda = 13000, .runtime = 13000, .users_unknown = "no right to ask"};
  report.devices = {
      {.facts = {.name = "NVIDIA H200", .compute_capability = 90, .multiprocessors = 132},
       .bus = "0000:3B:00.0",
       .memory = {Bytes{3 << 20}, Bytes{64 << 20}},
       .users = std::vector<DeviceUser>{{.pid = 17, .name = "python", .memory = Bytes{1 << 20}}, {.pid = 18}}},
      {.facts = {.name = "other", .compute_capability = 100}}};
  report.libraries = {{.name = "cuBLASLt", .version = "13.1.0", .path = "/lib/libcublasLt.so.13"},
                      {.name = "NCCL", .missing = "libnccl.so.2 was not found"}};
  return report;
}

TEST(MachineReport, SaysWhatIsKnown) {
  const std::string text = commands::to_text(two_devices());
  EXPECT_THAT(text, HasSubstr("NVIDIA driver 580.65.06, which runs CUDA 13.0; built with CUDA 13.0\n"));
  EXPECT_THAT(text, HasSubstr("GPU 0 is used by\n  process 17 (python) with 1.0 MiB\n  process 18 with memory that is "
                              "not known\nGPU 1: who uses it is not known: no right to ask\n"));
  EXPECT_THAT(text, HasSubstr("NCCL      none     libnccl.so.2 was not found\n"));
  MachineReport alone = two_devices();
  alone.devices.resize(1);
  alone.devices[0].users->clear();
  EXPECT_THAT(commands::to_text(alone), HasSubstr("GPU 0 is used by nobody else\n"));
}

TEST(MachineReport, HasTheSameInJsonWithNullForTheUnknown) {
  const nlohmann::ordered_json j = commands::to_json(two_devices());
  EXPECT_EQ(j["command"], "inspect");
  EXPECT_EQ(j["driver_cuda"], "13.0");
  const auto& first = j["devices"][0];
  EXPECT_EQ(first["compute_capability"], "9.0");
  EXPECT_EQ(first["memory_bytes"], 64 << 20);
  EXPECT_EQ(first["free_bytes"], 3 << 20);
  EXPECT_EQ(first["users"][0], (nlohmann::ordered_json{{"pid", 17}, {"name", "python"}, {"memory_bytes", 1 << 20}}));
  EXPECT_TRUE(first["users"][1]["memory_bytes"].is_null());
  EXPECT_TRUE(j["devices"][1]["users"].is_null());
  EXPECT_EQ(j["devices"][1]["compute_capability"], "10.0");
  EXPECT_EQ(j["users_unknown"], "no right to ask");
  EXPECT_EQ(j["libraries"][0]["version"], "13.1.0");
  EXPECT_TRUE(j["libraries"][1]["version"].is_null());
}

}  // namespace
}  // namespace shard::cuda
