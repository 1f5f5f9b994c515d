// Is what the stand-in writes read as it was meant?
#include "profiler/steptime/work_list.h"

#include <gmock/gmock.h>

namespace shard::steptime {
namespace {

using ::testing::HasSubstr;

const std::string kBegin = std::string(standin::kWorkHeader) + "\n";

TEST(WorkList, HasEachLinesNumbersAndNamesOnce) {
  const auto list = parse_work(kBegin + "k\t100\t7\t0\t1234\t4\t2\t1\t128\t1\t1\tvoid f<a, b>(int)\n" +
                                   "k\t105\t7\t3\t1234\t5\t1\t1\t64\t1\t1\tvoid f<a, b>(int)\n" +
                                   "k\t106\t7\t3\t1234\t5\t1\t1\t64\t1\t1\t\n" + "w\t-5\t8\t0\t9\t77\n",
                               "here");
  ASSERT_TRUE(list) << list.error().what;
  ASSERT_EQ(list->items.size(), 4u);
  EXPECT_EQ(list->items[0].numbers, (std::array<std::int64_t, 8>{4, 2, 1, 128, 1, 1, 0, 0}));
  EXPECT_EQ(list->items[0].stream, 1234);
  EXPECT_EQ(list->items[1].capture, 3);
  EXPECT_EQ(list->name_of(list->items[0]), "void f<a, b>(int)");
  EXPECT_EQ(list->items[0].name, list->items[1].name);
  EXPECT_EQ(list->name_of(list->items[2]), "");
  EXPECT_EQ(list->items[3].kind, Work::wait);
  EXPECT_EQ(list->items[3].numbers[0], 77);
  EXPECT_EQ(list->names.size(), 2u);
}

TEST(WorkList, LeavesOutALineThatIsCutShort) {
  const auto list = parse_work(kBegin + "f\t1\t7\t0\t0\t16\nf\t2\t7\t0", "here");
  ASSERT_TRUE(list);
  EXPECT_EQ(list->items.size(), 1u);
}

TEST(WorkList, RefusesWhatItIsNotWithTheLine) {
  for (const char* const text : {"", "another file\n", "shardscope work 2\n"}) EXPECT_FALSE(parse_work(text, "here"));
  for (const char* const line : {"x\t1\t7\t0\t0", "f\t1\t7\t0\t0", "f\t1\t7\t0\t0\t16\t17", "f\t1\tseven\t0\t0\t16",
                                 "k\t1", "f 1 7 0 0 16", "f\t99999999999999999999\t7\t0\t0\t16"}) {
    const auto list = parse_work(kBegin + "f\t1\t7\t0\t0\t16\n" + line + "\n", "here");
    ASSERT_FALSE(list) << line;
    EXPECT_EQ(list.error().code, Errc::malformed);
    EXPECT_THAT(list.error().where, HasSubstr("here:3")) << line;
  }
}

}  // namespace
}  // namespace shard::steptime
