// Recording that goes on and off with a program's NVTX ranges.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/profiler/collector_support.h"

namespace shard::profiler {
namespace {

class RangeSwitching : public InAChild {};

bool records_kernels() {
  return fake_cupti::is_enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

TEST_F(RangeSwitching, RecordsWhileAWantedRangeIsOpen) {
  const auto body = [](Collector& collector, Spool&) {
    int place = 0;
    const auto expect = [&](bool recording) {
      ++place;
      collector.settle();
      if (records_kernels() != recording) ::_exit(place);
      if (!fake_cupti::is_enabled(CUPTI_ACTIVITY_KIND_MEMORY2)) ::_exit(100 + place);
    };
    expect(false);
    fake_cupti::pop_range();  // of a range that nobody saw begin
    fake_cupti::push_range("epoch");
    expect(false);
    fake_cupti::push_range("wanted");
    expect(true);
    fake_cupti::push_range("inner");
    fake_cupti::pop_range();
    expect(true);
    // Two at once, the other one of another kind.
    fake_cupti::start_range(77, "wanted");
    fake_cupti::pop_range();
    expect(true);
    fake_cupti::end_range(77);
    expect(false);
    fake_cupti::push_registered_range("wanted");
    fake_cupti::pop_range();  // of the domain of all: epoch
    expect(true);
    fake_cupti::pop_registered_range();
    expect(false);
    collector.pause();
    fake_cupti::push_range("wanted");
    expect(false);
    collector.resume();
    expect(true);
    fake_cupti::pop_range();
    expect(false);
  };
  EXPECT_EQ(run(body, {.wanted = {.name = "wanted"}}), 0);
}

TEST_F(RangeSwitching, AWantedRangeIsThereOnceThoughCuptiTellsItToo) {
  const auto t = static_cast<std::uint64_t>(host_now());
  const auto body = [&](Collector& collector, Spool&) {
    fake_cupti::push_range("wanted");
    fake_cupti::pop_range();
    Records records;
    records.add(marker(9, t, CUPTI_ACTIVITY_FLAG_MARKER_START, "wanted"))
        .add(marker(9, t + 20, CUPTI_ACTIVITY_FLAG_MARKER_END, nullptr))
        .add(marker(10, t, CUPTI_ACTIVITY_FLAG_MARKER_START, "another"))
        .add(marker(10, t + 20, CUPTI_ACTIVITY_FLAG_MARKER_END, nullptr));
    fake_cupti::deliver(records);
    collector.flush(true);
  };
  ASSERT_EQ(run(body, {.wanted = {.name = "wanted"}}), 0);
  EXPECT_EQ(names_of(timeline().loaded.trace), (std::vector<std::string>{"another", "wanted"}));
}

TEST_F(RangeSwitching, RecordsEverythingWhereRangesCannotBeHeard) {
  ASSERT_EQ(run(
                [](Collector&, Spool&) {
                  if (!records_kernels()) ::_exit(1);
                },
                {.wanted = {.name = "wanted"}}, "cuptiEnableCallback"),
            0);
}

}  // namespace
}  // namespace shard::profiler
