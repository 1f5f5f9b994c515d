// Clocks of ranks and hosts with planted offsets and drift: put together, no event is off by more than is said.
#include "traces/import/align.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "traces/base/scratch.h"
#include "traces/import/combine.h"
#include "traces/import/write_trace.h"
#include "traces/profile.h"

namespace shard {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kSecond = 1'000'000'000;

/// A rank's clock, and what it believes Unix time to be.
struct Clock {
  std::int64_t offset_ns = 0;
  double drift = 0;
  std::optional<std::int64_t> wall_error_ns{};  ///< nothing: says no Unix time

  [[nodiscard]] std::int64_t at(std::int64_t truth) const {
    return offset_ns + truth + std::llround(drift * static_cast<double>(truth));
  }
};

struct Options {
  bool with_steps = true;  ///< else nothing numbers the collectives
  bool planned = false;    ///< ops name them
  double transfer_ns = 200'000;
};

/// Two seconds of a run: all ranks come to each collective at moments of their own and leave it together; kernels
/// between, whose true times are their bytes.
std::vector<NamedTrace> run(const std::vector<Clock>& clocks, std::uint64_t seed, const Options& options = {}) {
  std::mt19937_64 random(seed);
  const auto some = [&](double most) {
    return static_cast<std::int64_t>(static_cast<double>(random() % 1'000'000) / 1e6 * most);
  };
  std::vector<NamedTrace> traces(clocks.size());
  for (std::size_t r = 0; r < clocks.size(); ++r) {
    traces[r].name = "rank" + std::to_string(r);
    Trace& trace = traces[r].loaded.trace;
    const Rank rank{static_cast<std::int32_t>(r)};
    trace.header = {.kind = TraceKind::measured, .plan_hash = options.planned ? "ab" : ""};
    trace.header.clock_ns = clocks[r].at(0);
    if (clocks[r].wall_error_ns) trace.header.wall_ns = 1'700'000'000 * kSecond + *clocks[r].wall_error_ns;
    trace.names = {"ncclDevKernel_AllReduce", "kernel"};
    trace.tracks = {{.rank = rank, .stream = Stream::communication}, {.rank = rank, .stream = Stream::compute}};
  }
  std::int64_t now = kSecond;
  for (std::int32_t k = 0; k < 400; ++k) {
    std::vector<std::int64_t> came(clocks.size());
    std::int64_t last = 0;
    for (std::int64_t& at : came) last = std::max(last, at = now + some(1e6));
    for (std::size_t r = 0; r < clocks.size(); ++r) {
      const std::int64_t begin = clocks[r].at(came[r]);
      const std::int64_t end = clocks[r].at(last + some(options.transfer_ns));
      Trace& trace = traces[r].loaded.trace;
      trace.spans.push_back({.track = TrackId{0},
                             .begin_ns = begin,
                             .duration_ns = end - begin,
                             .op = options.planned ? OpId{k % 10} : OpId{},
                             .name = NameId{0},
                             .step = options.with_steps ? 1 + k / 10 : 0,
                             .activity = Activity::all_reduce});
      const std::int64_t truth = now + some(4e6);
      trace.spans.push_back({.track = TrackId{1},
                             .begin_ns = clocks[r].at(truth),
                             .duration_ns = 10,
                             .name = NameId{1},
                             .step = options.with_steps ? 1 + k / 10 : 0,
                             .bytes = truth,
                             .activity = Activity::kernel});
    }
    now = last + 4'000'000;
  }
  return traces;
}

/// The worst error of any kernel's begin, on the clock of the first.
std::int64_t worst_error(const Trace& all, const Clock& first, Rank rank) {
  std::int64_t worst = 0;
  for (std::size_t i = 0; i < all.spans.size(); ++i) {
    const Span span = all.spans[i];
    if (span.activity == Activity::kernel && all.track_of(span.track).rank == rank)
      worst = std::max(worst, std::abs(span.begin_ns - first.at(span.bytes)));
  }
  return worst;
}

TEST(Align, PlantedOffsetsAndDriftStayWithinTheBound) {
  const std::vector<Clock> others{{.offset_ns = 5},
                                  {.offset_ns = -77 * kSecond, .drift = 1e-4},
                                  {.offset_ns = 11 * kSecond, .drift = -8e-5, .wall_error_ns = -1'600'000},
                                  {.offset_ns = 3'000'000, .drift = 2e-5, .wall_error_ns = 11 * kSecond}};
  const Clock first{.offset_ns = 40 * kSecond, .drift = 3e-5, .wall_error_ns = 0};
  for (const bool planned : {false, true})
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      std::vector<Clock> clocks{first};
      clocks.insert(clocks.end(), others.begin(), others.end());
      const Result<LoadedTrace> all = combine(run(clocks, seed, {.planned = planned}));
      ASSERT_TRUE(all) << to_string(all.error());
      for (std::size_t r = 1; r < clocks.size(); ++r) {
        const CombinedPart& part = all->parts[r];
        ASSERT_EQ(part.by, AlignedBy::collectives) << part.says;
        ASSERT_TRUE(part.bound_ns.has_value());
        EXPECT_LE(worst_error(all->trace, first, Rank{static_cast<std::int32_t>(r)}), *part.bound_ns);
        // Two ranks come and go within a fifth of a millisecond now and then.
        EXPECT_LT(*part.bound_ns, 1'500'000) << r;
      }
      EXPECT_EQ(all->trace.header.world_size, 5);
      EXPECT_EQ(ranks_of(all->trace).size(), 5u);
    }
}

