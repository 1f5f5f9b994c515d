// A PyTorch that is as small as can be, for dry runs of programs that use it.
#pragma once

#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/end_to_end/program.h"

namespace shard::test {

/// A folder with a PyTorch that is as small as can be, and a program that uses it.
class FakePyTorch : public ::testing::Test {
 protected:
  FakePyTorch() {
    std::filesystem::copy(std::filesystem::path(TEST_DATA) / "dryrun" / "fake_torch", scratch_.path() / "packages",
                          std::filesystem::copy_options::recursive);
    std::filesystem::create_directories(scratch_.path() / "packages" / "torch" / "lib");
    std::filesystem::copy_file(USES_CUDA, scratch_.path() / "packages" / "torch" / "lib" / "libuses_cuda.so");
  }

  /// Runs the lines as a Python program.
  Outcome dryrun(const std::string& program, Words options = {"--json"}) {
    scratch_.write("program.py", program);
    options.insert(options.begin(), "dryrun");
    for (const char* word : {"--", "python3", "program.py"}) options.emplace_back(word);
    return shardscope(options, {.directory = scratch_.path(), .environment = environment()});
  }
  /// Runs `dryrun` with these words, a recipe's say.
  Outcome recipe(Words options) {
    options.insert(options.begin(), "dryrun");
    return shardscope(options, {.directory = scratch_.path(), .environment = environment()});
  }

  struct Refusal {
    Words words;
    int exit_code;
    const char* says;
  };
  void expect_refused(const std::vector<Refusal>& refusals) {
    for (const Refusal& each : refusals) {
      const Outcome outcome = recipe(each.words);
      EXPECT_EQ(outcome.exit_code, each.exit_code) << ::testing::PrintToString(each.words) << outcome.err;
      EXPECT_THAT(outcome.err, ::testing::HasSubstr(each.says)) << ::testing::PrintToString(each.words);
    }
  }
  [[nodiscard]] std::map<std::string, std::string> environment() const {
    std::map<std::string, std::string> variables{
        {"PYTHONPATH", scratch_.path() / "packages"}, {"PYTHONDONTWRITEBYTECODE", "1"}, {"PLACE", scratch_.path()}};
    variables.insert(more_environment_.begin(), more_environment_.end());
    return variables;
  }

  ScratchDirectory scratch_;
  std::map<std::string, std::string> more_environment_;
};

}  // namespace shard::test
