// The commands: what do files, options and broken input lead to?
#include "viewer/commands/commands.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/cli/times.h"
#include "tests/viewer/driver.h"
#include "tests/viewer/ran.h"
#include "traces/import/import.h"
#include "viewer/commands/report.h"
#include "viewer/commands/time_option.h"
#include "viewer/commands/view_options.h"
#include "viewer/sink/picture.h"

namespace shard::view {
namespace {

std::string temporary(const std::string& name) {
  return testing::TempDir() + "viewer_commands_" + name;
}

std::string first_bytes(const std::string& from, std::size_t count, const std::string& name) {
  std::string path = temporary(name);
  std::ofstream(path, std::ios::binary) << text_of(from).substr(0, count);
  return path;
}

TEST(View, ScreenshotHasTheSizeAskedForAndTheCostsAreReported) {
  const std::string path = temporary("whole.png");
  const Ran ran = run(
      view_command, {data("predicted.sst"), data("measured.sst"), "--screenshot", path, "--size", "800x500", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  for (const char* key : {"load_seconds", "first_picture_seconds", "build_seconds", "draw_seconds"})
    EXPECT_GT(json.at(key).get<double>(), 0) << key;
  EXPECT_GT(json.at("resident_bytes").get<std::int64_t>(), 1 << 20);
  EXPECT_EQ(json.at("traces").size(), 2U);
  const Result<Picture> picture = read_png(path);
  ASSERT_TRUE(picture.has_value());
  EXPECT_EQ(picture->width, 800);
  EXPECT_EQ(picture->height, 500);
}

TEST(View, MistakesAreNamedWithTheirExitCode) {
  struct Case {
    std::vector<std::string> arguments;
    int code;
    std::string says;
  };
  const std::string trace = data("predicted.sst");
  for (const Case& each : std::vector<Case>{
           {{}, 2, "nothing to open"},
           {{trace, "--at", "3x"}, 2, "'3x' is no time"},
           {{trace, "--range", "5ms:3ms"}, 2, "is empty"},
           {{trace, "--size", "12x9"}, 2, "is no size"},
           {{trace, "--theme", "grey"}, 2, "dark"},
           {{trace, "--json"}, 78, "--screenshot"},
           {{trace, "--rank", "7", "--screenshot", temporary("a.png")}, 78, "no trace has a rank 7"},
           {{trace, "--step", "77", "--screenshot", temporary("a.png")}, 78, "no step 77"},
           {{trace, "--step", "1", "--range", "1:2", "--screenshot", temporary("a.png")}, 78, "keep one of them"},
           {{trace, "--select", "999999", "--screenshot", temporary("a.png")}, 78, "op 999999"},
           {{"absent.sst", "--screenshot", temporary("a.png")}, 66, "absent.sst"},
           {{"--search", trace, "--screenshot", temporary("a.png")}, 65, "predicted.sst"},
           {{trace, "--screenshot", "/nowhere/at/all.png"}, 73, "/nowhere/at/all.png"},
       }) {
    const Ran ran = run(view_command, each.arguments);
    EXPECT_EQ(ran.code, each.code) << testing::PrintToString(each.arguments) << ran.err;
    EXPECT_NE(ran.err.find(each.says), std::string::npos) << ran.err;
  }
}

TEST(View, DifferentPlansAreRefusedWithTheReasonUnlessForced) {
  const Result<LoadedTrace> loaded = load_any(std::filesystem::path(data("measured.sst")));
  ASSERT_TRUE(loaded.has_value());
  Trace other = loaded->trace;
  other.header.plan_hash = "00000000000000000000000000000000";
  const Document a = Document::build(Trace(loaded->trace), "a");
  const Document b = Document::build(std::move(other), "b");
  const auto refused = compare_documents(a, b, false);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::contradiction);
  EXPECT_TRUE(compare_documents(a, b, true).has_value());
}

TEST(View, ABrokenOffTraceIsShownAsFarAsItGoesAndSaysSo) {
  const std::string whole = text_of(data("predicted.sst"));
  Sources sources;
  sources.traces = {first_bytes(data("predicted.sst"), whole.size() - 40, "cut.sst")};
  const Result<Session> session = load_session(sources);
  ASSERT_TRUE(session.has_value()) << to_string(session.error());
  ASSERT_EQ(session->problems.size(), 1U);
  EXPECT_NE(session->problems[0].what.find("byte"), std::string::npos) << session->problems[0].what;
  EXPECT_NE(session->problems[0].kept.find("spans"), std::string::npos) << session->problems[0].kept;
  EXPECT_FALSE(session->documents[0].trace().spans.empty());
}

TEST(View, RangeAndSelectFindTheOpAsItRanThere) {
  const std::string path = temporary("range.png");
  const Ran ran =
      run(view_command, {data("predicted.sst"), "--range", "10ms:20ms", "--select", "146", "--screenshot", path});
  EXPECT_EQ(ran.code, 0) << ran.err;
}

TEST(View, StepAndAlignShowThatStepOfBoth) {
  const Session session = predicted_and_measured();
  ViewOptions options;
  options.step = 1;
  options.align = AlignMode::stretch;
  const Result<ViewState> state = first_state(session, options);
  ASSERT_TRUE(state.has_value()) << to_string(state.error());
  const StepTime step = session.documents[0].steps()[1];
  EXPECT_EQ(state->camera, fit(state->camera.origin_ns, {step.begin_ns, step.end_ns}));
  // Stretched, the reference steps end together, and whatever is shown lies in the range of all.
  const Alignment alignment = alignment_of(session, AlignMode::stretch, 1);
  EXPECT_NE(alignment.scale, 1);
  EXPECT_TRUE(
      whole_range(session, AlignMode::clock)
          .contains(alignment_of(session, AlignMode::clock, 1).to_first(session.documents[1].range().begin_ns)));
}

TEST(View, RankThemeMarkAndPaneAreTheFirstState) {
  const Session session = predicted_alone();
  ViewOptions options;
  options.rank = 1;
  options.theme = ThemeName::light;
  options.at_ns = 5'000'000;
  options.pane = Pane::memory;
  options.find = "gather";
  const Result<ViewState> state = first_state(session, options);
  ASSERT_TRUE(state.has_value()) << to_string(state.error());
  EXPECT_EQ(state->rank, Rank{1});
  EXPECT_EQ(state->theme, ThemeName::light);
  EXPECT_EQ(state->marker_ns, session.documents[0].range().begin_ns + 5'000'000);
  EXPECT_EQ(state->only, Pane::memory);
  EXPECT_EQ(state->query, "gather");
}

TEST(View, SelectWithAStepFindsTheOpAsItRanThere) {
  const Session session = predicted_alone();
  ViewOptions options;
  options.op = 146;
  options.step = 2;
  const Result<ViewState> state = first_state(session, options);
  ASSERT_TRUE(state.has_value()) << to_string(state.error());
  ASSERT_TRUE(state->selected.has_value());
  EXPECT_EQ(session.documents[0].trace().spans.step[state->selected->span], 2);
}

TEST(View, SelectOfARankFindsTheOpThere) {
  const Session session = predicted_alone();
  ViewOptions options;
  options.op = 146;
  options.rank = 1;
  const Result<ViewState> state = first_state(session, options);
  ASSERT_TRUE(state.has_value()) << to_string(state.error());
  ASSERT_TRUE(state->selected.has_value());
  EXPECT_EQ(session.documents[0].rank_of(state->selected->span), Rank{1});
  EXPECT_EQ(session.documents[0].trace().spans.op[state->selected->span], OpId{146});
}

/// -1 where it is refused.
std::int64_t nanoseconds(std::string_view text) {
  const Result<std::int64_t> time = cli::parse_time(text, "");
  return time ? *time : -1;
}

TEST(TimeOption, ReadsUnitsAndRefusesTheRest) {
  EXPECT_EQ(nanoseconds("12.5ms"), 12'500'000);
  EXPECT_EQ(nanoseconds("37"), 37);
  EXPECT_EQ(nanoseconds("-2us"), -2'000);
  EXPECT_EQ(nanoseconds("1s"), 1'000'000'000);
  for (const char* text : {"", "ms", "1 s", "1h", "inf", "nan", "1e300s", "1ms "})
    EXPECT_FALSE(cli::parse_time(text, "")) << text;
  const Result<TimeRange> range = parse_range("1us:2us", "");
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(*range, (TimeRange{1'000, 2'000}));
  EXPECT_FALSE(parse_range("1us", ""));
}

TEST(ReportCommand, HtmlIsOneFileWithPicturesAndNumbersInside) {
  const std::string path = temporary("report.html");
  const Ran ran = run(report_command, {data("predicted.sst"), data("measured.sst"), "-o", path, "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  const std::string html = text_of(path);
  EXPECT_EQ(html.find("://"), std::string::npos) << "nothing is fetched";
  EXPECT_NE(html.find("data:image/png;base64,iVBORw0KGgo"), std::string::npos);
  EXPECT_NE(html.find("Largest holders at the peak"), std::string::npos);
  EXPECT_NE(html.find("memory equal at every op, every compared peak to the byte"), std::string::npos);
  EXPECT_NE(html.find("Largest residuals"), std::string::npos);
  // The holders that are listed and the rest make up the peak.
  std::int64_t holders = 0;
  for (const auto& table : json.at("tables")) {
    if (table.at("title") != "Largest holders at the peak") continue;
    for (const auto& row : table.at("rows")) holders += row.at("bytes").get<std::int64_t>();
  }
  const Result<LoadedTrace> loaded = load_any(std::filesystem::path(data("predicted.sst")));
  ASSERT_TRUE(loaded.has_value());
  const Document document = Document::build(Trace(loaded->trace), "p");
  EXPECT_GT(holders, 0);
  EXPECT_LE(holders, document.highest_memory()->peak_bytes());
}

TEST(ReportCommand, MarkdownSaysTheSame) {
  const std::string path = temporary("report.md");
  ASSERT_EQ(run(report_command, {data("measured.sst"), "--output", path}).code, 0);
  const std::string text = text_of(path);
  EXPECT_TRUE(text.starts_with("# Shardscope"));
  EXPECT_NE(text.find("| category"), std::string::npos);
  EXPECT_NE(text.find("data:image/png;base64,"), std::string::npos);
}

TEST(ReportCommand, TheNameMustSayTheForm) {
  EXPECT_EQ(run(report_command, {data("measured.sst"), "-o", temporary("report.txt")}).code, 2);
}

TEST(ReportHtml, NamesFromFilesAreEscaped) {
  Report report;
  report.title = "<script>alert(1)</script> & \"more\"";
  const std::string html = to_html(report, true);
  EXPECT_EQ(html.find("<script>"), html.rfind("<script>")) << "the page's own alone";
  EXPECT_EQ(html.find("alert(1)</script>"), std::string::npos);
  EXPECT_NE(html.find("&lt;script&gt;"), std::string::npos);
}

TEST(Base64, ExamplesOfRfc4648) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

}  // namespace
}  // namespace shard::view