TEST(Align, KeepsAClockThatTheCollectivesLeavePossible) {
  const std::vector<Clock> clocks{{.offset_ns = 7 * kSecond, .wall_error_ns = 0},
                                  {.offset_ns = 9 * kSecond, .wall_error_ns = 300}};
  const Result<LoadedTrace> all = combine(run(clocks, 1));
  ASSERT_TRUE(all);
  EXPECT_EQ(all->parts[1].by, AlignedBy::clock);
  EXPECT_LE(worst_error(all->trace, clocks[0], Rank{1}), 300);
  ASSERT_TRUE(all->parts[1].bound_ns.has_value());
  EXPECT_GE(*all->parts[1].bound_ns, 300);
}

TEST(Align, SaysHowFarAClockWasOff) {
  const std::vector<Clock> clocks{{.wall_error_ns = 0}, {.wall_error_ns = 2 * kSecond}};
  const Result<LoadedTrace> all = combine(run(clocks, 2));
  ASSERT_TRUE(all);
  EXPECT_THAT(to_text(all->parts[1]), HasSubstr("by its collectives, to"));
  EXPECT_THAT(to_text(all->parts[1]), HasSubstr("its clock says"));
}

TEST(Align, GuessesNoCollectivesAgainstTheClock) {
  const std::vector<Clock> clocks{{.wall_error_ns = 0}, {.wall_error_ns = 2 * kSecond}};
  const Result<LoadedTrace> all = combine(run(clocks, 3, {.with_steps = false}));
  ASSERT_TRUE(all);
  EXPECT_EQ(all->parts[1].by, AlignedBy::clock);
  EXPECT_FALSE(all->parts[1].bound_ns.has_value());
  EXPECT_THAT(all->parts[1].says, HasSubstr("its collectives would put it 2.000 s earlier"));
}

TEST(Align, TakesNothingFromCollectivesThatContradictEachOther) {
  std::vector<NamedTrace> traces = run({{}, {}}, 4);
  // As of two groups of ranks: one's are far from where the other's are.
  Trace& second = traces[1].loaded.trace;
  for (std::size_t i = 0; i < second.spans.size(); ++i)
    if (second.spans.activity[i] == Activity::all_reduce && second.spans.step[i] % 2 == 0)
      second.spans.begin_ns[i] += 30'000'000;
  std::string why;
  EXPECT_FALSE(align_by_collectives(traces[0].loaded.trace, second, std::nullopt, why).has_value());
  EXPECT_THAT(why, HasSubstr("contradict"));
}

TEST(Align, KeepsTheOrderOfMoments) {
  const ClockShift shift({{0, 100}, {1'000'000, -100}, {2'000'000, 300}});
  std::int64_t last = INT64_MIN;
  for (std::int64_t time = -5'000; time < 2'100'000; time += 7) {
    ASSERT_GE(shift.moved(time), last);
    last = shift.moved(time);
  }
  EXPECT_EQ(shift.moved(500'000), 500'000);
  EXPECT_EQ(shift.moved(3'000'000), 3'000'300);
}

TEST(Align, RefusesOneRanksStepTwice) {
  std::vector<NamedTrace> traces = run({{.wall_error_ns = 0}}, 5, {.planned = true});
  std::vector<NamedTrace> later = run({{.wall_error_ns = 100 * kSecond}}, 5, {.planned = true});
  traces.push_back(std::move(later.front()));
  const Result<LoadedTrace> all = combine(std::move(traces));
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code, Errc::contradiction);
  EXPECT_THAT(all.error().what, HasSubstr("two recordings of rank 0"));
}

TEST(Align, WhatComesOutIsATraceOfOurOwn) {
  const std::optional<Scratch> folder = Scratch::make(testing::TempDir());
  ASSERT_TRUE(folder.has_value());
  const Result<LoadedTrace> all = combine(run({{.wall_error_ns = 0}, {.offset_ns = kSecond}, {}}, 6));
  ASSERT_TRUE(all);
  const std::string path = folder->path() + "/all.sst";
  ASSERT_TRUE(write_trace(all->trace, path).has_value());
  const Result<Trace> again = load(path);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->spans.size(), all->trace.spans.size());
  EXPECT_EQ(ranks_of(*again).size(), 3u);
  EXPECT_THAT(again->header.metadata.at("aligned"), HasSubstr("by its collectives"));
  const nlohmann::ordered_json json = to_json(*all, summarize(*all));
  EXPECT_EQ(json.at("parts").size(), 3u);
  EXPECT_EQ(json.at("parts").at(1).at("aligned_by"), "collectives");
}

}  // namespace
}  // namespace shard
