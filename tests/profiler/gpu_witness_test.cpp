// Does a run of ours on GPUs record itself: what CUPTI says joined to rank, op and step, or a reason why not?
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "executor/profile/device_recording.h"
#include "executor/rank/observer.h"
#include "tests/profiler/fake_cupti.h"

namespace shard::device_profile {
namespace {

using executor::now_ns;
using profiler::PushedOp;

/// In a child, since CUPTI has one collector a process; false where it failed, having said why.
bool passes_in_a_child(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("SHARDSCOPE_CUPTI", FAKE_CUPTI, 1);
    fake_cupti::reset();
    body();
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status == 0;
}

CUpti_ActivityKernel10 kernel(std::uint64_t node) {
  CUpti_ActivityKernel10 k{};
  k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  k.start = static_cast<std::uint64_t>(now_ns());
  k.end = k.start + 1000;
  k.correlationId = 5;
  k.graphNodeId = node;
  k.name = "multiply";
  return k;
}

CUpti_ActivityAPI call() {
  CUpti_ActivityAPI c{};
  c.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  c.start = static_cast<std::uint64_t>(now_ns());
  c.end = c.start + 100;
  c.correlationId = 5;
  return c;
}

TEST(GpuWitness, AGraphThatIsLaunchedAgainIsJoinedToRankOpAndStep) {
  EXPECT_TRUE(passes_in_a_child([] {
    const auto recording = DeviceRecording::start(false);
    ASSERT_TRUE(recording->is_recording()) << recording->why_not();
    EXPECT_EQ(recording->activity(), nullptr);
    recording->begin_phase(Rank{1}, Phase::steady_step, 3);
    {
      const cuda::Witnessed witnessed(recording->witness(), Rank{1}, OpId{9});
      EXPECT_EQ(fake_cupti::pushed(), (PushedOp{.op = 9, .rank = 1}.id()));
      fake_cupti::make_node(70);
    }
    EXPECT_EQ(fake_cupti::pushed(), 0U);
    fake_cupti::clone_node(71, 70);
    recording->end_phase(Rank{1});
    recording->begin_phase(Rank{1}, Phase::steady_step, 4);
    fake_cupti::deliver(fake_cupti::Records().add(call()).add(kernel(71)));
    const std::int64_t now = now_ns();
    recording->witness()->host_worked(Rank{1}, OpId{8}, now, now + 10);
    // The clocks agree to some microseconds, and so must call and phase.
    while (now_ns() < now + 5'000'000) {
    }
    recording->end_phase(Rank{1});
    const Result<profiler::Timeline> timeline = recording->read();
    ASSERT_TRUE(timeline.has_value());
    EXPECT_EQ(timeline->joined.device_spans, 1);
    EXPECT_EQ(timeline->joined.with_op, 1);
    const Trace& trace = timeline->loaded.trace;
    int found = 0;
    for (std::size_t i = 0; i < trace.spans.size(); ++i) {
      const Span span = trace.spans[i];
      if (trace.name_of(span.name) == "multiply") {
        EXPECT_EQ(span.op.value, 9);
        EXPECT_EQ(span.step, 4);
        EXPECT_EQ(trace.track_of(span.track).rank, Rank{1});
        ++found;
      }
      if (trace.name_of(span.name) == "host call") {
        EXPECT_EQ(span.op.value, 8);
        EXPECT_EQ(span.step, 4);
        ++found;
      }
    }
    EXPECT_EQ(found, 2);
    EXPECT_FALSE(fake_cupti::is_enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) << "nothing is recorded any more";
  }));
}

TEST(GpuWitness, SaysWhoHoldsCuptiAndLetsTheRunGoOn) {
  EXPECT_TRUE(passes_in_a_child([] {
    fake_cupti::answer("cuptiSubscribe", CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    const auto recording = DeviceRecording::start(false);
    EXPECT_FALSE(recording->is_recording());
    EXPECT_NE(recording->why_not().find("another profiler holds CUPTI"), std::string::npos) << recording->why_not();
    EXPECT_EQ(recording->witness(), nullptr);
    recording->begin_phase(Rank{0}, Phase::steady_step, 0);
    recording->end_phase(Rank{0});
  }));
}

TEST(GpuWitness, SaysThatPrivilegesAreMissing) {
  EXPECT_TRUE(passes_in_a_child([] {
    fake_cupti::answer("cuptiActivityEnable", CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
    const auto recording = DeviceRecording::start(false);
    EXPECT_FALSE(recording->is_recording());
    EXPECT_NE(recording->why_not().find("may not profile"), std::string::npos) << recording->why_not();
  }));
}

TEST(GpuWitness, SaysThatThereIsNoCupti) {
  EXPECT_TRUE(passes_in_a_child([] {
    ::setenv("SHARDSCOPE_CUPTI", "/nowhere/libcupti.so", 1);
    const auto recording = DeviceRecording::start(false);
    EXPECT_FALSE(recording->is_recording());
    EXPECT_NE(recording->why_not().find("libcupti.so was not found"), std::string::npos) << recording->why_not();
  }));
}

}  // namespace
}  // namespace shard::device_profile
