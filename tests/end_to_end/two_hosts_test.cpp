// Do ranks on two hosts, which are network namespaces of this machine, train to the bits of one, and is a cut link
// said?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <regex>
#include <string>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using testing::HasSubstr;

class TwoHosts : public testing::Test {
 protected:
  /// Of the example, whose namespaces it makes and removes.
  [[nodiscard]] Outcome run_example(const Words& more) {
    Words command{(std::filesystem::path(TEST_DATA).parent_path() / "examples/two_hosts/run.sh").string()};
    command.insert(command.end(), more.begin(), more.end());
    return run(command, {.environment = {{"PATH", programs_directory() + ":" + std::getenv("PATH")}}});
  }
  /// Of namespaces those that a run has left: their names have the process that made them, and it has ended. Another
  /// test's may be there meanwhile.
  static std::string left() {
    return run({"/bin/sh", "-c",
                "ip netns list 2>/dev/null | sed -n 's/^\\(shs\\([0-9]*\\)-[0-9]*\\).*/\\1 \\2/p' | while read name "
                "maker; "
                "do kill -0 $maker 2>/dev/null || echo $name; done"})
        .out;
  }
};

TEST_F(TwoHosts, TrainToTheBitsOfOne) {
  const std::string before = left();
  const Outcome outcome = run_example({});
  if (outcome.exit_code == 69) GTEST_SKIP() << outcome.err;
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("ranks     4 by torchrun, this is rank 0, local rank 0, over tcp\n"));
  EXPECT_THAT(outcome.out, HasSubstr("ranks     4 by mpirun, this is rank 0, local rank 0, over mpi-messages\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\nall the same\n"));
  EXPECT_EQ(left(), before);
}

// Three seconds, and five until mpirun is ended; the rest is for a busy machine to start.
TEST_F(TwoHosts, SayThatTheLinkIsCut) {
  const std::string before = left();
  const Outcome outcome = run_example({"cut"});
  if (outcome.exit_code == 69) GTEST_SKIP() << outcome.err;
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("exit codes: 75 75 75 75\n")) << "by torchrun's variables";
  EXPECT_THAT(outcome.out, HasSubstr("exit codes: 75\n")) << "under mpirun";
  EXPECT_THAT(outcome.out, HasSubstr(" not arrived within 3 s"));
  for (const char* rank : {"0", "1", "2", "3"})
    EXPECT_TRUE(std::regex_search(outcome.out, std::regex("shardscope: step [0-9]+, rank " + std::string(rank) + " ")))
        << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("launch.sh: a rank has ended with 75, and mpirun waits for a host"));
  EXPECT_EQ(left(), before);
}

}  // namespace
}  // namespace shard::test
