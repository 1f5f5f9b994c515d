// Is the matrix library held to what was asked, and a set that is not to be had refused?
#include "executor/cpu/kernels/instruction_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace shard::cpu::test {
namespace {

using testing::HasSubstr;

// One test, since a process settles once. To the library this processor has nothing beyond AVX.
TEST(InstructionSet, IsWhatTheLibraryReallyUsesAndStays) {
  ASSERT_EQ(setenv("ONEDNN_MAX_CPU_ISA", "AVX", 1), 0);
  const Result<InstructionSet> own = use_instruction_set(std::nullopt);
  ASSERT_TRUE(own);
#ifdef __x86_64__
  EXPECT_EQ(*own, InstructionSet::avx);
#endif
  for (const InstructionSet absent : {InstructionSet::avx2, InstructionSet::avx512}) {
    const Result<InstructionSet> refused = use_instruction_set(absent);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::unavailable);
    EXPECT_THAT(refused.error().what, HasSubstr(std::string("cannot compute with ") + to_string(absent)));
    EXPECT_THAT(refused.error().what, HasSubstr(std::string("it uses ") + to_string(*own)));
    EXPECT_EQ(refused.error().where, "--instruction-set");
  }
  EXPECT_EQ(use_instruction_set(std::nullopt).value(), *own);
  EXPECT_EQ(use_instruction_set(*own).value(), *own);
  EXPECT_THAT(matrix_library(), testing::MatchesRegex("oneDNN [0-9]+\\.[0-9]+\\.[0-9]+"));
}

}  // namespace
}  // namespace shard::cpu::test
