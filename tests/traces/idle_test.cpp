// To what is an idle moment of a device put?
#include "traces/idle.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/traces/sample_trace.h"

namespace shard {
namespace {

using sample::TempFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// One GPU of each rank, its kernels launched from the main thread.
class IdleRecording {
 public:
  IdleRecording& rank(std::int32_t rank) {
    rank_ = Rank{rank};
    return *this;
  }
  IdleRecording& host(Activity activity, const std::string& name, std::int64_t begin, std::int64_t end) {
    add(main(), activity, name, begin, end);
    return *this;
  }
  IdleRecording& kernel(std::int64_t begin, std::int64_t end, std::int64_t launched = -1,
                        Activity activity = Activity::kernel) {
    add(gpu(), activity, "work", begin, end);
    if (launched < 0) return *this;
    add(main(), Activity::runtime, "cudaLaunchKernel", launched, launched + 5);
    writer_->add(Flow{main(), launched, gpu(), begin, FlowKind::launch});
    return *this;
  }
  IdleTimes idle() {
    EXPECT_TRUE(writer_->close());
    return idle_time(*load(file_.path()));
  }

 private:
  static Header measured() {
    Header header;
    header.kind = TraceKind::measured;
    return header;
  }
  TrackId main() { return writer_->track({.rank = rank_, .kind = TrackKind::other, .name = "main"}); }
  TrackId gpu() { return writer_->track({.rank = rank_, .kind = TrackKind::stream, .name = "GPU 0 stream 7"}); }
  void add(TrackId track, Activity activity, const std::string& name, std::int64_t begin, std::int64_t end) {
    writer_->add(Span{.track = track,
                      .begin_ns = begin,
                      .duration_ns = end - begin,
                      .name = writer_->name(name),
                      .activity = activity});
  }

  TempFile file_;
  Result<Writer> writer_ = Writer::create(file_.path(), measured());
  Rank rank_{0};
};

/// Of the only device.
std::int64_t idle_of(const IdleTimes& idle, IdleCause cause) {
  EXPECT_EQ(idle.devices.size(), 1u);
  return idle.devices.empty() ? -1 : idle.devices[0].of(cause);
}

TEST(Idle, BeforeTheLaunchTheHostIsLateAfterItTheDevice) {
  const IdleTimes idle =
      IdleRecording().host(Activity::operation, "aten::mm", 0, 400).kernel(10, 100, 0).kernel(300, 400, 250).idle();
  EXPECT_EQ(idle_of(idle, IdleCause::launch_bound), 5 + 155) << "until the calls returned at 5 and 255";
  EXPECT_EQ(idle_of(idle, IdleCause::on_device), 5 + 45);
  EXPECT_EQ(idle.devices[0].idle_ns, 210);
  EXPECT_THAT(verdict(idle), HasSubstr("idle 53 % of the recording: 76 % of that the host had not launched"));
}

TEST(Idle, AHostThatWaitedForTheDeviceIsNotLaunchBound) {
  const IdleTimes idle = IdleRecording()
                             .host(Activity::runtime, "cudaStreamSynchronize", 20, 110)
                             .kernel(10, 100, 0)
                             .kernel(300, 400, 290)
                             .idle();
  EXPECT_EQ(idle_of(idle, IdleCause::host_sync), 195) << "from the device's end until the next launch";
  EXPECT_EQ(idle_of(idle, IdleCause::launch_bound), 5);
}

TEST(Idle, WaitingForDataAndForMemoryAreCausesOfTheirOwn) {
  const IdleTimes idle =
      IdleRecording()
          .kernel(0, 100, 0)
          .host(Activity::annotation, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 120, 180)
          .host(Activity::runtime, "cudaMalloc", 200, 230)
          .kernel(300, 400, 290)
          .idle();
  EXPECT_EQ(idle_of(idle, IdleCause::data_loading), 60);
  EXPECT_EQ(idle_of(idle, IdleCause::allocation), 30);
  EXPECT_EQ(idle_of(idle, IdleCause::launch_bound), 105);
}

TEST(Idle, WithinTheMarkedStepsAlone) {
  const IdleTimes idle = IdleRecording()
                             .host(Activity::annotation, "ProfilerStep#3", 100, 200)
                             .kernel(0, 50)
                             .kernel(150, 160, 140)
                             .kernel(500, 600, 490)
                             .idle();
  EXPECT_EQ(idle.devices.at(0).window_ns, 100);
  EXPECT_EQ(idle.devices[0].idle_ns, 90);
  EXPECT_EQ(idle_of(idle, IdleCause::launch_bound), 45 + 40) << "what ends a gap may lie behind the step";
  EXPECT_THAT(verdict(idle), HasSubstr("of the steps"));
}

TEST(Idle, ALaunchThatNobodySaysIsNotGuessed) {
  const IdleTimes idle = IdleRecording().host(Activity::operation, "op", 0, 100).kernel(40, 100).idle();
  EXPECT_EQ(idle_of(idle, IdleCause::not_known), 40);
}

TEST(Idle, EarlyRanksWaitForTheLast) {
  const IdleTimes idle = IdleRecording()
                             .rank(0)
                             .kernel(0, 100, -1, Activity::all_reduce)
                             .rank(1)
                             .kernel(80, 100, -1, Activity::all_reduce)
                             .idle();
  EXPECT_THAT(idle.waits, ElementsAre(CollectiveWait{Rank{0}, Rank{1}, 80}));
  EXPECT_THAT(verdict(idle), HasSubstr("Rank 0 waited 80.0 ns in collectives for rank 1"));
  EXPECT_EQ(to_json(idle)["collective_waits"][0]["for_rank"], 1);
}

}  // namespace
}  // namespace shard
