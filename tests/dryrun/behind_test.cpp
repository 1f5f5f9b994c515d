// When does the stand-in GPU say that it is done?
#include "profiler/standin/behind.h"

#include <gtest/gtest.h>

namespace shard::standin {
namespace {

constexpr int kEvent = 1, kOther = 2;

TEST(Behind, AnEventIsOverAtOnceUnlessAsked) {
  Behind behind(0);
  behind.record(&kEvent);
  EXPECT_TRUE(behind.is_over(&kEvent));
}

TEST(Behind, AnEventIsOverSoManyLaunchesAfterIt) {
  Behind behind(2);
  behind.record(&kEvent);
  behind.launch();
  behind.record(&kOther);
  EXPECT_FALSE(behind.is_over(&kEvent));
  behind.launch();
  EXPECT_TRUE(behind.is_over(&kEvent));
  EXPECT_FALSE(behind.is_over(&kOther));
}

TEST(Behind, AnEventThatIsRecordedAgainStartsAnew) {
  Behind behind(1);
  behind.record(&kEvent);
  behind.launch();
  behind.record(&kEvent);
  EXPECT_FALSE(behind.is_over(&kEvent));
}

TEST(Behind, WhoWaitsSeesAllOver) {
  Behind behind(Behind::kUntilWaited);
  behind.record(&kEvent);
  for (int i = 0; i < 100; ++i) behind.launch();
  EXPECT_FALSE(behind.is_over(&kEvent));
  behind.wait();
  EXPECT_TRUE(behind.is_over(&kEvent));
}

TEST(Behind, WhoAsksWithoutEndGetsOn) {
  Behind behind(Behind::kUntilWaited);
  behind.record(&kEvent);
  int asked = 0;
  while (!behind.is_over(&kEvent)) ASSERT_LE(++asked, Behind::kPatience);
}

TEST(Behind, AnEventThatNobodyRecordedIsOver) {
  Behind behind(Behind::kUntilWaited);
  behind.record(&kEvent);
  behind.forget(&kEvent);
  EXPECT_TRUE(behind.is_over(&kEvent));
}

}  // namespace
}  // namespace shard::standin
