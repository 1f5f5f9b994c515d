// Panes: does a click select what it is on, and do tables, search and comparison lead where they say?
#include <gtest/gtest.h>

#include "tests/viewer/driver.h"
#include "viewer/ui/chunk_pane.h"

namespace shard::view {
namespace {

TEST(Timeline, ClickSelectsTheSpanUnderTheMouseAndShowsIt) {
  Driver user(predicted_alone());
  user.state.tab = Pane::statistics;
  user.move_to("plot:timeline");
  user.wheel(12);
  const std::string span = user.some_wide_span(20);
  user.click_on(span);
  ASSERT_TRUE(user.state.selected.has_value());
  EXPECT_EQ("span:0/" + std::to_string(user.state.selected->span), span);
  EXPECT_EQ(user.state.tab, Pane::selection);
  user.click_on("button:Select its time");
  EXPECT_EQ(user.state.range, user.session.documents[0].time_of(user.state.selected->span));
}

TEST(Timeline, EverySpanDrawnAloneLiesWhereItsTimeIs) {
  Driver user(predicted_and_measured());
  user.move_to("plot:timeline");
  user.wheel(10);
  const Rect plot = user.at("plot:timeline");
  int checked = 0;
  for (const Item& item : user.items) {
    std::size_t document = 0;
    std::uint32_t span = 0;
    if (std::sscanf(item.name.c_str(), "span:%zu/%u", &document, &span) != 2) continue;
    TimeRange time = user.session.documents[document].time_of(span);
    if (document == 1) {
      const Alignment& alignment = alignment_of(user.session, user.state.align, 1);
      time = {alignment.to_first(time.begin_ns), alignment.to_first(time.end_ns)};
    }
    const double left = plot.x0 + std::max(0.0, x_of(user.state.camera, time.begin_ns, plot.width()));
    EXPECT_NEAR(item.rect.x0, left, 1.01) << item.name;
    ++checked;
  }
  EXPECT_GT(checked, 20);
}

TEST(Memory, ClickSetsTheMarkerAndTheTableSumsToTheCurve) {
  Driver user(predicted_alone());
  user.move_to("plot:memory");
  const std::int64_t time = user.time_under_mouse();
  user.click();
  ASSERT_EQ(user.state.marker_ns, time);
  EXPECT_EQ(user.state.tab, Pane::live);
  const Document& document = user.session.documents[0];
  const MemorySeries* series = shown_memory(document, user.state);
  ASSERT_NE(series, nullptr);
  std::int64_t sum = 0;
  for (const LiveBuffer& buffer : series->live_at(document.trace().memory, series->moment_at(time)))
    sum += buffer.bytes;
  EXPECT_EQ(sum, series->bytes_at(series->moment_at(time)));
  EXPECT_GT(sum, 0);
}

TEST(Memory, ThePeakIsMarkedAtItsTime) {
  Driver user(predicted_alone());
  const Rect plot = user.at("plot:memory");
  const Rect mark = user.at("peak");
  const std::int64_t peak = user.session.documents[0].highest_memory()->peak_time_ns();
  EXPECT_NEAR((mark.x0 + mark.x1) / 2, plot.x0 + x_of(user.state.camera, peak, plot.width()), 1);
}

TEST(Ranks, TheChosenRankAloneIsShown) {
  Driver user(predicted_alone());
  user.click_on("combo:rank");
  user.click_on("rank:1");
  EXPECT_EQ(user.state.rank, Rank{1});
  EXPECT_EQ(shown_memory(user.session.documents[0], user.state)->rank(), Rank{1});
  for (const Item& item : user.items) {
    std::uint32_t span = 0;
    if (std::sscanf(item.name.c_str(), "span:0/%u", &span) == 1) {
      EXPECT_EQ(user.session.documents[0].rank_of(span), Rank{1});
    }
  }
}

TEST(Chunks, ClickSelectsTheChunkAndShowsItsHistory) {
  Driver user(predicted_alone());
  user.click_on("chunk:3");
  ASSERT_TRUE(user.state.chunk.has_value());
  EXPECT_EQ(user.state.chunk->unit, UnitId{3});
  EXPECT_EQ(user.state.tab, Pane::selection);
}

TEST(Chunks, ControlWheelShowsFewerRows) {
  Driver user(predicted_alone());
  user.move_to("chunk:6");
  const Camera camera = user.state.camera;
  user.wheel(2, true);
  EXPECT_GT(user.state.chunk_count, 0U);
  EXPECT_LT(user.state.chunk_count, 13U);
  EXPECT_EQ(user.state.camera, camera) << "time stays";
  user.wheel(-9, true);
  EXPECT_EQ(user.state.chunk_count, 0U) << "all again";
}

TEST(Search, FindsSpansByNameAndStepsThroughThem) {
  Driver user(predicted_alone());
  user.type("/");
  ASSERT_TRUE(user.state.search_open);
  user.type("step chunk 4");
  EXPECT_EQ(user.state.query, "step chunk 4");
  EXPECT_FALSE(user.state.range.has_value()) << "letters typed into the field are no commands";
  user.click_on("button:Search");
  user.press_escape();
  ASSERT_FALSE(user.state.search_open);
  const Document& document = user.session.documents[0];
  user.type("n");
  ASSERT_TRUE(user.state.selected.has_value());
  const std::uint32_t first = user.state.selected->span;
  EXPECT_EQ(document.name_of(first), "step chunk 4");
  user.type("n");
  const std::uint32_t second = user.state.selected->span;
  EXPECT_EQ(document.name_of(second), "step chunk 4");
  EXPECT_NE(second, first);
  EXPECT_GE(document.time_of(second).begin_ns, document.time_of(first).begin_ns);
  user.type("N");
  EXPECT_EQ(user.state.selected->span, first);
}

TEST(Search, GoesOnFromTheBeginningAndSaysSo) {
  Driver user(predicted_alone());
  user.state.query = "step chunk 4";
  const NameMatch match = find_names(user.session.documents[0], user.state.query);
  ASSERT_GT(match.span_count, 1);
  for (std::int64_t i = 0; i <= match.span_count; ++i) user.type("n");
  EXPECT_NE(user.state.notice.find("from the beginning"), std::string::npos) << user.state.notice;
}

TEST(Statistics, GroupsAndSortsByTheHeaderClicked) {
  Driver user(predicted_alone());
  user.click_on("button:Statistics");
  user.click_on("button:Class");
  EXPECT_EQ(user.state.group, GroupBy::span_class);
  EXPECT_TRUE(user.has("statistics:backward"));
  user.click_on("header:count");
  EXPECT_EQ(user.state.sort, SpanColumn::count);
  EXPECT_TRUE(user.state.descending);
  user.click_on("header:count");
  EXPECT_FALSE(user.state.descending);
}

TEST(Statistics, ClickOnANameGoesToItsFirstSpan) {
  Driver user(predicted_alone());
  user.click_on("button:Statistics");
  user.click_on("statistics:gather chunk 0");
  ASSERT_TRUE(user.state.selected.has_value());
  EXPECT_EQ(user.session.documents[0].name_of(user.state.selected->span), "gather chunk 0");
}

TEST(Compare, ClickOnAResidualGoesToItsSpan) {
  Driver user(predicted_and_measured());
  ASSERT_EQ(user.state.tab, Pane::residuals);
  const Residual& first = user.session.compared[0].by_time.front();
  ASSERT_TRUE(first.first_span.has_value());
  user.click_on("residual:0");
  ASSERT_TRUE(user.state.selected.has_value());
  EXPECT_EQ(user.state.selected->span, *first.first_span);
  EXPECT_TRUE(visible(user.state.camera).contains(user.session.documents[0].time_of(*first.first_span).begin_ns));
}

TEST(Compare, StretchedOpsBeginTogetherAndStepsElse) {
  Driver user(predicted_and_measured());
  user.click_on("button:Stretched");
  EXPECT_EQ(user.state.align, AlignMode::stretch);
  const Alignment alignment = alignment_of(user.session, user.state.align, 1);
  EXPECT_GT(alignment.knots.size(), 20u);
  user.click_on("button:Step begin");
  EXPECT_LT(alignment_of(user.session, user.state.align, 1).knots.size(), 20u);
}

TEST(Compare, DetailsOfAnOpNameItsTwinAndGoThere) {
  Driver user(predicted_and_measured());
  user.click_on("residual:0");
  user.click_on("button:Details");
  user.click_on("button:Go to it");
  ASSERT_TRUE(user.state.selected.has_value());
  EXPECT_EQ(user.state.selected->document, 1U);
  const Trace& first = user.session.documents[0].trace();
  const Trace& other = user.session.documents[1].trace();
  EXPECT_EQ(other.spans.op[user.state.selected->span],
            first.spans.op[*user.session.compared[0].by_time.front().first_span]);
}

TEST(Compare, OfThreeTracesTheChosenOneIsSetAgainstTheFirst) {
  Sources sources;
  sources.traces = {data("predicted.sst"), data("measured.sst"), data("measured.sst")};
  Result<Session> session = load_session(sources);
  ASSERT_TRUE(session.has_value()) << to_string(session.error());
  Driver user(std::move(*session));
  EXPECT_EQ(user.session.compared.size(), 2U);
  EXPECT_EQ(compared_document(user.state), 1U);
  EXPECT_TRUE(user.has("difference:1"));
  user.click_on("combo:document");
  user.click_on("document:2");
  EXPECT_EQ(user.state.document, 2U);
  EXPECT_TRUE(user.has("difference:2"));
  user.click_on("residual:0");
  EXPECT_TRUE(user.state.selected.has_value());
}

TEST(Flows, KeysWalkAlongTheArrowsAndBack) {
  Driver user(predicted_alone());
  const FlowIndex flows(user.session.documents[0]);
  ASSERT_FALSE(flows.links().empty());
  user.state.selected = SpanRef{0, flows.links().front().from};
  user.type(">");
  ASSERT_TRUE(user.state.selected.has_value());
  const std::uint32_t there = user.state.selected->span;
  const auto links = flows.from(flows.links().front().from);
  EXPECT_TRUE(std::ranges::any_of(links, [&](const FlowLink& link) { return link.to == there; }));
  user.type("<");
  const auto back = flows.to(there);
  EXPECT_TRUE(std::ranges::any_of(back, [&](const FlowLink& link) { return link.from == user.state.selected->span; }));
  user.state.selected.reset();
  user.type(">");
  EXPECT_NE(user.state.notice.find("select a span"), std::string::npos);
}

TEST(Chunks, OfATraceThatDoesNotSayAreThoseOfTheOneThatDoes) {
  Driver user(predicted_and_measured());
  ASSERT_FALSE(user.session.documents[0].chunks().empty());
  user.state.document = 1;
  user.frames(2);
  EXPECT_EQ(chunk_document(user.session, user.state), user.session.documents[1].chunks().empty() ? 0U : 1U);
  EXPECT_TRUE(user.has("plot:chunks"));
}

TEST(SearchResult, ClickOnAPointShowsItsPlan) {
  Sources sources;
  sources.search = std::string(TEST_DATA) + "/viewer_index/gpt2_search.json";
  Result<Session> session = load_session(sources);
  ASSERT_TRUE(session.has_value()) << to_string(session.error());
  Driver user(std::move(*session), 700, 900);
  // The last one has no neighbour within reach.
  const std::size_t last = user.session.search->points.size() - 1;
  user.click_on("point:Waste/" + std::to_string(last));
  EXPECT_EQ(user.state.search_point, last);
}

// A line across at its own value, and none where it was not simulated.
TEST(SearchResult, ChunksOfDifferentSizesAreALineBesideTheCurve) {
  for (const auto& [file, simulated] :
       {std::pair{"gpt2_variable_search.json", true}, std::pair{"gpt2_search.json", false}}) {
    Sources sources;
    sources.search = std::string(TEST_DATA) + "/viewer_index/" + file;
    Result<Session> session = load_session(sources);
    ASSERT_TRUE(session.has_value()) << to_string(session.error());
    Driver user(std::move(*session), 700, 900);
    user.frames(2);
    EXPECT_TRUE(user.has("variable:Waste")) << file;
    EXPECT_EQ(user.has("variable:Peak, device"), simulated) << file;
    EXPECT_EQ(user.has("variable:Step time"), simulated) << file;
  }
}

TEST(Problems, TheBarSaysWhatWasKeptAndIsDismissed) {
  Session session = predicted_alone();
  session.problems.push_back({"a.sst", "the last frame is cut off (at byte 12)", "shown: 5 spans", ""});
  Driver user(std::move(session));
  user.click_on("button:Dismiss");
  EXPECT_FALSE(user.state.problems_open);
  EXPECT_FALSE(user.has("button:Dismiss"));
}

TEST(Frames, TwoOfOneStateAreTheSamePicture) {
  Driver user(predicted_and_measured());
  user.frames(3);
  user.sink.draw();
  const std::vector<std::uint8_t> first = user.sink.picture().rgba;
  user.frames();
  user.sink.draw();
  EXPECT_EQ(user.sink.picture().rgba, first);
}

}  // namespace
}  // namespace shard::view
