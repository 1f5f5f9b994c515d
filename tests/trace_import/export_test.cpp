// Do the table, the picture and the other forms say what the trace says, also to readers that are not ours?
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>
#include <regex>
#include <sstream>

#include "tests/trace_import/files.h"
#include "tests/trace_import/two_ranks.h"
#include "traces/export/csv.h"
#include "traces/export/memory_svg.h"
#include "traces/export/perfetto.h"
#include "traces/import/write_trace.h"
#include "traces/peaks.h"

namespace shard {
namespace {

using sample::TempFile;

std::string text_of(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = sample::read_bytes(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(ExportCsv, ARowPerEventWithEveryColumn) {
  const Trace trace = sample::two_ranks(1);
  const TempFile file(".csv");
  ASSERT_TRUE(export_csv(trace, file.path()));
  const std::vector<std::string> lines = lines_of(text_of(file.path()));
  ASSERT_EQ(lines.size(), 1 + trace.spans.size() + trace.memory.size() + trace.counters.size() + trace.flows.size());
  for (const std::string& line : lines) EXPECT_EQ(std::count(line.begin(), line.end(), ','), 18) << line;
  const Span first = trace.spans[0];
  EXPECT_THAT(lines[1], ::testing::StartsWith("span,0,compute," + std::string(trace.name_of(first.name)) + "," +
                                              std::to_string(first.begin_ns) + ","));
  EXPECT_THAT(lines, ::testing::Contains("counter,1,,loss,5,5,0,,,,,,,,,,2.5,,"));
  EXPECT_THAT(lines, ::testing::Contains("flow,0,compute,communication,1,9,,,,,,,,,,,,,"));
}

TEST(ExportCsv, QuotesWhatNeedsIt) {
  const TempFile native, file(".csv");
  Result<Writer> writer = Writer::create(native.path(), Header{});
  ASSERT_TRUE(writer);
  writer->add(Span{.track = writer->track({.rank = Rank{0}}), .name = writer->name("a,\"b\"\nc")});
  ASSERT_TRUE(writer->close());
  ASSERT_TRUE(export_csv(*load(native.path()), file.path()));
  EXPECT_THAT(text_of(file.path()), ::testing::HasSubstr("span,0,compute,\"a,\"\"b\"\" c\",0,0,0,"));
}

TEST(ExportSvg, APanelPerRankWithItsPeak) {
  const Trace trace = sample::two_ranks(2);
  const TempFile file(".svg");
  ASSERT_TRUE(export_memory_svg(trace, file.path()));
  const std::string svg = text_of(file.path());
  EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
  std::map<int, std::int64_t> peaks;
  for (const MemoryPeak& peak : memory_peaks(trace)) {
    peaks[peak.rank.value] = std::max(peaks[peak.rank.value], peak.live_peak_bytes);
  }
  for (const auto& [rank, bytes] : peaks) {
    EXPECT_THAT(svg, ::testing::HasSubstr("rank " + std::to_string(rank) + ", device memory: peak " +
                                          std::to_string(bytes) + " B at "));
  }
}

/// The highest y that a path of this class reaches is its smallest number after V or the start.
double top_of(const std::string& svg, const std::string& category) {
  std::smatch path;
  const std::regex whole("<path class=\"" + category + "\" d=\"([^\"]*)\"");
  if (!std::regex_search(svg, path, whole)) return -1;
  const std::string d = path[1];
  const std::regex number("V([0-9.]+)");
  double top = 1e9;
  for (std::sregex_iterator at(d.begin(), d.end(), number), end; at != end; ++at)
    top = std::min(top, std::stod((*at)[1]));
  return top;
}

TEST(ExportSvg, ASpikeOfOneSampleAmongThousandsIsDrawn) {
  const TempFile native, file(".svg");
  Result<Writer> writer = Writer::create(native.path(), Header{});
  ASSERT_TRUE(writer);
  const auto memory = [&](int buffer, std::int64_t delta, std::int64_t time) {
    writer->add(MemoryEvent{.rank = Rank{0},
                            .buffer = BufferId{buffer},
                            .delta_bytes = delta,
                            .category = Category::activation,
                            .time_ns = time});
  };
  for (int i = 0; i < 50'000; ++i) memory(0, i % 2 == 0 ? 100 : -100, i);
  memory(1, 1000, 50'000);
  memory(1, -1000, 50'000);
  for (int i = 0; i < 50'000; ++i) memory(0, i % 2 == 0 ? 100 : -100, 50'001 + i);
  ASSERT_TRUE(writer->close());
  ASSERT_TRUE(export_memory_svg(*load(native.path()), file.path(), {.panel_height = 210}));
  const std::string svg = text_of(file.path());
  // The scale is 5 % above the peak of 1000 bytes: 210 pixels are 1050 bytes.
  EXPECT_DOUBLE_EQ(top_of(svg, "activation"), 44 + 10);
  EXPECT_THAT(svg, ::testing::HasSubstr("peak 1000 B"));
}

TEST(ExportSvg, ATraceWithoutMemoryIsRefused) {
  const TempFile file(".svg");
  const Result<void> result = export_memory_svg(Trace{}, file.path());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::contradiction);
}

TEST(WriteTrace, AnImportedTraceIsTheSameAsAFileOfOurOwn) {
  const LoadedTrace all = files::loaded(files::small_json());
  const TempFile file;
  ASSERT_TRUE(write_trace(all.trace, file.path()));
  const Result<LoadedTrace> again = load_any(file.path());
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_EQ(again->format, TraceFormat::sst);
  EXPECT_EQ(again->trace.tracks.size(), all.trace.tracks.size() + 1);  // memory has a track of its own there
  EXPECT_EQ(files::spans(again->trace), files::spans(all.trace));
  EXPECT_EQ(again->trace.flows.size(), 1u);
  EXPECT_EQ(again->trace.counters.size(), all.trace.counters.size());
  EXPECT_TRUE(again->trace.complete());
}

/// What a command prints; nothing where it fails.
std::optional<std::string> output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string text;
  std::array<char, 4096> part{};
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), pipe)) text.append(part.data(), count);
  return ::pclose(pipe) == 0 ? std::optional(text) : std::nullopt;
}

TEST(ExportPerfetto, ProtocReadsEveryField) {
  if (!output_of("protoc --version 2>/dev/null")) GTEST_SKIP() << "protoc (protobuf-compiler) is not installed";
  const Trace trace = sample::two_ranks(3);
  const TempFile file(".pftrace");
  ASSERT_TRUE(export_perfetto(trace, file.path()));
  const auto text =
      output_of("protoc -I '" TEST_DATA "/trace_import' --decode=perfetto.protos.Trace perfetto_fields.proto <'" +
                file.path().string() + "'");
  ASSERT_TRUE(text);
  std::size_t begins = 0, ends = 0, counters = 0;
  for (const std::string& line : lines_of(*text)) {
    begins += line.find("TYPE_SLICE_BEGIN") != std::string::npos;
    ends += line.find("TYPE_SLICE_END") != std::string::npos;
    counters += line.find("TYPE_COUNTER") != std::string::npos;
    EXPECT_FALSE(std::regex_match(line, std::regex(" *[0-9]+[:{ ].*"))) << "a field without a name: " << line;
  }
  EXPECT_EQ(begins, trace.spans.size());
  EXPECT_EQ(ends, trace.spans.size());
  EXPECT_EQ(counters, 2 * trace.memory.size() + trace.counters.size());
}

}  // namespace
}  // namespace shard
