// Bookmarks and notes: are they written where the user points, found again, and kept in a file beside the trace?
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/viewer/driver.h"
#include "viewer/commands/live_view.h"
#include "viewer/commands/notes_file.h"
#include "viewer/ui/context.h"

namespace shard::view {
namespace {

std::filesystem::path fresh(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "viewer_notes";
  std::filesystem::create_directories(folder);
  std::filesystem::remove(folder / (name + ".notes.json"));
  return folder / name;
}

TEST(Notes, MWritesOneAtTheMouseAndAClickOnItsFlagComesBack) {
  Driver user(predicted_alone());
  user.move_to("plot:timeline");
  const std::int64_t time = user.time_under_mouse();
  user.type("m");
  ASSERT_TRUE(user.has("field:note"));
  user.type("here it stalls");
  user.click_on("button:Keep");
  ASSERT_EQ(user.state.notes, (std::vector<Note>{{time, "here it stalls"}}));
  EXPECT_FALSE(user.has("field:note"));
  user.click_on("note:0");
  EXPECT_EQ(user.state.marker_ns, time);
}

TEST(Notes, TheNoteAtTheMarkerIsEditedAndDeleted) {
  Driver user(predicted_alone());
  const std::int64_t begin = user.state.camera.origin_ns;
  user.state.notes = {{begin + 1'000'000, "old"}, {begin + 9'000'000, ""}};
  user.state.marker_ns = begin + 1'000'000;
  user.type("m");
  user.type("new");
  user.click_on("button:Keep");
  ASSERT_EQ(user.state.notes.size(), 2U);
  EXPECT_EQ(user.state.notes[0].text, "new");
  user.type("m");
  user.click_on("button:Delete");
  EXPECT_EQ(user.state.notes, (std::vector<Note>{{begin + 9'000'000, ""}}));
}

TEST(Notes, BracketsStepThroughThemAndTurnAround) {
  Driver user(predicted_alone());
  const std::int64_t begin = user.state.camera.origin_ns;
  user.state.notes = {{begin + 1'000'000, "a"}, {begin + 9'000'000, "b"}};
  user.type("]");
  EXPECT_EQ(user.state.marker_ns, begin + 1'000'000);
  user.type("]");
  EXPECT_EQ(user.state.marker_ns, begin + 9'000'000);
  user.type("]");
  EXPECT_EQ(user.state.marker_ns, begin + 1'000'000);
  user.type("[");
  EXPECT_EQ(user.state.marker_ns, begin + 9'000'000);
}

TEST(Notes, EscapeLeavesTheFieldWithoutANote) {
  Driver user(predicted_alone());
  user.type("m");
  user.type("never mind");
  user.press_escape();
  EXPECT_FALSE(user.has("field:note"));
  EXPECT_TRUE(user.state.notes.empty());
}

TEST(NotesFile, KeepsWhatWasWrittenAndGoesWithTheLastNote) {
  const std::filesystem::path trace = fresh("kept.sst");
  NotesFile file(trace);
  EXPECT_TRUE(file.load()->empty());
  const std::vector<Note> notes{{-5, "before \xff \"the\" run"}, {7, ""}};
  ASSERT_TRUE(file.save(notes).has_value());
  NotesFile again(trace);
  const auto read = again.load();
  ASSERT_TRUE(read.has_value());
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ((*read)[0].time_ns, -5);
  EXPECT_EQ((*read)[1], notes[1]);
  ASSERT_TRUE(again.save({}).has_value());
  EXPECT_FALSE(std::filesystem::exists(again.path()));
}

TEST(NotesFile, SomethingElseInItsPlaceIsLeftAlone) {
  for (const char* text : {"", "[]", "{\"notes\": 3}", "{\"notes\": [{\"time_ns\": \"x\"}]}", "not json"}) {
    const std::filesystem::path trace = fresh("other.sst");
    NotesFile file(trace);
    std::ofstream(file.path()) << text;
    const auto read = file.load();
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_EQ(read.error().code, Errc::malformed);
    EXPECT_FALSE(file.save({{1, "a"}}).has_value());
    std::ifstream in(file.path());
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), text);
  }
}

TEST(LiveView, NotesAreKeptWhenTheTraceIsOpenedAgain) {
  const std::filesystem::path trace = fresh("copy.sst");
  std::filesystem::copy_file(data("predicted.sst"), trace, std::filesystem::copy_options::overwrite_existing);
  Sources sources;
  sources.traces = {trace.string()};
  for (const bool first : {true, false}) {
    LiveView view(sources, {}, false);
    SoftwareSink sink(800, 500);
    const auto frame = [&] { sink.build(ThemeName::dark, [&](const Frame& f) { view.draw(f, {}); }); };
    frame();
    EXPECT_TRUE(view.loading());
    view.receive(load_session(sources));
    frame();
    ASSERT_FALSE(view.error().has_value());
    if (first) {
      EXPECT_TRUE(view.state().notes.empty());
      view.state().notes = {{12'345, "look"}};
      frame();
    } else {
      EXPECT_EQ(view.state().notes, (std::vector<Note>{{12'345, "look"}}));
    }
  }
}

}  // namespace
}  // namespace shard::view
