// Is a moment counted once, and in the right place?
#include "traces/profile.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/traces/sample_trace.h"
#include "traces/inspect.h"
#include "traces/profile_report.h"

namespace shard {
namespace {

using sample::TempFile;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Tracks by name: "GPU 2 stream 7" is a stream, anything else a thread.
class Recording {
 public:
  Recording& rank(std::int32_t rank) {
    rank_ = Rank{rank};
    return *this;
  }
  Recording& add(const std::string& track, Activity activity, const std::string& name, std::int64_t begin,
                 std::int64_t end, std::int64_t bytes = 0) {
    Track on{.rank = rank_, .kind = TrackKind::other, .name = track};
    if (track.starts_with("GPU")) on.kind = TrackKind::stream;
    writer_->add(Span{.track = writer_->track(on),
                      .begin_ns = begin,
                      .duration_ns = end - begin,
                      .name = writer_->name(name),
                      .bytes = bytes,
                      .activity = activity});
    return *this;
  }
  Trace trace() {
    EXPECT_TRUE(writer_->close());
    return *load(file_.path());
  }
  Profile profile() { return shard::profile(trace()); }

 private:
  TempFile file_;
  Result<Writer> writer_ = Writer::create(file_.path(), Header{});
  Rank rank_{0};
};

TEST(Profile, WhatOverlapsOnADeviceIsBusyOnce) {
  const Profile profile = Recording()
                              .add("main", Activity::operation, "op", 0, 100)
                              .add("GPU 0 stream 7", Activity::kernel, "a", 10, 30)
                              .add("GPU 0 stream 9", Activity::kernel, "b", 20, 40)
                              .add("GPU 0 stream 9", Activity::copy, "Memcpy HtoD (Pinned -> Device)", 60, 70, 512)
                              .add("GPU 0 stream 7", Activity::fill, "Memset (Device)", 65, 75, 16)
                              .profile();
  ASSERT_EQ(profile.devices.size(), 1u);
  const DeviceUse& use = profile.devices[0];
  EXPECT_EQ(use.place, (DevicePlace{Rank{0}, DeviceNumber{0}}));
  EXPECT_EQ(use.streams, 2);
  EXPECT_EQ(use.time, (DeviceTime{.window_ns = 100, .busy_ns = 45, .idle_ns = 55, .kernel_ns = 30, .copy_ns = 15}));
  EXPECT_EQ(use.idle_between_ns, 20);
  EXPECT_THAT(profile.copies, ElementsAre(CopyUse{use.place, Direction::to_device, 1, 512, 10},
                                          CopyUse{use.place, Direction::fill, 1, 16, 10}));
}

TEST(Profile, CollectivesAreHiddenByKernelsOfTheirDeviceAlone) {
  const Profile profile = Recording()
                              .add("GPU 0 stream 20", Activity::all_reduce, "nccl", 0, 100, 4096)
                              .add("GPU 0 stream 7", Activity::kernel, "a", 10, 30)
                              .add("GPU 0 stream 8", Activity::kernel, "b", 20, 40)
                              .add("GPU 0 stream 9", Activity::copy, "Memcpy DtoD (Device -> Device)", 50, 60)
                              .add("GPU 1 stream 7", Activity::kernel, "of another", 0, 100)
                              .add("GPU 0 stream 21", Activity::all_reduce, "nccl", 90, 110)
                              .profile();
  EXPECT_THAT(profile.collectives, ElementsAre(CollectiveUse{.place = {Rank{0}, DeviceNumber{0}},
                                                             .kind = Activity::all_reduce,
                                                             .count = 2,
                                                             .bytes = 4096,
                                                             .without_bytes = 1,
                                                             .total_ns = 120,
                                                             .hidden_ns = 30,
                                                             .exposed_ns = 90}));
  const DeviceTime& time = profile.devices[0].time;
  EXPECT_EQ(time.communication_ns, 110);  // two at once are one moment of the device
  EXPECT_EQ(time.hidden_ns, 30);
  EXPECT_EQ(time.exposed_ns, 80);
}

TEST(Profile, PartsOfAPlansOpAreOneCall) {
  for (const std::string plan : {"", "aaaa"}) {
    const TempFile file;
    Header header;
    header.plan_hash = plan;
    Result<Writer> writer = Writer::create(file.path(), header);
    ASSERT_TRUE(writer);
    const TrackId stream = writer->track({.rank = Rank{0}, .name = "GPU 0 stream 7"});
    for (std::int32_t step = 0; step < 2; ++step)
      for (const std::int64_t part : {0, 1, 2})
        writer->add(Span{.track = stream,
                         .begin_ns = 1000 * step + 100 * part,
                         .duration_ns = 50,
                         .op = OpId{4},
                         .name = writer->name("copy"),
                         .step = step,
                         .bytes = part == 0 ? 4096 : 0,
                         .activity = Activity::all_gather});
    ASSERT_TRUE(writer->close());
    const Profile found = profile(load(file.path()).value());
    ASSERT_EQ(found.collectives.size(), 1u);
    // Without a plan nobody says what a number of an op means.
    EXPECT_EQ(found.collectives[0].count, plan.empty() ? 6 : 2);
    EXPECT_EQ(found.collectives[0].without_bytes, plan.empty() ? 4 : 0);
    EXPECT_EQ(found.collectives[0].bytes, 8192);
    EXPECT_EQ(found.collectives[0].total_ns, 300);
  }
}

TEST(Profile, MarksOnADeviceAndItsWaitsAreNoWork) {
  const Profile profile = Recording()
                              .add("GPU 0 stream 7", Activity::mark, "ProfilerStep#1", 0, 100)
                              .add("GPU 0 stream 7", Activity::wait, "Stream Sync", 0, 100)
                              .add("GPU 0 stream 7", Activity::kernel, "a", 40, 50)
                              .profile();
  EXPECT_EQ(profile.devices[0].time.busy_ns, 10);
  EXPECT_EQ(profile.kernels.size(), 1u);
  EXPECT_THAT(profile.operations, IsEmpty());
  EXPECT_THAT(profile.steps, IsEmpty());
}

TEST(Profile, AChildTakesItsTimeFromTheOneAroundItOnItsThread) {
  const Profile profile = Recording()
                              .add("main", Activity::python, "f", 0, 100)
                              .add("main", Activity::operation, "mm", 10, 60)
                              .add("main", Activity::runtime, "cudaLaunchKernel", 20, 30)
                              .add("main", Activity::operation, "mm", 60, 80)
                              .add("other", Activity::operation, "mm", 10, 15)
                              .add("profiler", Activity::recording, "PyTorch Profiler (0)", 0, 500)
                              .profile();
  EXPECT_THAT(profile.operations,
              ElementsAre(NamedTime{"mm", Activity::operation, 3, 75, 65}, NamedTime{"f", Activity::python, 1, 100, 30},
                          NamedTime{"cudaLaunchKernel", Activity::runtime, 1, 10, 10}));
}

TEST(Profile, OfSpansThatCrossAMomentBelongsToTheOneBegunLast) {
  const Profile profile = Recording()
                              .add("main", Activity::python, "a", 0, 50)
                              .add("main", Activity::annotation, "b", 40, 90)
                              .add("main", Activity::operation, "c", 45, 60)
                              .add("main", Activity::operation, "d", 200, 201)
                              .profile();
  EXPECT_THAT(
      profile.operations,
      ElementsAre(NamedTime{"a", Activity::python, 1, 50, 40}, NamedTime{"b", Activity::annotation, 1, 50, 35},
                  NamedTime{"c", Activity::operation, 1, 15, 15}, NamedTime{"d", Activity::operation, 1, 1, 1}));
}

TEST(Profile, AStepIsWhatTheScriptMarkedOnTheHost) {
  const Trace trace = Recording()
                          .add("main", Activity::annotation, "ProfilerStep#7", 0, 50)
                          .add("main", Activity::annotation, "ProfilerStep#8", 50, 90)
                          .add("GPU 3 stream 7", Activity::mark, "ProfilerStep#8", 45, 200)
                          .add("GPU 3 stream 7", Activity::kernel, "a", 40, 60)
                          .add("GPU 3 stream 8", Activity::broadcast, "nccl", 45, 55, 1)
                          .trace();
  const Profile profile = shard::profile(trace);
  ASSERT_EQ(profile.steps.size(), 2u);
  EXPECT_EQ(profile.steps[0].step, 7);
  EXPECT_EQ(
      profile.steps[0].time,
      (DeviceTime{
          .window_ns = 50, .busy_ns = 10, .idle_ns = 40, .kernel_ns = 10, .communication_ns = 5, .hidden_ns = 5}));
  EXPECT_EQ(profile.steps[1].time.window_ns, 40);
  EXPECT_EQ(profile.steps[1].time.busy_ns, 10);
  const std::vector<StepTime> steps = step_times(trace);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].begin_ns, 50);
  EXPECT_EQ(steps[1].end_ns, 90);
}

