// Do our own loops give the same bits whatever instruction set they are compiled for?
#include "tests/agreement/loops.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <set>
#include <string>

namespace shard {
namespace {

std::string printed_by(const std::string& program) {
  std::string text;
  FILE* const out = popen(program.c_str(), "r");
  if (out == nullptr) return text;
  char part[4096];
  while (const std::size_t n = std::fread(part, 1, sizeof part, out)) text.append(part, n);
  EXPECT_EQ(pclose(out), 0) << program;
  return text;
}

// The library's clones, of which the loader took the processor's, against builds for one set each.
TEST(Loops, HaveTheSameBitsInEveryInstructionSet) {
  std::string own;
  std::set<std::string> distinct;
  for (const auto& [name, digest] : loop_digests()) {
    own += name + ": " + digest + '\n';
    EXPECT_EQ(digest.size(), 64u) << name << ": " << digest;
    distinct.insert(digest);
  }
  EXPECT_EQ(distinct.size(), 12u);
  EXPECT_EQ(printed_by(LOOPS_BASELINE), own);
  if (__builtin_cpu_supports("avx2")) {
    EXPECT_EQ(printed_by(LOOPS_AVX2), own);
  }
}

}  // namespace
}  // namespace shard
