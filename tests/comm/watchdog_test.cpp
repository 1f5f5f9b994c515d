// When does a job's parent give up, and whom does it name? Times are told, none passes.
#include "executor/launch/watchdog.h"

#include <gtest/gtest.h>

namespace shard {
namespace {

using std::chrono::milliseconds;

class WatchdogTest : public testing::Test {
 protected:
  void beat(int rank, RunPlace place, const std::string& blocking = "") {
    watchdog_.heard({Rank{rank}, place, blocking}, now_);
  }
  /// As the parent's loop does.
  std::string after(milliseconds time) {
    for (const milliseconds step{50}; time > milliseconds{0}; time -= step) {
      now_ += step;
      for (const int rank : beating_) watchdog_.heard({Rank{rank}, place_, blocking_}, now_);
      if (const std::optional<Error> error = watchdog_.overdue(now_)) return to_string(*error);
    }
    return "";
  }

  Watchdog::Time now_{};
  Watchdog watchdog_{3, milliseconds{1000}, now_};
  std::vector<int> beating_;
  RunPlace place_{RunPart::step, 12};
  std::string blocking_;
};

TEST_F(WatchdogTest, NobodyComes) {
  EXPECT_EQ(after(milliseconds{1000}), "");
  EXPECT_EQ(after(milliseconds{1000}).substr(0, 50), "start: ranks 0, 1, 2 have not come within 1 s\n  tr");
}

TEST_F(WatchdogTest, OneDoesNotComeAndTheOthersWaitForIt) {
  beating_ = {0, 2};
  place_ = {RunPart::joining};
  blocking_ = "MPI_Init_thread";
  EXPECT_EQ(after(milliseconds{2000}).substr(0, 35), "start: rank 1 has not come within 1");
}

TEST_F(WatchdogTest, ALongStepIsNoFault) {
  beating_ = {0, 1, 2};
  EXPECT_EQ(after(milliseconds{100'000}), "");
}

/// The thread that sends beats may begin before the run has said where it is.
TEST_F(WatchdogTest, ABeatThatKnowsNoPlaceLeavesARankWhereItWas) {
  beat(0, {RunPart::start});
  beat(0, {});
  EXPECT_EQ(watchdog_.place_of(Rank{0}), (RunPlace{RunPart::start}));
}

TEST_F(WatchdogTest, ARankFallsSilent) {
  beating_ = {0, 1, 2};
  EXPECT_EQ(after(milliseconds{5000}), "");
  beating_ = {0, 1};
  EXPECT_EQ(after(milliseconds{450}), "");
  EXPECT_TRUE(watchdog_.silent(now_).empty());
  EXPECT_EQ(after(milliseconds{550}), "");
  EXPECT_EQ(watchdog_.silent(now_), std::vector{Rank{2}});
  EXPECT_EQ(after(milliseconds{1000}).substr(0, 49), "step 12: rank 2 has not been heard of within 1 s\n");
}

TEST_F(WatchdogTest, ARankThatHasEndedMayBeSilent) {
  beating_ = {0, 1};
  beat(2, {RunPart::end});
  watchdog_.ended(Rank{2});
  EXPECT_EQ(after(milliseconds{100'000}), "");
}

TEST_F(WatchdogTest, ACallDoesNotReturn) {
  beating_ = {0, 1, 2};
  place_ = {RunPart::arenas};
  blocking_ = "MPI_Win_allocate_shared";
  EXPECT_EQ(after(milliseconds{2000}).substr(0, 83),
            "making arenas: ranks 0, 1, 2 have not come out of MPI_Win_allocate_shared within 1 ");
}

TEST_F(WatchdogTest, AParentThatWasStoppedItselfBlamesNobody) {
  beating_ = {0, 1, 2};
  EXPECT_EQ(after(milliseconds{500}), "");
  now_ += milliseconds{60'000};
  EXPECT_EQ(watchdog_.overdue(now_), std::nullopt);
  EXPECT_EQ(after(milliseconds{5000}), "");
}

}  // namespace
}  // namespace shard