TEST(Profile, CollectivesOfTheHostAreNeitherHiddenNorExposed) {
  const Profile profile = Recording().add("main", Activity::all_reduce, "gloo:all_reduce", 0, 10, 64).profile();
  ASSERT_EQ(profile.collectives.size(), 1u);
  EXPECT_TRUE(profile.collectives[0].on_host);
  EXPECT_THAT(profile.devices, IsEmpty());
  const auto json = collectives_json({}, profile);
  EXPECT_TRUE(json[0]["hidden_seconds"].is_null());
  EXPECT_TRUE(json[0]["exposed_seconds"].is_null());
}

TEST(Profile, OfARankOnlyItsOwn) {
  const Trace trace = Recording()
                          .rank(3)
                          .add("GPU 0 stream 7", Activity::kernel, "a", 0, 10)
                          .rank(5)
                          .add("GPU 0 stream 7", Activity::kernel, "b", 0, 20)
                          .trace();
  EXPECT_THAT(ranks_of(trace), ElementsAre(Rank{3}, Rank{5}));
  EXPECT_EQ(profile(trace).devices.size(), 2u);
  const Profile of5 = profile(trace, Rank{5});
  ASSERT_EQ(of5.devices.size(), 1u);
  EXPECT_EQ(of5.kernels[0].name, "b");
}

