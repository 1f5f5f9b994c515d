// Mistakes of users, by what they are about: each is a row in a table, its test in bad_input_test.cpp.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "tests/end_to_end/program.h"

namespace shard::test {

struct Mistake {
  std::string name;
  Words arguments;
  int exit_code;
  Words words;  ///< each must be in the message
};

inline void PrintTo(const Mistake& mistake, std::ostream* out) {
  *out << mistake.name;
}

/// Runs in a folder that holds what the rows name.
class BadInput : public testing::TestWithParam<Mistake> {};

inline std::string name_of(const testing::TestParamInfo<Mistake>& info) {
  return info.param.name;
}

inline Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Simulates a small model.
inline Words nano(const Words& more) {
  return with({"simulate", "--model", "gpt2-nano"}, more);
}

}  // namespace shard::test
