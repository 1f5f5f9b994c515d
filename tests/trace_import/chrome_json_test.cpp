// Does JSON of Chrome, Perfetto's UI and PyTorch's profiler say in a Trace what it says in the file?
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/trace_import/files.h"
#include "traces/import/json_reader.h"
#include "traces/peaks.h"

namespace shard {
namespace {

using files::loaded;
using files::spans;

std::string events(const std::string& list) {
  return "{\"traceEvents\":[" + list + "]}";
}

TEST(ImportChrome, EveryPhase) {
  const LoadedTrace all = loaded(files::small_json());
  EXPECT_EQ(all.format, TraceFormat::kineto);
  EXPECT_EQ(all.trace.header.world_size, 2);
  EXPECT_EQ(spans(all.trace),
            "aten::mm 10500+4250 | gemm 12000+2000 | outer 1000+3001 | inner 2000+1000 | read 20000+5000");
  EXPECT_EQ(files::track_names(all.trace), "python, main | GPU 0 stream 20 | python, thread worker | python, io");
  EXPECT_EQ(all.lane_count, 4);
  for (const Track& track : all.trace.tracks) EXPECT_EQ(track.rank, Rank{1});
  ASSERT_EQ(all.instants.size(), 1u);
  EXPECT_EQ(all.instants[0].time_ns, 5000);
  ASSERT_EQ(all.trace.flows.size(), 1u);
  EXPECT_EQ(all.trace.flows[0].kind, FlowKind::launch);
  EXPECT_EQ(all.trace.flows[0].from_ns, 11000);
  EXPECT_EQ(all.trace.flows[0].to_ns, 12000);
  EXPECT_EQ(all.flow_event_count, 2);
  EXPECT_TRUE(all.trace.complete());
  EXPECT_THAT(all.notes, ::testing::IsEmpty());
}

TEST(ImportChrome, MemoryInstantsAndWhatWasThereBefore) {
  const LoadedTrace all = loaded(files::small_json());
  EXPECT_EQ(all.memory_event_count, 2);
  ASSERT_EQ(all.trace.memory.size(), 3u);  // the bytes allocated before the recording, first
  EXPECT_EQ(all.trace.memory[0].delta_bytes, 1024);
  EXPECT_EQ(all.trace.memory[1].delta_bytes, 512);
  EXPECT_EQ(all.trace.memory[2].delta_bytes, -512);
  EXPECT_EQ(all.trace.memory[1].buffer, all.trace.memory[2].buffer);
  EXPECT_EQ(memory_peaks(all.trace).front().live_peak_bytes, 1536);
}

TEST(ImportChrome, CountersCarryTheirSeries) {
  const Trace trace = loaded(files::small_json()).trace;
  std::vector<std::string> found;
  for (const Counter& c : trace.counters) {
    found.push_back(std::string(trace.name_of(c.name)) + "=" + std::to_string(static_cast<int>(c.value * 10)));
  }
  EXPECT_THAT(found, ::testing::UnorderedElementsAre("queue length=30", "queue depth=15", "reserved_bytes=20480",
                                                     "reserved_bytes=20480"));
}

TEST(ImportChrome, TimesAreExactToTheNanosecond) {
  // Beyond 2^53 a double would lose the nanoseconds.
  EXPECT_EQ(
      spans(loaded(events(R"({"ph":"X","name":"a","pid":1,"tid":1,"ts":1695835542514261.123,"dur":0.001})")).trace),
      "a 1695835542514261123+1");
  EXPECT_EQ(spans(loaded(events(R"({"ph":"X","name":"a","pid":1,"tid":1,"ts":"-2.5","dur":1e3})")).trace),
            "a -2500+1000000");
}

TEST(ImportChrome, DecimalsTimesThousand) {
  const auto value = [](std::string_view text) {
    std::int64_t result = -1;
    return import::thousandfold(text, result) ? std::to_string(result) : std::string("none");
  };
  EXPECT_EQ(value("0"), "0");
  EXPECT_EQ(value("12.3456"), "12346");
  EXPECT_EQ(value("12.3454"), "12345");
  EXPECT_EQ(value("-0.0005"), "-1");
  EXPECT_EQ(value("1.5e6"), "1500000000");
  EXPECT_EQ(value("25e-1"), "2500");
  EXPECT_EQ(value("1e-9"), "0");
  EXPECT_EQ(value("4e15"), "4000000000000000000");
  EXPECT_EQ(value("1e40"), "none");
  EXPECT_EQ(value("0e300"), "0");
  EXPECT_EQ(value("1.2.3"), "none");
  EXPECT_EQ(value(""), "none");
  EXPECT_EQ(value("-"), "none");
  EXPECT_EQ(value("abc"), "none");
}

TEST(ImportChrome, BareListWithoutItsEnd) {
  const std::string text = R"([{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1},)";
  const LoadedTrace all = loaded(text);
  EXPECT_EQ(spans(all.trace), "a 1000+1000");
  ASSERT_EQ(all.trace.truncated.size(), 1u);
  EXPECT_EQ(all.trace.truncated[0].offset, text.size());
}

TEST(ImportChrome, ControlCharactersAndStrayEscapes) {
  const Trace trace =
      loaded(
          events(
              "{\"ph\":\"X\",\"name\":\"a\x01\n\\u00e9\\ud83d\\ude00\\q\xff\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1}"))
          .trace;
  EXPECT_EQ(trace.names.at(0), "a\x01\n\xc3\xa9\xf0\x9f\x98\x80\\q\xff");
}

TEST(ImportChrome, EndsBeforeBeginsInTheFileAreSortedByTime) {
  EXPECT_EQ(spans(loaded(events(R"({"ph":"E","pid":1,"tid":1,"ts":9},{"ph":"B","name":"b","pid":1,"tid":1,"ts":5},
      {"ph":"E","pid":1,"tid":1,"ts":6},{"ph":"B","name":"a","pid":1,"tid":1,"ts":1})"))
                      .trace),
            "a 1000+8000 | b 5000+1000");
}

TEST(ImportChrome, WhatNeverEndedLastsToTheEndOfAWholeFile) {
  const std::string begins = R"({"ph":"B","name":"b","pid":1,"tid":1,"ts":5},{"ph":"E","pid":1,"tid":2,"ts":6})";
  const LoadedTrace all = loaded(events(begins + R"(,{"ph":"X","name":"x","pid":1,"tid":3,"ts":7,"dur":2})"));
  EXPECT_EQ(spans(all.trace), "b 5000+4000 | x 7000+2000");
  EXPECT_THAT(all.notes, ::testing::ElementsAre("1 spans without an end, shown to the end of the file",
                                                "1 ends of spans that never began"));
  EXPECT_TRUE(loaded("[" + begins).trace.spans.empty());  // the end may have been cut off
}

TEST(ImportChrome, IdsOfAProcessAndOfAll) {
  EXPECT_EQ(spans(loaded(events(R"({"ph":"b","cat":"c","name":"own","id2":{"local":"0x1"},"pid":1,"ts":1},
      {"ph":"b","cat":"c","name":"other","id2":{"local":"0x1"},"pid":2,"ts":2},
      {"ph":"b","cat":"c","name":"all","id2":{"global":"0x1"},"pid":1,"ts":3},
      {"ph":"e","cat":"c","name":"own","id2":{"local":"0x1"},"pid":1,"ts":5},
      {"ph":"e","cat":"c","name":"other","id2":{"local":"0x1"},"pid":2,"ts":7},
      {"ph":"e","cat":"c","name":"all","id2":{"global":"0x1"},"pid":2,"ts":9})"))
                      .trace),
            "own 1000+4000 | all 3000+6000 | other 2000+5000");
}

TEST(ImportChrome, ArrowsThatSpansName) {
  const LoadedTrace all =
      loaded(events(R"({"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2,"bind_id":"0x5","flow_out":true},
      {"ph":"X","name":"b","pid":1,"tid":2,"ts":4,"dur":2,"bind_id":"0x5","flow_in":true})"));
  EXPECT_EQ(all.flow_event_count, 2);
  ASSERT_EQ(all.trace.flows.size(), 1u);
  EXPECT_EQ(all.trace.flows[0].from_ns, 1000);
  EXPECT_EQ(all.trace.flows[0].to_ns, 4000);
}

TEST(ImportChrome, ProfilerStepsNumberTheSpans) {
  const Trace trace =
      loaded(events(
                 R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#7","pid":1,"tid":1,"ts":10,"dur":10},
         {"ph":"X","cat":"user_annotation","name":"ProfilerStep#8","pid":1,"tid":1,"ts":20,"dur":10},
         {"ph":"X","cat":"cpu_op","name":"early","pid":1,"tid":2,"ts":1,"dur":1},
         {"ph":"X","cat":"cpu_op","name":"late","pid":1,"tid":2,"ts":25,"dur":1})"))
          .trace;
  const std::vector<StepTime> steps = step_times(trace);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].step, 7);
  EXPECT_EQ(steps[1].step, 8);
}

TEST(ImportChrome, GzipIsTheSame) {
  const LoadedTrace plain = loaded(files::small_json()), packed = loaded(files::gzip(files::small_json()));
  EXPECT_EQ(to_json(plain, summarize(plain)), to_json(packed, summarize(packed)));
  EXPECT_EQ(spans(plain.trace), spans(packed.trace));
}

TEST(ImportChrome, ADamagedGzipGivesWhatIsComplete) {
  std::string many;
  for (int i = 0; i < 20'000; ++i) {
    many += (i == 0 ? "" : ",") + std::string(R"({"ph":"X","name":"a","pid":1,"tid":1,"ts":)") + std::to_string(i) +
            R"(,"dur":1})";
  }
  std::string packed = files::gzip(events(many));
  packed.resize(packed.size() / 2);
  const LoadedTrace half = loaded(packed);
  EXPECT_GT(half.trace.spans.size(), 1000u);
  EXPECT_LT(half.trace.spans.size(), 20'000u);
  ASSERT_EQ(half.trace.truncated.size(), 1u);
  EXPECT_THAT(half.trace.truncated[0].why, ::testing::HasSubstr("compressed data"));
}

TEST(ImportChrome, OtherJsonIsRefusedWithItsPlace) {
  const Result<LoadedTrace> other = files::read(R"({"a": [1, 2]})");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Errc::malformed);
  EXPECT_FALSE(files::read(R"([{"name": "weight", "elements": 12}])"));
  const Result<LoadedTrace> broken = files::read(R"({"traceEvents": [{"ph" "X"}]})");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().where, "file: byte 23");
}

// Counts are those of the file, by Python's own reader (make_profiler_trace.py wrote it).
TEST(ImportChrome, PyTorchProfilerOfACpuRun) {
  const Result<LoadedTrace> all = load_any(TEST_DATA "/data/traces/pytorch-cpu.json.gz");
  ASSERT_TRUE(all) << to_string(all.error());
  const TraceSummary summary = summarize(*all);
  EXPECT_EQ(summary.format, "kineto");
  EXPECT_EQ(summary.span_count, 352);
  EXPECT_EQ(summary.lane_count, 2);
  EXPECT_EQ(summary.memory_event_count, 97);
  EXPECT_EQ(summary.begin_ns, 4'401'917'985'106'318);
  EXPECT_EQ(summary.end_ns, 4'401'917'986'703'179);
  EXPECT_EQ(all->flow_event_count, 42);
  EXPECT_EQ(all->trace.flows.size(), 21u);
  EXPECT_EQ(all->instants.size(), 2u);
  ASSERT_EQ(summary.steps.size(), 3u);
  EXPECT_EQ(summary.steps.front().step, 2);
  // "Total Allocated" of the events themselves: at most and at the end.
  EXPECT_EQ(summary.peaks.back().live_peak_bytes, 57'892);
  std::int64_t live = 0;
  for (const std::int64_t delta : all->trace.memory.delta_bytes) live += delta;
  EXPECT_EQ(live, 37'412);
}

TEST(ImportChrome, KinetoRecordingOfOneGpu) {
  const auto path = files::recording("kineto-gpu-alexnet.json.gz");
  SKIP_WITHOUT(path);
  const Result<LoadedTrace> all = load_any(path);
  ASSERT_TRUE(all) << to_string(all.error());
  const TraceSummary summary = summarize(*all);
  EXPECT_EQ(summary.format, "kineto");
  EXPECT_EQ(summary.span_count, 868);
  EXPECT_EQ(summary.lane_count, 5);
  EXPECT_EQ(summary.end_ns - summary.begin_ns, 43'458'523'000);
  EXPECT_EQ(all->flow_event_count, 155 + 345);
  EXPECT_EQ(all->trace.flows.size(), 139u);  // ids that both a start and an end have
  EXPECT_TRUE(all->trace.complete());
}

TEST(ImportChrome, KinetoRecordingOfADistributedRun) {
  const auto path = files::recording("kineto-gpu-sampled.json.gz");
  SKIP_WITHOUT(path);
  const Result<LoadedTrace> all = load_any(path);
  ASSERT_TRUE(all) << to_string(all.error());
  const TraceSummary summary = summarize(*all);
  EXPECT_EQ(summary.span_count, 4676);
  EXPECT_EQ(summary.lane_count, 8);
  EXPECT_EQ(summary.header.world_size, 128);
  EXPECT_EQ(summary.begin_ns, 1'682'725'897'227'300'000);
  EXPECT_EQ(summary.end_ns, 1'682'725'900'593'698'000);
  EXPECT_EQ(summary.steps.size(), 2u);
  for (const Track& track : all->trace.tracks) EXPECT_EQ(track.rank, Rank{1});
}

}  // namespace
}  // namespace shard
