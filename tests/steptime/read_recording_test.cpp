// Is a recording read whoever made it, and is what is none an error that names what would be?
#include "profiler/steptime/read_recording.h"

#include <gmock/gmock.h>

#include <fstream>

#include "traces/base/scratch.h"
#include "traces/import/nsys_program.h"
#include "traces/import/write_trace.h"
#include "traces/writer.h"

namespace shard::steptime {
namespace {

using import::KinetoOperator;

using ::testing::AllOf;
using ::testing::HasSubstr;

class ReadRecording : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return folder_->path() + "/" + name; }
  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  /// A kernel of 5,000 ns under an operator's range, launched by a call.
  std::string trace(const std::string& name, const Header& header) {
    Result<Writer> writer = Writer::create(path(name), header);
    EXPECT_TRUE(writer);
    const Rank rank{0};
    const auto row = [&](TrackKind kind, const char* called) {
      return writer->track({.rank = rank, .kind = kind, .name = called});
    };
    const TrackId calls = row(TrackKind::other, "process 7 thread 8, CUDA calls"),
                  ranges = row(TrackKind::other, "process 7 thread 8, ranges"),
                  stream = row(TrackKind::stream, "GPU 0 stream 7");
    writer->add(Span{.track = calls, .begin_ns = 120, .duration_ns = 10, .activity = Activity::runtime});
    writer->add(Span{.track = ranges,
                     .begin_ns = 100,
                     .duration_ns = 50,
                     .name = writer->name("aten::mm, op_id = 5, sizes = [[2, 3], [3, 4]]"),
                     .activity = Activity::annotation});
    writer->add(Span{.track = stream,
                     .begin_ns = 200,
                     .duration_ns = 5000,
                     .name = writer->name("_Z4gemmv"),
                     .activity = Activity::kernel});
    writer->add(Flow{.from_track = calls, .from_ns = 120, .to_track = stream, .to_ns = 200, .kind = FlowKind::launch});
    EXPECT_TRUE(writer->close());
    return path(name);
  }

  Result<Scratch> folder_ = Scratch::make_temporary("the test's files");
};

KinetoOperator mm() {
  return *import::operator_of_range("aten::mm, seq = 3, op_id = 9, sizes = [[2, 3], [3, 4], []]");
}

TEST_F(ReadRecording, OfOurOwnProfilerHasNamesAndRanges) {
  const Result<Recorded> recorded = read_recording(trace("run.sst", {.kind = TraceKind::measured}));
  ASSERT_TRUE(recorded) << to_string(recorded.error());
  EXPECT_FALSE(recorded->has_sizes());
  const std::int32_t kind = recorded->kind_of("gemm", {1, 2, 3}, {4, 5, 6});
  ASSERT_GE(kind, 0);
  EXPECT_DOUBLE_EQ(recorded->of_kind(kind).mean(), 5e-6);
  ASSERT_TRUE(recorded->of(mm()));
  EXPECT_DOUBLE_EQ(*recorded->of(mm()), 5e-6);
}

TEST_F(ReadRecording, PredictionsAndRunsOfOurExecutorAreNoRecordingsOfTheProgram) {
  const Result<Recorded> predicted = read_recording(trace("predicted.sst", {.kind = TraceKind::predicted}));
  ASSERT_FALSE(predicted);
  EXPECT_THAT(predicted.error().what, HasSubstr("prediction"));
  const Result<Recorded> own =
      read_recording(trace("own.sst", {.kind = TraceKind::measured, .plan_hash = std::string(64, 'a')}));
  ASSERT_FALSE(own);
  EXPECT_THAT(own.error().what, HasSubstr("executor"));
}

TEST_F(ReadRecording, OfPyTorchsProfilerWithoutShapesHasSizes) {
  constexpr const char* kText = R"json([
{"ph":"X","cat":"cpu_op","name":"aten::mm","ts":1,"dur":9,"tid":1,"args":{"External id":4}},
{"ph":"X","cat":"kernel","name":"void f<2>(int)","ts":20,"dur":5,
 "args":{"External id":4,"grid":[7,1,1],"block":[64,1,1]}}])json";
  const Result<Recorded> recorded = read_recording(file("run.json", kText));
  ASSERT_TRUE(recorded) << to_string(recorded.error());
  EXPECT_EQ(recorded->count(), 0u);
  EXPECT_GE(recorded->kind_of("f<2>", {7, 1, 1}, {64, 1, 1}), 0);
  EXPECT_EQ(recorded->kind_of("f<2>", {8, 1, 1}, {64, 1, 1}), -1);
}

TEST_F(ReadRecording, OtherFilesAreErrorsThatNameTheThreeKinds) {
  for (const std::string& other :
       {file("report.nsys-rep", "\x8aNsys"), file("snapshot.pickle", "\x80\x02}"), file("empty.json", "")}) {
    const Result<Recorded> recorded = read_recording(other);
    ASSERT_FALSE(recorded) << other;
    EXPECT_EQ(recorded.error().code, Errc::contradiction);
    EXPECT_THAT(recorded.error().help, AllOf(HasSubstr("PyTorch's profiler"), HasSubstr("nsys export --type sqlite"),
                                             HasSubstr("shardscope profile")));
  }
}

TEST_F(ReadRecording, WithoutKernelsIsAnError) {
  const Result<Recorded> recorded = read_recording(file("none.json", "[]"));
  ASSERT_FALSE(recorded);
  EXPECT_THAT(recorded.error().help, HasSubstr("ProfilerActivity.CUDA"));
}

TEST(OperatorOfRange, IsNoneWhereTheProgramNamedTheRange) {
  for (const char* text : {"step 1", "epoch 3, batch 5", ", op_id = 5", "", "loss, sizes"})
    EXPECT_FALSE(import::operator_of_range(text)) << text;
  for (const char* text : {"aten::add", "AddmmBackward0, seq = 12", "Forward, op_id = 1"})
    EXPECT_TRUE(import::operator_of_range(text)) << text;
}

TEST(OperatorOfRange, HasTheSizesThatEmitNvtxWrites) {
  EXPECT_EQ(mm().name, "aten::mm");
  ASSERT_EQ(mm().inputs.size(), 2u);
  EXPECT_THAT(mm().inputs[1].sizes, ::testing::ElementsAre(3, 4));
  EXPECT_TRUE(import::operator_of_range("aten::add")->inputs.empty());
  for (const char* other : {"step 5", "aten::mm, sizes = [[2", "aten::mm, sizes = 2]", "aten::mm, sizes = [[x]]"})
    EXPECT_FALSE(import::operator_of_range(other)) << other;
}

}  // namespace
}  // namespace shard::steptime
