// Do the files of several ranks become one trace, on one clock?
#include "tests/traces/sample_trace.h"

namespace shard {
namespace {

using sample::rows;
using sample::TempFile;

void write_rank(const std::filesystem::path& path, int rank, const Header& header, bool close = true) {
  Result<Writer> writer = Writer::create(path, header);
  ASSERT_TRUE(writer);
  (void)writer->name("only of rank " + std::to_string(rank));
  const TrackId track = writer->track({.rank = Rank{rank}});
  writer->add(Span{.track = track,
                   .begin_ns = 100,
                   .duration_ns = 5,
                   .op = OpId{1},
                   .name = writer->name("op"),
                   .part = Part::gather});
  writer->add(MemoryEvent{.rank = Rank{rank}, .delta_bytes = 10, .time_ns = 100});
  writer->add(CollectiveTotal{Rank{rank}, Collective::all_reduce, 1, 10});
  if (close) {
    ASSERT_TRUE(writer->close());
  }
}

Header header_of(std::int64_t clock, std::int64_t wall) {
  Header header;
  header.kind = TraceKind::measured;
  header.world_size = 2;
  header.plan_hash = "abc";
  header.clock_ns = clock;
  header.wall_ns = wall;
  return header;
}

TEST(Merge, EventsOfAllRanksOnTheFirstOnesClock) {
  const TempFile a, b, out;
  write_rank(a.path(), 0, header_of(50, 1050));
  write_rank(b.path(), 1, header_of(70, 1075));  // its clock is 5 ns behind the first one's
  const Result<MergeReport> report = merge_traces({a.path(), b.path()}, out.path());
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_TRUE(report->incomplete.empty());
  const Result<Trace> trace = load(out.path());
  ASSERT_TRUE(trace);
  EXPECT_TRUE(trace->complete());
  EXPECT_EQ(trace->header.clock_ns, 50);
  ASSERT_EQ(trace->spans.size(), 2u);
  EXPECT_EQ(trace->spans.begin_ns, (std::vector<std::int64_t>{100, 105}));
  EXPECT_EQ(trace->track_of(trace->spans.track[1]).rank, Rank{1});
  EXPECT_EQ(trace->name_of(trace->spans.name[0]), "op");
  EXPECT_EQ(trace->spans.name[0], trace->spans.name[1]);
  EXPECT_EQ(trace->memory.time_ns, (std::vector<std::int64_t>{100, 105}));
  EXPECT_EQ(trace->collectives.size(), 2u);
}

TEST(Merge, OneRankThatBrokeOffIsMergedAndNamed) {
  const TempFile a, b, out;
  write_rank(a.path(), 0, header_of(0, 0));
  write_rank(b.path(), 1, header_of(0, 0), false);
  const Result<MergeReport> report = merge_traces({a.path(), b.path()}, out.path());
  ASSERT_TRUE(report);
  ASSERT_EQ(report->incomplete.size(), 1u);
  EXPECT_EQ(report->incomplete[0].find(b.path().string()), 0u);
  const Result<Trace> trace = load(out.path());
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->spans.size(), 2u);
  EXPECT_EQ(trace->header.metadata.at("incomplete"), report->incomplete[0]);
}

TEST(Merge, TablesAreThoseOfTheFirst) {
  const TempFile a, b, out;
  Header header = header_of(0, 0);
  header.units = {{"chunk 0", 10, 40}, {"chunk 1", 10, 40}};
  header.strategy = {{"stage", "3", true}};
  header.capacities = {{Rank{}, Memory::device, 1, 1000}};
  write_rank(a.path(), 0, header);
  write_rank(b.path(), 1, header);
  ASSERT_TRUE(merge_traces({a.path(), b.path()}, out.path()));
  const Result<Trace> trace = load(out.path());
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->header, header);
  EXPECT_EQ(trace->spans.part, (std::vector<Part>{Part::gather, Part::gather}));
}

TEST(Merge, RefusesTwoRunsAndLeavesNothingBehind) {
  const TempFile a, b, out;
  write_rank(a.path(), 0, header_of(0, 0));
  Header other = header_of(0, 0);
  other.plan_hash = "abd";
  write_rank(b.path(), 1, other);
  const Result<MergeReport> report = merge_traces({a.path(), b.path()}, out.path());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Errc::contradiction);
  EXPECT_EQ(report.error().where, b.path().string());
  EXPECT_FALSE(std::filesystem::exists(out.path()));
  EXPECT_FALSE(std::filesystem::exists(out.path().string() + ".partial"));
}

}  // namespace
}  // namespace shard
