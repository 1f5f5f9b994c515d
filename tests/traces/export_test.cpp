// Do exported traces say what the trace says, in the form that foreign viewers accept?
#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "tests/traces/sample_trace.h"
#include "traces/export/chrome_json.h"
#include "traces/export/perfetto.h"
#include "traces/peaks.h"

namespace shard {
namespace {

using Json = nlohmann::ordered_json;
using sample::TempFile;

std::string text_of(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = sample::read_bytes(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Trace random_trace(unsigned seed) {
  const TempFile file;
  sample::write_random(file.path(), seed);
  return *load(file.path());
}

/// Two spans that cross, one inside the first, one empty at its end; names that need escapes.
Trace crossing() {
  const TempFile file;
  Header header;
  header.metadata["model"] = "a \"b\"";
  Result<Writer> writer = Writer::create(file.path(), header);
  EXPECT_TRUE(writer);
  const TrackId track = writer->track({.rank = Rank{0}, .stream = Stream::communication});
  const auto span = [&](const char* name, std::int64_t begin, std::int64_t duration) {
    writer->add(Span{.track = track,
                     .begin_ns = begin,
                     .duration_ns = duration,
                     .op = OpId{7},
                     .name = writer->name(name),
                     .bytes = 64,
                     .unit = UnitId{2}});
  };
  span("outer", 1000, 5000);
  span("cross", 4000, 4000);
  span("inner\n\"\x01", 1000, 1234);
  span("bad \xff utf-8", 6000, 0);
  const auto memory = [&](int buffer, Category category, std::int64_t delta, std::int64_t time) {
    writer->add(MemoryEvent{
        .rank = Rank{0}, .buffer = BufferId{buffer}, .delta_bytes = delta, .category = category, .time_ns = time});
  };
  memory(0, Category::parameter, 100, 0);
  memory(1, Category::activation, 50, 1500);
  memory(1, Category::activation, -50, 3000);
  writer->add(Flow{track, 1000, track, 4000, FlowKind::dependency});
  writer->add(Counter{Rank{0}, writer->name("loss"), 500, 2.5});
  EXPECT_TRUE(writer->close());
  return *load(file.path());
}

Json chrome(const Trace& trace) {
  const TempFile out(".json");
  const Result<void> done = export_chrome_json(trace, out.path());
  EXPECT_TRUE(done) << to_string(done.error());
  return Json::parse(text_of(out.path()));
}

TEST(ChromeJson, SpansMemoryFlowsAndCounters) {
  const Json json = chrome(crossing());
  EXPECT_EQ(json["otherData"]["metadata"]["model"], "a \"b\"");
  std::map<std::string, Json> spans;
  std::vector<Json> memory, flows;
  for (const Json& event : json["traceEvents"]) {
    if (event["ph"] == "X") spans[event["name"]] = event;
    if (event["ph"] == "C" && event["name"] == "device memory") memory.push_back(event);
    if (event["ph"] == "C" && event["name"] == "loss") {
      EXPECT_EQ(event["args"]["value"], 2.5);
    }
    if (event["ph"] == "s" || event["ph"] == "f") flows.push_back(event);
  }
  ASSERT_EQ(spans.size(), 4u);
  EXPECT_EQ(spans["inner\n\"\x01"]["dur"], 1.234);
  EXPECT_EQ(spans["outer"]["ts"], 1.0);
  EXPECT_EQ(spans["outer"]["cat"], "communication");
  EXPECT_EQ(spans["outer"]["args"]["op"], 7);
  EXPECT_EQ(spans["outer"]["args"]["bytes"], 64);
  EXPECT_NE(spans["outer"]["tid"], spans["cross"]["tid"]);
  EXPECT_EQ(spans["outer"]["tid"], spans["inner\n\"\x01"]["tid"]);
  ASSERT_EQ(memory.size(), 3u);
  EXPECT_EQ(memory[1]["args"], (Json{{"parameter", 100}, {"activation", 50}}));
  EXPECT_EQ(memory[2]["args"], (Json{{"parameter", 100}, {"activation", 0}}));
  ASSERT_EQ(flows.size(), 2u);
  EXPECT_EQ(flows[1]["bp"], "e");
}

TEST(ChromeJson, RandomTracesParseAndKeepEverySpan) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    const Trace trace = random_trace(seed);
    const Json json = chrome(trace);
    std::size_t spans = 0, memory = 0;
    for (const Json& event : json["traceEvents"]) {
      spans += event["ph"] == "X";
      memory += event["ph"] == "C" && event["args"].begin().key() != "value";
      if (event.contains("ts")) {
        EXPECT_GE(event["ts"].get<double>(), 0);
      }
    }
    EXPECT_EQ(spans, trace.spans.size());
    EXPECT_EQ(memory, trace.memory.size());
  }
}

// A reader of protobuf's wire format, written from its description alone.
struct Field {
  std::uint32_t number = 0;
  std::uint64_t value = 0;  // varint and fixed64
  std::string bytes;        // length-delimited
};

std::vector<Field> fields(const std::string& text) {
  std::vector<Field> result;
  std::size_t at = 0;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      if (at >= text.size()) throw std::runtime_error("cut varint");
      const auto byte = static_cast<unsigned char>(text[at++]);
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < text.size()) {
    const std::uint64_t tag = varint();
    Field field;
    field.number = static_cast<std::uint32_t>(tag >> 3);
    switch (tag & 7) {
      case 0: field.value = varint(); break;
      case 1:
        std::memcpy(&field.value, text.data() + at, 8);
        at += 8;
        break;
      case 2: {
        const std::uint64_t length = varint();
        if (length > text.size() - at) throw std::runtime_error("cut field");
        field.bytes = text.substr(at, length);
        at += length;
        break;
      }
      default: throw std::runtime_error("unexpected wire type");
    }
    result.push_back(field);
  }
  return result;
}

std::uint64_t number(const std::vector<Field>& message, std::uint32_t field, std::uint64_t otherwise = 0) {
  for (const Field& f : message) {
    if (f.number == field) return f.value;
  }
  return otherwise;
}

std::string bytes(const std::vector<Field>& message, std::uint32_t field) {
  for (const Field& f : message) {
    if (f.number == field) return f.bytes;
  }
  return "";
}

/// What a viewer would show.
struct Shown {
  struct Slice {
    std::uint64_t track, begin, end;
    std::string name;
  };
  std::vector<Slice> slices;
  std::map<std::uint64_t, std::string> track_names;
  std::map<std::string, std::vector<std::pair<std::uint64_t, std::int64_t>>> counters;  // time, value
  std::map<std::uint64_t, int> flows;                                                   // ends per id
};

Shown show(const std::string& file) {
  Shown shown;
  std::map<std::uint64_t, std::string> names;
  std::map<std::uint64_t, std::vector<Shown::Slice>> open;
  for (const Field& packet_field : fields(file)) {
    EXPECT_EQ(packet_field.number, 1u);
    const std::vector<Field> packet = fields(packet_field.bytes);
    EXPECT_EQ(number(packet, 10), 1u);
    for (const Field& entry : fields(bytes(packet, 12))) {
      if (entry.number == 2) names[number(fields(entry.bytes), 1)] = bytes(fields(entry.bytes), 2);
    }
    if (const std::string descriptor = bytes(packet, 60); !descriptor.empty()) {
      const std::vector<Field> track = fields(descriptor);
      EXPECT_TRUE(number(track, 5) == 0 || shown.track_names.contains(number(track, 5)));
      EXPECT_TRUE(shown.track_names.emplace(number(track, 1), bytes(track, 2)).second);
    }
    const std::vector<Field> event = fields(bytes(packet, 11));
    const std::uint64_t track = number(event, 11), time = number(packet, 8);
    switch (number(event, 9)) {
      case 1:
        open[track].push_back({track, time, 0, names.at(number(event, 10, 0) == 0 ? 1 : number(event, 10))});
        break;
      case 2:
        if (open[track].empty()) throw std::runtime_error("an end without a begin");
        open[track].back().end = time;
        EXPECT_GE(time, open[track].back().begin);
        shown.slices.push_back(open[track].back());
        open[track].pop_back();
        break;
      case 3:
        for (const Field& f : event) shown.flows[f.value] += f.number == 47 || f.number == 48;
        break;
      case 4:
        shown.counters[shown.track_names.at(track)].emplace_back(time, static_cast<std::int64_t>(number(event, 30)));
        break;
      default: break;
    }
  }
  for (const auto& [track, stack] : open) EXPECT_TRUE(stack.empty());
  return shown;
}

TEST(Perfetto, SpansMemoryFlowsAndCounters) {
  const TempFile out(".pftrace");
  ASSERT_TRUE(export_perfetto(crossing(), out.path()));
  Shown shown = show(text_of(out.path()));
  ASSERT_EQ(shown.slices.size(), 4u);
  std::map<std::string, Shown::Slice> by_name;
  for (const Shown::Slice& slice : shown.slices) by_name[slice.name] = slice;
  EXPECT_EQ(by_name["outer"].begin, 1000u);
  EXPECT_EQ(by_name["outer"].end, 6000u);
  EXPECT_EQ(by_name["inner\n\"\x01"].end, 2234u);
  EXPECT_EQ(by_name["bad \xff utf-8"].begin, by_name["bad \xff utf-8"].end);
  EXPECT_EQ(shown.track_names[by_name["outer"].track], "communication");
  EXPECT_EQ(shown.track_names[by_name["cross"].track], "communication 2");
  using Samples = std::vector<std::pair<std::uint64_t, std::int64_t>>;
  EXPECT_EQ(shown.counters["device memory"], (Samples{{0, 100}, {1500, 150}, {3000, 100}}));
  EXPECT_EQ(shown.counters["device memory: activation"], (Samples{{1500, 50}, {3000, 0}}));
  EXPECT_EQ(shown.flows[1], 2);
}

TEST(Perfetto, RandomTracesKeepEverySpanAndThePeak) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    const Trace trace = random_trace(seed);
    const TempFile out(".pftrace");
    ASSERT_TRUE(export_perfetto(trace, out.path()));
    const Shown shown = show(text_of(out.path()));
    std::multiset<std::int64_t> durations, expected(trace.spans.duration_ns.begin(), trace.spans.duration_ns.end());
    for (const Shown::Slice& slice : shown.slices) durations.insert(static_cast<std::int64_t>(slice.end - slice.begin));
    EXPECT_EQ(durations, expected);
    std::int64_t peak = 0, exported = 0;
    for (const MemoryPeak& row : memory_peaks(trace)) peak = std::max(peak, row.live_peak_bytes);
    for (const Memory memory : {Memory::device, Memory::host, Memory::disk}) {
      const auto at = shown.counters.find(std::string(to_string(memory)) + " memory");
      if (at == shown.counters.end()) continue;
      for (const auto& [time, value] : at->second) exported = std::max(exported, value);
    }
    EXPECT_EQ(exported, peak);
  }
}

