// Are recordings of one run put where their clocks say, and is said what they do not say?
#include "traces/import/combine.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/trace_import/files.h"
#include "traces/profile.h"

namespace shard {
namespace {

using files::loaded;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A kernel of 5 us and an allocation, `at_us` after the base.
std::string profile_of(int rank, int device, int at_us,
                       const std::string& base = R"("baseTimeNanoseconds":1000000000,)") {
  const std::string at = std::to_string(at_us), gpu = std::to_string(device);
  return "{" + base + R"("distributedInfo":{"rank":)" + std::to_string(rank) + R"(,"world_size":8},"traceEvents":[
  {"ph":"X","cat":"kernel","name":"gemm","pid":)" +
         gpu + R"(,"tid":7,"ts":)" + at + R"(,"dur":5,"args":{"device":)" + gpu +
         R"(,"stream":7}},
  {"ph":"i","name":"[memory]","pid":9,"tid":1,"ts":)" +
         at + R"(,"args":{"Bytes":512,"Addr":4096,"Device Type":1,"Device Id":)" + gpu +
         R"(,"Total Allocated":512,"Total Reserved":2048}}]})";
}

std::vector<NamedTrace> pair(const std::string& first, const std::string& second) {
  std::vector<NamedTrace> all;
  all.push_back({"first", loaded(first)});
  all.push_back({"second", loaded(second)});
  return all;
}

TEST(Combine, RanksByTheirClocks) {
  Result<LoadedTrace> both =
      combine(pair(profile_of(3, 0, 10), profile_of(5, 0, 10, R"("baseTimeNanoseconds":1000000700,)")));
  ASSERT_TRUE(both) << to_string(both.error());
  EXPECT_THAT(ranks_of(both->trace), ElementsAre(Rank{3}, Rank{5}));
  EXPECT_EQ(files::spans(both->trace), "gemm 10000+5000 | gemm 10700+5000");
  EXPECT_EQ(both->trace.header.world_size, 8);
  EXPECT_EQ(both->parts[1].shift_ns, 700);
  EXPECT_EQ(both->parts[1].by, AlignedBy::clock);
  EXPECT_EQ(both->parts[1].says, "");
}

TEST(Combine, WithoutAClockAtTheOthersBeginAndSaysSo) {
  const Result<LoadedTrace> both = combine(pair(profile_of(3, 0, 10), profile_of(5, 0, 900, "")));
  ASSERT_TRUE(both);
  EXPECT_EQ(files::spans(both->trace), "gemm 10000+5000 | gemm 10000+5000");
  EXPECT_EQ(both->parts[1].by, AlignedBy::begin);
  EXPECT_THAT(both->trace.header.metadata.at("aligned"), HasSubstr("second at the others' begin"));
}

TEST(Combine, WhatDoesNotMeetIsSaid) {
  const Result<LoadedTrace> both = combine(pair(profile_of(3, 0, 10), profile_of(5, 0, 2'000'010)));
  ASSERT_TRUE(both);
  EXPECT_THAT(both->parts[1].says, HasSubstr("begins 2.000 s after the others end"));
}

TEST(Combine, WhatIsFarApartIsOfTwoRunsUnlessForced) {
  const auto apart = [] { return pair(profile_of(3, 0, 10), profile_of(5, 0, 90'000'000)); };
  const Result<LoadedTrace> both = combine(apart());
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().code, Errc::contradiction);
  EXPECT_THAT(both.error().what, HasSubstr("begins 90.00 s after the others end"));
  EXPECT_THAT(both.error().what,
              HasSubstr("first begins at 1970-01-01 00:00 UTC, this begins at 1970-01-01 00:01 UTC"));
  EXPECT_THAT(to_string(both.error()), HasSubstr("--force"));
  EXPECT_TRUE(combine(apart(), true));
}

TEST(Combine, TwoRecordingsOfOneRankAtOneTimeAreRefused) {
  const Result<LoadedTrace> both = combine(pair(profile_of(3, 0, 10), profile_of(3, 0, 12)));
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().code, Errc::contradiction);
  EXPECT_THAT(both.error().what, HasSubstr("rank 3"));
  EXPECT_TRUE(combine(pair(profile_of(3, 0, 10), profile_of(3, 0, 100))));  // one after the other
}

TEST(Combine, ASnapshotsDeviceIsTheRankWhoseKernelsRanOnIt) {
  const LoadedTrace alone = loaded(files::small_pickle());
  const std::int64_t epoch = alone.trace.header.wall_ns;
  const std::string base = "\"baseTimeNanoseconds\":" + std::to_string(epoch) + ",";
  const Result<LoadedTrace> both = combine(pair(profile_of(5, 0, 10, base), files::small_pickle()));
  ASSERT_TRUE(both) << to_string(both.error());
  EXPECT_THAT(ranks_of(both->trace), ElementsAre(Rank{5}));
  ASSERT_TRUE(both->snapshot);
  // The snapshot's memory in full, the profile's of the same device not beside it.
  ASSERT_EQ(both->trace.memory.size(), alone.trace.memory.size());
  for (std::size_t i = 0; i < alone.trace.memory.size(); ++i) {
    EXPECT_EQ(both->trace.memory.delta_bytes[i], alone.trace.memory.delta_bytes[i]);
    EXPECT_EQ(both->trace.memory.time_ns[i] + (epoch == 0 ? 0 : epoch),
              alone.trace.memory.time_ns[i] + both->parts[0].shift_ns + epoch);
    EXPECT_EQ(both->trace.memory.rank[i], Rank{5});
  }
  const std::string& aligned = both->trace.header.metadata.at("aligned");
  EXPECT_THAT(aligned, HasSubstr("1 events of device memory left out"));
  EXPECT_THAT(aligned, ::testing::Not(HasSubstr("taken for")));
}

TEST(Combine, ADeviceWithoutKernelsIsSaid) {
  const Result<LoadedTrace> one = combine(pair(profile_of(5, 2, 10), files::small_pickle()));
  ASSERT_TRUE(one) << to_string(one.error());
  EXPECT_THAT(one->trace.header.metadata.at("aligned"), HasSubstr("its device 0 is taken for rank 5's"));
  std::vector<NamedTrace> three = pair(profile_of(5, 2, 10), profile_of(6, 3, 10));
  three.push_back({"snapshot", loaded(files::small_pickle())});
  const Result<LoadedTrace> all = combine(std::move(three));
  ASSERT_TRUE(all) << to_string(all.error());
  EXPECT_THAT(all->trace.header.metadata.at("aligned"), HasSubstr("no one rank's kernels ran on its device 0"));
  EXPECT_THAT(ranks_of(all->trace), ElementsAre(Rank{0}, Rank{5}, Rank{6}));
}

}  // namespace
}  // namespace shard
