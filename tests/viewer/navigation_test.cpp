// Moving about: does every gesture and key do to the view what the key table says?
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/viewer/driver.h"
#include "viewer/ui/actions.h"

namespace shard::view {
namespace {

double length(const ViewState& state) {
  return state.camera.length_ns;
}

TEST(Navigation, WheelZoomsAtTheMouseAndTheTimeUnderItStays) {
  Driver user(predicted_alone());
  user.move_to("plot:timeline");
  const std::int64_t time = user.time_under_mouse();
  const double before = length(user.state);
  user.wheel(1);
  EXPECT_LT(length(user.state), before);
  EXPECT_NEAR(static_cast<double>(user.time_under_mouse()), static_cast<double>(time), 1);
  user.wheel(-1);
  EXPECT_NEAR(length(user.state), before, before * 1e-9);
}

TEST(Navigation, DragMovesByAsManyPixelsAsTheMouse) {
  Driver user(predicted_alone());
  user.move_to("plot:memory");
  user.wheel(8);
  const std::int64_t time = user.time_under_mouse();
  user.drag(-150);
  // The time that was grabbed is still under the mouse.
  EXPECT_NEAR(static_cast<double>(user.time_under_mouse()), static_cast<double>(time), length(user.state) / 800);
  EXPECT_FALSE(user.state.marker_ns.has_value()) << "a drag is no click";
}

TEST(Navigation, DragUpAndDownScrollsTheLanes) {
  Driver user(predicted_and_measured(), 1200, 600);
  user.move_to("plot:timeline");
  user.drag(0, -40);
  EXPECT_NEAR(user.state.lanes_scroll, 40, 1);
}

TEST(Navigation, ShiftDragSelectsTheRangeBetween) {
  Driver user(predicted_alone());
  user.move_to("plot:timeline");
  const std::int64_t from = user.time_under_mouse();
  const Camera camera = user.state.camera;
  user.drag(200, 0, true);
  ASSERT_TRUE(user.state.range.has_value());
  EXPECT_EQ(user.state.range->begin_ns, from);
  EXPECT_NEAR(static_cast<double>(user.state.range->end_ns), static_cast<double>(user.time_under_mouse()), 2);
  EXPECT_EQ(user.state.camera, camera) << "selecting does not move";
}

TEST(Navigation, FFitsTheRangeFirstAndThenEverything) {
  Driver user(predicted_alone());
  const Camera whole = user.state.camera;
  user.move_to("plot:timeline");
  user.drag(200, 0, true);
  const TimeRange range = *user.state.range;
  user.type("f");
  EXPECT_LT(length(user.state), whole.length_ns / 2);
  EXPECT_LE(visible(user.state.camera).begin_ns, range.begin_ns);
  EXPECT_GE(visible(user.state.camera).end_ns, range.end_ns);
  user.type("f");
  EXPECT_EQ(user.state.camera, whole);
}

TEST(Navigation, PGoesToThePeakAndListsWhatIsLiveThere) {
  Driver user(predicted_alone());
  user.move_to("plot:timeline");
  user.wheel(20);
  user.type("p");
  const MemorySeries* series = user.session.documents[0].highest_memory();
  ASSERT_NE(series, nullptr);
  EXPECT_EQ(user.state.marker_ns, series->peak_time_ns());
  EXPECT_TRUE(visible(user.state.camera).contains(series->peak_time_ns()));
  EXPECT_EQ(user.state.tab, Pane::live);
  EXPECT_TRUE(user.has("live:0"));
}

TEST(Navigation, HeldKeysZoomAndMove) {
  Driver user(predicted_alone());
  const double before = length(user.state);
  user.input.keys.w = true;
  user.frames(30);
  user.input.keys.w = false;
  EXPECT_LT(length(user.state), before / 2);
  const double begin = user.state.camera.begin_ns;
  user.input.keys.d = true;
  user.frames(10);
  user.input.keys.d = false;
  EXPECT_GT(user.state.camera.begin_ns, begin);
  user.input.keys.a = true;
  user.frames(10);
  user.input.keys.a = false;
  EXPECT_NEAR(user.state.camera.begin_ns, begin, 1);
  const double zoomed = length(user.state);
  user.input.keys.s = true;
  user.frames(10);
  user.input.keys.s = false;
  EXPECT_GT(length(user.state), zoomed);
}

TEST(Navigation, MinimapMovesTheViewThere) {
  Driver user(predicted_alone());
  user.move_to("plot:timeline");
  user.wheel(10);
  const Rect map = user.at("minimap");
  user.move(map.x0 + map.width() * 0.75F, map.y0 + 5);
  user.click();
  const TimeRange whole = whole_range(user.session);
  const TimeRange seen = visible(user.state.camera);
  EXPECT_NEAR(static_cast<double>(seen.begin_ns) + 0.5 * static_cast<double>(seen.length_ns()),
              static_cast<double>(whole.begin_ns) + 0.75 * static_cast<double>(whole.length_ns()),
              static_cast<double>(whole.length_ns()) * 0.002);
}

TEST(Navigation, DoubleClickZoomsToTheSpan) {
  Driver user(predicted_alone());
  user.move_to("plot:timeline");
  user.wheel(12);
  const std::string span = user.some_wide_span(20);
  user.move_to(span);
  const double before = length(user.state);
  user.double_click();
  ASSERT_TRUE(user.state.selected.has_value());
  EXPECT_EQ("span:0/" + std::to_string(user.state.selected->span), span);
  const TimeRange time = user.session.documents[0].time_of(user.state.selected->span);
  EXPECT_LT(length(user.state), before);
  EXPECT_TRUE(visible(user.state.camera).contains(time.begin_ns));
  EXPECT_GT(static_cast<double>(time.length_ns()), length(user.state) * 0.3);
}

TEST(Navigation, DoubleClickInTheSelectedRangeShowsIt) {
  Driver user(predicted_alone());
  user.move_to("plot:ruler");
  user.drag(150, 0, true);
  user.move(user.input.mouse_x - 50, user.input.mouse_y);
  user.double_click();
  ASSERT_TRUE(user.state.range.has_value());
  EXPECT_EQ(user.state.camera, fit(user.state.camera.origin_ns, *user.state.range));
}

TEST(Navigation, SplittersGiveThePanesTheRoomTheyAreDraggedTo) {
  Driver user(predicted_alone());
  const float before = user.at("plot:chunks").height();
  user.move_to("splitter:chunks");
  user.drag(0, -60);
  EXPECT_NEAR(user.at("plot:chunks").height(), before + 60, 2);
}

TEST(Keys, EveryKeyOfTheTableIsTypedOnceAndDoesSomething) {
  std::set<char> typed;
  for (const Key& key : key_table()) {
    if (key.typed == 0) continue;
    EXPECT_TRUE(typed.insert(key.typed).second) << key.typed << " is there twice";
    EXPECT_NE(key.action, Action::none) << key.typed;
  }
}

TEST(Keys, QuestionMarkShowsHelpAndEscapeClosesIt) {
  Driver user(predicted_alone());
  user.type("?");
  EXPECT_TRUE(user.state.help_open);
  EXPECT_TRUE(user.has("button:Close"));
  user.press_escape();
  EXPECT_FALSE(user.state.help_open);
}

TEST(Keys, EscapeClosesOneThingAtATime) {
  Driver user(predicted_alone());
  user.move_to("plot:timeline");
  user.drag(200, 0, true);
  user.state.selected = SpanRef{0, 3};
  user.press_escape();
  EXPECT_FALSE(user.state.range.has_value());
  EXPECT_TRUE(user.state.selected.has_value());
  user.press_escape();
  EXPECT_FALSE(user.state.selected.has_value());
}

TEST(Keys, ThemeAndSidePanelToggle) {
  Driver user(predicted_alone());
  user.type("t");
  EXPECT_EQ(user.state.theme, ThemeName::light);
  user.type("b");
  EXPECT_FALSE(user.has("side"));
  user.type("b");
  EXPECT_TRUE(user.has("side"));
}

}  // namespace
}  // namespace shard::view
