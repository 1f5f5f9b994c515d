// A run in progress: is a file that grew noticed, and does the view stay where the user is looking?
#include "viewer/commands/follow.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "tests/viewer/driver.h"
#include "viewer/commands/live_view.h"

namespace shard::view {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The first bytes of measured.sst, as a run that is not over has written.
std::string begun(double share) {
  const std::string whole = text_of(data("measured.sst"));
  std::string path = testing::TempDir() + "viewer_follow.sst";
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      << whole.substr(0, static_cast<std::size_t>(share * static_cast<double>(whole.size())));
  return path;
}

Session opened(const std::string& path) {
  Sources sources;
  sources.traces = {path};
  Result<Session> session = load_session(sources);
  EXPECT_TRUE(session.has_value());
  return std::move(*session);
}

TEST(FileWatch, SaysOnceThatAFileGrew) {
  const std::string path = begun(0.5);
  FileWatch watch({path, path + ".absent"});
  EXPECT_FALSE(watch.changed());
  begun(0.7);
  EXPECT_TRUE(watch.changed());
  EXPECT_FALSE(watch.changed());
  std::filesystem::remove(path);
  EXPECT_FALSE(watch.changed()) << "gone is not grown";
}

TEST(CarryOver, AViewOfEverythingShowsEverythingAgain) {
  const Session before = opened(begun(0.6));
  const Session after = opened(begun(1));
  ASSERT_LT(whole_range(before).end_ns, whole_range(after).end_ns);
  ViewState state = initial_state(before);
  carry_over(before, after, state);
  EXPECT_GE(visible(state.camera).end_ns, whole_range(after).end_ns);
}

TEST(CarryOver, AViewAtTheEndStaysAtTheEndAndAnyOtherStays) {
  const Session before = opened(begun(0.6));
  const Session after = opened(begun(1));
  const TimeRange whole = whole_range(before);
  const std::int64_t part = whole.length_ns() / 10;
  ViewState state = initial_state(before);
  state.camera = fit(state.camera.origin_ns, {whole.end_ns - part, whole.end_ns}, 0);
  const double length = state.camera.length_ns;
  carry_over(before, after, state);
  EXPECT_DOUBLE_EQ(state.camera.length_ns, length);
  EXPECT_NEAR(static_cast<double>(visible(state.camera).end_ns), static_cast<double>(whole_range(after).end_ns), 2);
  state.camera = fit(state.camera.origin_ns, {whole.begin_ns + part, whole.begin_ns + 2 * part});
  const Camera camera = state.camera;
  carry_over(before, after, state);
  EXPECT_EQ(state.camera, camera);
}

TEST(CarryOver, WhatIsSelectedIsTheSameSpan) {
  const Session before = opened(begun(0.6));
  const Session after = opened(begun(1));
  ViewState state = initial_state(before);
  const auto span = static_cast<std::uint32_t>(before.documents[0].trace().spans.size() / 2);
  state.selected = SpanRef{0, span};
  carry_over(before, after, state);
  ASSERT_TRUE(state.selected.has_value());
  EXPECT_EQ(after.documents[0].time_of(state.selected->span), before.documents[0].time_of(span));
  EXPECT_EQ(after.documents[0].name_of(state.selected->span), before.documents[0].name_of(span));
}

TEST(LiveView, GrowsAndKeepsWhatItHasWhileTheFileCannotBeRead) {
  Sources sources;
  sources.traces = {begun(0.6)};
  LiveView view(sources, {}, false);
  SoftwareSink sink(800, 500);
  const auto frame = [&] { sink.build(ThemeName::dark, [&](const Frame& f) { view.draw(f, {}); }); };
  view.receive(load_session(sources));
  frame();
  const std::size_t spans = view.session().documents[0].trace().spans.size();
  view.receive(Result<Session>(Error{Errc::malformed, "half a header", "", ""}));
  frame();
  EXPECT_EQ(view.session().documents[0].trace().spans.size(), spans);
  EXPECT_NE(view.state().notice.find("half a header"), std::string::npos);
  begun(1);
  view.receive(load_session(sources));
  frame();
  EXPECT_GT(view.session().documents[0].trace().spans.size(), spans);
}

TEST(LiveView, AFileThatCannotBeOpenedIsAPanelUntilItCan) {
  Sources sources;
  sources.traces = {begun(0.0)};
  LiveView view(sources, {}, false);
  SoftwareSink sink(800, 500);
  const auto frame = [&] { sink.build(ThemeName::dark, [&](const Frame& f) { view.draw(f, {}); }); };
  view.receive(load_session(sources));
  frame();
  ASSERT_TRUE(view.error().has_value());
  EXPECT_EQ(view.error()->code, Errc::malformed);
  ASSERT_EQ(view.session().problems.size(), 1U);
  begun(1);
  view.receive(load_session(sources));
  frame();
  EXPECT_FALSE(view.error().has_value());
  EXPECT_FALSE(view.session().empty());
}

TEST(Loader, ReadsInTheBackgroundAndWakesWhoWaits) {
  std::promise<void> woken;
  Sources sources;
  sources.traces = {data("predicted.sst")};
  bool once = false;
  Loader loader(sources, [&] {
    if (!std::exchange(once, true)) woken.set_value();
  });
  woken.get_future().wait();
  const auto session = loader.take();
  ASSERT_TRUE(session.has_value());
  ASSERT_TRUE(session->has_value());
  EXPECT_EQ((*session)->documents.size(), 1U);
  EXPECT_FALSE(loader.take().has_value());
}

}  // namespace
}  // namespace shard::view
