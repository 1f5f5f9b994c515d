// Runs a command of the viewer within the test, and reads what it wrote.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace shard::view {

struct Ran {
  int code = 0;
  std::string out, err;
};

inline Ran run(int (*command)(std::span<const std::string>), const std::vector<std::string>& arguments) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Ran ran;
  ran.code = command(arguments);
  ran.out = testing::internal::GetCapturedStdout();
  ran.err = testing::internal::GetCapturedStderr();
  return ran;
}

inline std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace shard::view