TEST(Perfetto, ProtocDecodesIt) {
  if (std::system("command -v protoc > /dev/null 2>&1") != 0) GTEST_SKIP() << "protoc is not installed";
  const TempFile out(".pftrace"), decoded(".txt");
  const Trace trace = random_trace(2);
  ASSERT_TRUE(export_perfetto(trace, out.path()));
  const std::string command = "protoc --decode_raw < '" + out.path().string() + "' > '" + decoded.path().string() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string text = text_of(decoded.path());
  std::size_t begins = 0;
  for (std::size_t at = text.find("\n    9: 1\n"); at != std::string::npos; at = text.find("\n    9: 1\n", at + 1)) {
    ++begins;
  }
  EXPECT_EQ(begins, trace.spans.size());
}

TEST(Export, FaultsLeaveNothingBehind) {
  const Trace trace = random_trace(1);
  for (const auto& write : {export_chrome_json, export_perfetto}) {
    const Result<void> nowhere = write(trace, "/nonexistent/folder/out");
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().code, Errc::cannot_create);
    const Result<void> full = write(trace, "/dev/full");
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code, Errc::io);
    const TempFile out(".out");
    ASSERT_TRUE(write(trace, out.path()));
    EXPECT_FALSE(std::filesystem::exists(out.path().string() + ".partial"));
  }
}

}  // namespace
}  // namespace shard
