// Does an installed package build programs of other projects, and do they train as `shardscope train` does?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// Configures and builds the project in `source` against the package in `prefix`; its build folder.
void build(const fs::path& source, const fs::path& prefix, const fs::path& folder) {
  Words configure{CMAKE, "-G", "Ninja", "-S", source.string(), "-B", folder.string()};
  for (const std::string& setting : {"CMAKE_PREFIX_PATH=" + prefix.string(), std::string("CMAKE_BUILD_TYPE=Release"),
                                     std::string("CMAKE_CXX_COMPILER=" CXX), std::string("CMAKE_CXX_FLAGS=" FLAGS)})
    configure.push_back("-D" + setting);
  const Outcome configured = run(configure);
  ASSERT_EQ(configured.exit_code, 0) << configured.out << configured.err;
  const Outcome built = run({CMAKE, "--build", folder.string()});
  ASSERT_EQ(built.exit_code, 0) << built.out << built.err;
}

fs::path root() {
  return fs::path(TEST_DATA).parent_path();
}

std::string line(const char* form, double value) {
  char text[64];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

TEST(Package, BuildsProgramsThatTrainAsTheCommandDoes) {
  const ScratchDirectory scratch;
  const fs::path prefix = scratch.path() / "prefix";
  const Outcome installed = run({CMAKE, "--install", BUILD, "--prefix", prefix.string()});
  ASSERT_EQ(installed.exit_code, 0) << installed.err;

  build(root() / "tests/api/program", prefix, scratch.path() / "program");
  const Outcome trained = run({scratch.file("program/two_steps")});
  EXPECT_EQ(trained.exit_code, 0);
  EXPECT_EQ(trained.err, "");
  // One rank in the place of two: the bits are the same.
  const nlohmann::json expected = json_of(shardscope({"train", "--model", "gpt2-nano", "--data", "random", "--sequence",
                                                      "32", "--global-batch", "2", "--steps", "2", "--json"}));
  std::string lines;
  for (const auto& step : expected.at("steps")) lines += line("loss %.9g\n", step.at("loss").get<double>());
  EXPECT_EQ(trained.out, lines + "state " + expected.at("state_sha256").get<std::string>() + "\n");

  build(root() / "examples/07_gpt2_medium/own_loop", prefix, scratch.path() / "example");
  const Outcome example = run({scratch.file("example/own_loop"), "16", "2"});
  EXPECT_EQ(example.exit_code, 0) << example.err;
  for (const char* said : {"After init model, GPU memory usage: ", "After init optim, GPU memory usage: ",
                           "Forward [1/2] GPU memory usage: ", "Backward [2/2] GPU memory usage: ",
                           "Optimizer step [2/2] GPU memory usage: ", "TFLOPS: ", "predicted to the byte: yes"})
    EXPECT_THAT(example.out, HasSubstr(said));
}

}  // namespace
}  // namespace shard::test
