// A PyTorch that is as small as can be, for dry runs of programs that use it.
#pragma once

#include <filesystem>
#include <map>
#include <string>

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