TEST(Profile, TheProducersTotalsAreKeptWhereItHasThem) {
  const Profile profile = Recording().add("GPU 0 stream 7", Activity::all_gather, "gather", 0, 10, 3).profile();
  const auto json =
      collectives_json({{Rank{0}, Collective::all_gather, 7, 700}, {Rank{0}, Collective::reduce, 1, 8}}, profile);
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["kind"], "reduce");
  EXPECT_FALSE(json[0].contains("seconds"));
  EXPECT_EQ(json[1]["count"], 7);
  EXPECT_EQ(json[1]["bytes"], 700);
  EXPECT_EQ(json[1]["seconds"], 1e-8);
}

TEST(Profile, WithoutAWordStreamAndNameTell) {
  const Track compute{.kind = TrackKind::stream}, out{.kind = TrackKind::stream, .stream = Stream::copy_out};
  const Track link{.kind = TrackKind::stream, .stream = Stream::communication}, thread{.kind = TrackKind::other};
  EXPECT_EQ(activity_of(compute, Activity::unknown, "gemm"), Activity::kernel);
  EXPECT_EQ(activity_of(compute, Activity::unknown, "ncclDevKernel_AllGather_RING_LL(x)"), Activity::all_gather);
  EXPECT_EQ(activity_of(compute, Activity::unknown, "Memcpy DtoH"), Activity::copy);
  EXPECT_EQ(activity_of(out, Activity::unknown, "offload block 3"), Activity::copy);
  EXPECT_EQ(activity_of(link, Activity::unknown, "gather block 3"), Activity::other_collective);
  EXPECT_EQ(activity_of(thread, Activity::unknown, "anything"), Activity::operation);
  EXPECT_EQ(activity_of(thread, Activity::runtime, "anything"), Activity::runtime);
}

}  // namespace
}  // namespace shard
