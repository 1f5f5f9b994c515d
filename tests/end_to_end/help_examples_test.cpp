// Do the examples that --help gives run as they stand?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/end_to_end/command_lines.h"
#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

class HelpExamples : public testing::TestWithParam<std::string> {};

TEST_P(HelpExamples, Run) {
  const Outcome help = shardscope({GetParam(), "--help"});
  const std::size_t begin = help.out.find("Examples:\n");
  ASSERT_NE(begin, std::string::npos);
  const std::vector<CommandLine> lines = command_lines(help.out.substr(begin));
  ASSERT_GE(lines.size(), 2u);
  const ScratchDirectory scratch;
  make_inputs(scratch);
  for (const CommandLine& line : lines) {
    const Outcome outcome = run_line(line, scratch);
    EXPECT_EQ(outcome.exit_code, line.exit_code) << line.text << "\n" << outcome.err;
  }
}

INSTANTIATE_TEST_SUITE_P(All, HelpExamples,
                         testing::Values("search", "simulate", "sweep", "plan", "compare", "inspect", "convert",
                                         "completion", "man"
#ifdef WITH_RANKS
                                         ,
                                         "train", "verify"
#endif
                                         ),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace shard::test
