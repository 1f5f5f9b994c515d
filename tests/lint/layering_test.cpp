// Do includes point down the list of layers only, and do foreign headers stay where they belong?
#include "tests/lint/layering.h"

#include <gtest/gtest.h>

namespace shard::lint {
namespace {

TEST(Layering, IncludesPointDownOnly) {
  const auto files = files_under(code_folders(), {".h", ".cpp", ".cu", ".cuh"});
  ASSERT_GT(files.size(), 20u);
  for (const SourceFile& file : files) {
    for (const std::string& fault : layering_faults(file)) ADD_FAILURE() << fault;
  }
}

std::vector<std::string> faults_of(const std::string& path, const std::string& line) {
  return layering_faults({path, "// x\n" + line + "\n"});
}

TEST(Layering, TheCheckKnowsUpFromDown) {
  EXPECT_EQ(faults_of("sim/ir/op.h", "#include \"sim/chunk/layout.h\""), std::vector<std::string>{});
  EXPECT_EQ(faults_of("sim/chunk/layout.h", "#include \"sim/ir/op.h\""),
            std::vector<std::string>{"sim/chunk/layout.h:2: may not include sim/ir/op.h (that is not below it)"});
  EXPECT_EQ(faults_of("sim/ir/op.h", "#include \"op.h\"").size(), 1u);
  EXPECT_EQ(faults_of("sim/compile/passes/shard.cpp", "#include \"sim/ir/op.h\"").size(), 0u);
  EXPECT_EQ(faults_of("sim/engine/engine.cpp", "#include \"executor/comm/communicator.h\"").size(), 1u);
}

TEST(Layering, OnlyMainKnowsSimulatorAndExecutor) {
  const std::string line = "#include \"sim/engine/engine.h\"";
  EXPECT_EQ(faults_of("executor/main_train.cpp", line).size(), 0u);
  EXPECT_EQ(faults_of("executor/cpu/backend.cpp", line).size(), 1u);
  EXPECT_EQ(faults_of("executor/launch.cpp", line).size(), 1u);
}

TEST(Layering, ForeignHeadersStayWhereTheyBelong) {
  EXPECT_EQ(faults_of("executor/cpu/x.cpp", "#include <cuda_runtime.h>").size(), 1u);
  EXPECT_EQ(faults_of("executor/cuda/x.cu", "#include <cuda_runtime.h>").size(), 0u);
  EXPECT_EQ(faults_of("sim/cli/x.cpp", "#include <ranges>").size(), 1u);
  EXPECT_EQ(faults_of("viewer/index/lod.cpp", "#include \"imgui.h\"").size(), 1u);
  EXPECT_EQ(faults_of("viewer/ui/timeline.cpp", "#include \"imgui.h\"").size(), 0u);
  EXPECT_EQ(faults_of("sim/ir/x.cpp", "#include <chrono>").size(), 1u);
  EXPECT_EQ(faults_of("sim/engine/x.cpp", "#include <mpi.h>").size(), 1u);
  EXPECT_EQ(faults_of("sim/ir/x.cpp", "// #include <chrono>").size(), 0u);
  EXPECT_EQ(faults_of("util/x.h", "").size(), 1u);
}

}  // namespace
}  // namespace shard::lint
