// Every pane in both themes against the picture it had: is what we see what we meant?
//
// A pixel counts as different where a channel differs by more than 26 (a tenth); at most 0.5 % of the pixels may, with
// the ImGui that the pictures were made with, else 4 %: widgets are drawn a little differently by each version.
// After a change that is meant: SHARDSCOPE_UPDATE_GOLDEN=1 tests/viewer_golden_test, then look at the pictures.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/viewer/driver.h"
#include "tests/viewer/sample_snapshot.h"
#include "tests/viewer/sample_trace.h"
#include "viewer/sink/picture.h"
#include "viewer/ui/context.h"
#include "viewer/ui/view.h"

namespace shard::view {
namespace {

constexpr const char* kMadeWith = "1.86";
constexpr int kChannelTolerance = 26;
constexpr double kSameVersion = 0.005;
constexpr double kOtherVersion = 0.04;

struct Golden {
  std::string name;
  int width = 640, height = 400;
  Session (*open)();
  void (*arrange)(ViewState&, const Session&);
};

void PrintTo(const Golden& golden, std::ostream* out) {
  *out << golden.name;
}

Session result_of_search(const char* file) {
  Sources sources;
  sources.search = std::string(TEST_DATA) + "/viewer_index/" + file;
  Result<Session> session = load_session(sources);
  return session ? std::move(*session) : Session{};
}

Session searched() {
  return result_of_search("gpt2_search.json");
}

Session searched_variable() {
  return result_of_search("gpt2_variable_search.json");
}

Session refused() {
  return session_of({Errc::malformed, "is no trace: the first 8 bytes are not those of a .sst file", "notes.txt",
                     "a file that 'shardscope train --trace' wrote"});
}

Session broken_off() {
  Session session = predicted_alone();
  session.problems.push_back({"measured.sst", "the last frame is cut off (at byte 8,040)",
                              "shown: 812 spans and 1,044 memory events over 54.75 ms", ""});
  return session;
}

template <Pane kPane>
void only(ViewState& state, const Session&) {
  state.only = kPane;
}

void select_gather(ViewState& state, const Session& session) {
  state.only = Pane::selection;
  state.selected = SpanRef{0, *find_op(session.documents[0], OpId{146}, Rank{0})};
}

Session snapshot() {
  return snapshot_session();
}

/// The second activation of the first step.
void select_block(ViewState& state, const Session& session) {
  state.only = Pane::selection;
  const MemoryTable& memory = session.documents[0].trace().memory;
  for (std::uint32_t i = 0, seen = 0; i < memory.size(); ++i) {
    if (memory.requested_bytes[i] == (16 << 20) - 300 && ++seen == 2) {
      state.block = BlockRef{i};
      return;
    }
  }
}

void everything(ViewState&, const Session&) {}

void zoomed(ViewState& state, const Session& session) {
  state.only = Pane::timeline;
  const Document& document = session.documents[0];
  const std::uint32_t span = *find_op(document, OpId{146}, Rank{0});
  state.camera = fit(state.camera.origin_ns, document.time_of(span), 2);
  state.selected = SpanRef{0, span};
}

/// A gather in a steady step, with the arrow to the op that uses what it gathered.
void flows(ViewState& state, const Session& session) {
  state.only = Pane::timeline;
  const Document& document = session.documents[0];
  const FlowIndex index(document);
  for (const FlowLink& link : index.links()) {
    const bool gather = document.class_of(link.from) == SpanClass::gather;
    if (!gather || document.trace().spans.step[link.from] == 0) continue;
    state.selected = SpanRef{0, link.from};
    state.camera =
        fit(state.camera.origin_ns, {document.time_of(link.from).begin_ns, document.time_of(link.to).end_ns}, 0.3);
    return;
  }
  ADD_FAILURE() << "no flow leaves a gather";
}

void notes(ViewState& state, const Session& session) {
  state.only = Pane::timeline;
  const TimeRange whole = session.documents[0].range();
  state.notes = {
      {whole.begin_ns + whole.length_ns() / 5, "warm-up ends"},
      {whole.begin_ns + whole.length_ns() / 2, ""},
      {whole.begin_ns + whole.length_ns() / 2 + whole.length_ns() / 50, "a longer remark than there is room"}};
  state.note_field = NoteField{whole.begin_ns + whole.length_ns() / 2, "", true, false};
}

void help(ViewState& state, const Session&) {
  state.help_open = true;
}

const std::vector<Golden>& goldens() {
  static const std::vector<Golden> kGoldens{
      {"timeline", 640, 400, predicted_alone, only<Pane::timeline>},
      {"timeline_zoomed", 640, 400, predicted_alone, zoomed},
      {"timeline_flows", 640, 240, predicted_alone, flows},
      {"timeline_compare", 640, 400, predicted_and_measured, only<Pane::timeline>},
      {"memory", 640, 400, predicted_alone, only<Pane::memory>},
      {"memory_compare", 640, 400, predicted_and_measured, only<Pane::memory>},
      {"blocks", 640, 400, snapshot, only<Pane::memory>},
      {"block", 480, 300, snapshot, select_block},
      {"segments", 640, 300, snapshot, only<Pane::segments>},
      {"snapshot", 900, 640, snapshot, everything},
      {"chunks", 640, 400, predicted_alone, only<Pane::chunks>},
      {"counters", 640, 400, sample_session, only<Pane::counters>},
      {"selection", 480, 300, predicted_alone, select_gather},
      {"live", 480, 280, predicted_alone, only<Pane::live>},
      {"statistics", 480, 340, predicted_alone, only<Pane::statistics>},
      {"residuals", 480, 320, predicted_and_measured, only<Pane::residuals>},
      {"search", 520, 560, searched, only<Pane::search>},
      {"search_variable", 520, 640, searched_variable, only<Pane::search>},
      {"memory_empty", 640, 200, sample_session, only<Pane::memory>},
      {"refused", 640, 400, refused, everything},
      {"notes", 640, 240, predicted_alone, notes},
      {"help", 640, 560, predicted_alone, help},
      {"whole", 900, 560, predicted_alone, everything},
      {"broken_off", 760, 420, broken_off, everything},
  };
  return kGoldens;
}

/// Share of pixels that differ visibly; `marks` gets them in red over a pale copy.
double difference(const Picture& actual, const Picture& expected, Picture& marks) {
  if (actual.width != expected.width || actual.height != expected.height) return 1;
  marks = expected;
  std::size_t count = 0;
  for (std::size_t i = 0; i < actual.rgba.size(); i += 4) {
    bool differs = false;
    for (std::size_t c = 0; c < 3; ++c)
      differs |= std::abs(actual.rgba[i + c] - expected.rgba[i + c]) > kChannelTolerance;
    for (std::size_t c = 0; c < 3; ++c)
      marks.rgba[i + c] = static_cast<std::uint8_t>(differs ? (c == 0 ? 255 : 0) : 192 + marks.rgba[i + c] / 4);
    if (differs) ++count;
  }
  return static_cast<double>(count) / (static_cast<double>(actual.rgba.size()) / 4);
}

class GoldenPicture : public testing::TestWithParam<std::tuple<Golden, ThemeName>> {};

TEST_P(GoldenPicture, LooksAsItDid) {
  const auto& [golden, theme] = GetParam();
  Session session = golden.open();
  ViewState state = initial_state(session);
  state.theme = theme;
  golden.arrange(state, session);
  Derived derived;
  SoftwareSink sink(golden.width, golden.height);
  if (!sink.has_font()) GTEST_SKIP() << "DejaVu Sans (fonts-dejavu-core) is not installed";
  for (int i = 0; i < 4; ++i) sink.build(theme, [&](const Frame& frame) { draw_view(session, state, derived, frame); });
  sink.draw();

  const std::string name = golden.name + (theme == ThemeName::dark ? "_dark" : "_light");
  const std::filesystem::path path = std::filesystem::path(TEST_DATA) / "viewer" / "golden" / (name + ".png");
  if (std::getenv("SHARDSCOPE_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_png(sink.picture(), path, PngEffort::small).has_value());
  }
  const Result<Picture> expected = read_png(path);
  ASSERT_TRUE(expected.has_value()) << to_string(expected.error());
  Picture marks;
  const double share = difference(sink.picture(), *expected, marks);
  const bool same = std::strncmp(imgui_version(), kMadeWith, std::strlen(kMadeWith)) == 0;
  if (share > (same ? kSameVersion : kOtherVersion)) {
    const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "viewer_golden";
    std::filesystem::create_directories(folder);
    (void)write_png(sink.picture(), folder / (name + ".actual.png"));
    (void)write_png(marks, folder / (name + ".difference.png"));
    ADD_FAILURE() << share * 100 << " % of the pixels differ; see " << folder.string() << "/" << name << ".*.png";
  }
}

INSTANTIATE_TEST_SUITE_P(Panes, GoldenPicture,
                         testing::Combine(testing::ValuesIn(goldens()),
                                          testing::Values(ThemeName::dark, ThemeName::light)),
                         [](const auto& each) {
                           return std::get<0>(each.param).name +
                                  (std::get<1>(each.param) == ThemeName::dark ? "_dark" : "_light");
                         });

}  // namespace
}  // namespace shard::view
