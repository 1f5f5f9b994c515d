// An allocator's recording: are blocks where they are drawn, do clicks select them, and is nothing said that the file
// does not know?
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/viewer/driver.h"
#include "tests/viewer/ran.h"
#include "tests/viewer/sample_snapshot.h"
#include "traces/holders.h"
#include "traces/import/import.h"
#include "viewer/commands/commands.h"
#include "viewer/ui/allocator.h"

namespace shard::view {
namespace {

/// Some block that is drawn large enough to click.
std::string some_block(const Driver& user) {
  const Rect plot = user.at("plot:memory");
  for (const Item& item : user.items) {
    if (item.name.starts_with("block:") && item.rect.width() > 12 && item.rect.height() > 8 && item.rect.y0 > plot.y0 &&
        item.rect.y1 < plot.y1 && item.rect.x0 > plot.x0 && item.rect.x1 < plot.x1)
      return item.name;
  }
  ADD_FAILURE() << "no block is large enough";
  return {};
}

std::uint32_t event_of(const std::string& item) {
  return static_cast<std::uint32_t>(std::stoul(item.substr(item.find(':') + 1)));
}

TEST(Allocator, ABlockIsDrawnOverItsLifeAndAClickSelectsIt) {
  Driver user(snapshot_session());
  const std::string block = some_block(user);
  const Rect rect = user.at(block), plot = user.at("plot:memory");
  const Document& document = user.session.documents[0];
  const MemoryEvent event = document.trace().memory[event_of(block)];
  EXPECT_GE(rect.x0 + 1.01, plot.x0 + x_of(user.state.camera, event.time_ns, plot.width()));
  user.click_on(block);
  ASSERT_TRUE(user.state.block.has_value());
  EXPECT_EQ(user.state.block->event, event_of(block));
  EXPECT_EQ(user.state.tab, Pane::selection);
  EXPECT_TRUE(user.state.marker_ns.has_value()) << "segments look there too";
  EXPECT_EQ(user.has("frame:site"), event.stack.valid());
  user.press_escape();
  EXPECT_FALSE(user.state.block.has_value());
}

TEST(Allocator, ThePixelsOfABlockHaveTheColourOfItsSite) {
  Driver user(snapshot_session());
  const MemorySeries* series = shown_memory(user.session.documents[0], user.state);
  const BlockView view = block_view(user.session, user.state, user.derived, *series);
  user.frames(2);
  user.sink.draw();
  const Picture& picture = user.sink.picture();
  const Theme& theme = theme_of(user.state.theme);
  const std::string item = some_block(user);
  const Rect rect = user.at(item);
  const Color color = color_of(view, view.classes.of(view.blocks.acquired_by(event_of(item))), theme);
  const auto x = static_cast<std::size_t>((rect.x0 + rect.x1) / 2),
             y = static_cast<std::size_t>((rect.y0 + rect.y1) / 2);
  const std::size_t at = (y * static_cast<std::size_t>(picture.width) + x) * 4;
  // In one of three shades.
  bool found = false;
  for (const double share : {1.0, 0.88, 0.77}) {
    const Color shade = mix(color, theme.pane, share);
    bool same = true;
    for (unsigned channel = 0; channel < 3; ++channel)
      same = same && std::abs(static_cast<int>(shade >> 8 * channel & 0xFF) - picture.rgba[at + channel]) <= 3;
    found = found || same;
  }
  EXPECT_TRUE(found) << item;
}

TEST(Allocator, ColoursStandForSitesOrCategoriesAndNotKnownIsNeverWorkspace) {
  Driver user(snapshot_session());
  ASSERT_EQ(user.state.memory_by, MemoryBy::site);
  user.click_on("button:by category");
  EXPECT_EQ(user.state.memory_by, MemoryBy::category);
  const MemorySeries* series = shown_memory(user.session.documents[0], user.state);
  for (const MemoryClass& each : block_view(user.session, user.state, user.derived, *series).classes.all()) {
    EXPECT_NE(each.name, "workspace");
    EXPECT_NE(each.name, "not_known") << "in words";
  }
  for (const MemoryBy next : {MemoryBy::site, MemoryBy::stack, MemoryBy::category}) {
    user.type("c");
    EXPECT_EQ(user.state.memory_by, next);
  }
}

TEST(Allocator, StacksOfOneSiteAreToldApartByTheirCallers) {
  Driver user(snapshot_session());
  user.click_on("button:by stack");
  const MemorySeries* series = shown_memory(user.session.documents[0], user.state);
  std::vector<std::string> names;
  for (const MemoryClass& each : block_view(user.session, user.state, user.derived, *series).classes.all())
    names.push_back(each.name);
  EXPECT_TRUE(std::ranges::find(names, "model.py:12 __init__ \u2190 train.py:8 main") != names.end());
}

TEST(Allocator, TheLegendsClassesAreTheHoldersOfInspect) {
  Driver user(snapshot_session());
  const Trace& trace = user.session.documents[0].trace();
  const MemorySeries* series = shown_memory(user.session.documents[0], user.state);
  const BlockView view = block_view(user.session, user.state, user.derived, *series);
  const Result<Held> held = held_at(trace, {});
  ASSERT_TRUE(held);
  EXPECT_EQ(held->allocated_bytes, series->peak_bytes());
  const ClassStack stack = view.classes.at(view.blocks, series->peak_moment());
  for (const Holder& holder : held->holders) {
    const std::string name = site_name(user.session, user.derived, holder.stack);
    for (std::size_t c = 0; c < view.classes.all().size(); ++c) {
      if (view.classes.all()[c].name == name) {
        EXPECT_EQ(stack.bytes[c], holder.bytes) << name;
        EXPECT_EQ(stack.blocks[c], holder.blocks) << name;
      }
    }
  }
}

TEST(Allocator, ControlAndTheWheelLookCloserUntilTheSmallestBlockIsSeen) {
  Driver user(snapshot_session());
  const Rect plot = user.at("plot:memory");
  user.move(plot.x0 + plot.width() / 2, plot.y1 - plot.height() / 4);
  const Camera camera = user.state.camera;
  user.wheel(5, true);
  ASSERT_TRUE(user.state.bytes.has_value());
  EXPECT_EQ(user.state.camera, camera) << "time stays";
  const ByteRange near = *user.state.bytes;
  user.drag(0, 30);
  EXPECT_GT(user.state.bytes->low, near.low) << "a drag downwards shows what is above";
  user.wheel(-40, true);
  EXPECT_FALSE(user.state.bytes.has_value()) << "all of it again";
  user.wheel(5, true);
  user.type("f");
  EXPECT_FALSE(user.state.bytes.has_value());
}

TEST(Allocator, ADoubleClickShowsABlockByItself) {
  Driver user(snapshot_session());
  const std::string block = some_block(user);
  user.move_to(block);
  user.double_click();
  const Rect rect = user.at(block), plot = user.at("plot:memory");
  EXPECT_GT(rect.width(), plot.width() / 3);
  EXPECT_GT(rect.height(), plot.height() / 20);
}

TEST(Segments, EveryOneIsABarAndAClickOnABlockSelectsIt) {
  Driver user(snapshot_session());
  const SegmentsShown& shown = segments_shown(user.session, user.state, user.derived);
  ASSERT_TRUE(shown.map);
  for (std::size_t i = 0; i < shown.map->segments.size(); ++i) EXPECT_TRUE(user.has("segment:" + std::to_string(i)));
  std::size_t full = 0;
  while (full + 1 < shown.map->segments.size() && shown.map->segments[full].blocks.size() != 1) ++full;
  ASSERT_EQ(shown.map->segments[full].blocks.size(), 1u);
  const PlacedBlock placed = shown.map->segments[full].blocks[0];
  const Rect bar = user.at("segment:" + std::to_string(full));
  user.move(bar.x0 + 2, (bar.y0 + bar.y1) / 2);
  user.click();
  ASSERT_TRUE(user.state.block.has_value());
  const MemoryEvent event = user.session.documents[0].trace().memory[user.state.block->event];
  EXPECT_EQ(event.delta_bytes, placed.bytes);
  EXPECT_EQ(event.requested_bytes, placed.requested_bytes);
  EXPECT_EQ(event.stack, placed.stack);
}

TEST(Segments, AreThoseAtTheMarkerElseAtThePeak) {
  Driver user(snapshot_session());
  const MemorySeries* series = shown_memory(user.session.documents[0], user.state);
  EXPECT_EQ(segments_shown(user.session, user.state, user.derived).map->allocated_bytes, series->peak_bytes());
  user.state.marker_ns = series->time_of(series->event_count());
  EXPECT_EQ(segments_shown(user.session, user.state, user.derived).map->allocated_bytes,
            series->bytes_at(series->event_count()));
  for (const std::int64_t outside : {std::int64_t{0}, series->peak_time_ns() + std::int64_t{1'000'000'000'000}}) {
    user.state.marker_ns = outside;
    user.frames(2);
  }
  EXPECT_EQ(segments_shown(user.session, user.state, user.derived).map->allocated_bytes,
            series->bytes_at(series->event_count()));
}

TEST(Allocator, WithoutStacksThereAreNoSitesToChoose) {
  Driver user(snapshot_session({.stacks = false}));
  EXPECT_FALSE(user.has("button:by site"));
  EXPECT_EQ(memory_by(user.session, user.state), MemoryBy::category);
  user.type("c");
  EXPECT_NE(user.state.notice.find("no stacks"), std::string::npos) << user.state.notice;
  user.click_on(some_block(user));
  EXPECT_TRUE(user.state.block.has_value());
  EXPECT_FALSE(user.has("frame:site"));
}

Session session_of_snapshot(Trace trace, Snapshot snapshot) {
  Session session;
  session.documents.push_back(Document::build(std::move(trace), "s.pickle", {}, std::move(snapshot)));
  return session;
}

TEST(Allocator, WithoutSegmentsThePaneSaysSo) {
  Session session = snapshot_session();
  Trace trace = session.documents[0].trace();
  Driver user(session_of_snapshot(std::move(trace), {}));
  EXPECT_FALSE(user.has("plot:segments"));
  user.state.only = Pane::segments;
  user.frames(2);
  EXPECT_FALSE(user.has("plot:segments"));
}

TEST(Allocator, AnEmptyOneIsShownEmpty) {
  Driver nothing(session_of_snapshot({}, {}));
  EXPECT_FALSE(nothing.has("peak"));
  Snapshot segments;
  segments.segments.push_back({.address = 4096, .bytes = 2 << 20});
  segments.find_block_sizes();
  Driver user(session_of_snapshot({}, std::move(segments)));
  EXPECT_FALSE(user.has("peak"));
}

nlohmann::json rows_of(const nlohmann::json& report, const std::string& title) {
  for (const auto& table : report.at("tables"))
    if (table.at("title") == title) return table.at("rows");
  return nullptr;
}

TEST(AllocatorReport, SaysWhatOtherSettingsWouldHaveReserved) {
  const std::string title = "Other settings of the allocator";
  const std::string file = snapshot_file({}, "settings.pickle"), page = file + ".html";
  const Ran ran = run(report_command, {file, "-o", page, "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const nlohmann::json rows = rows_of(nlohmann::json::parse(ran.out), title);
  ASSERT_EQ(rows.size(), 7U);
  std::map<std::string, nlohmann::json> by_settings;
  for (const auto& row : rows) by_settings[row.at("settings")] = row;
  const auto recorded = by_settings.at("as recorded").at("peak_reserved_bytes").get<std::int64_t>();
  const auto& expandable = by_settings.at("expandable_segments:True");
  EXPECT_LT(expandable.at("peak_reserved_bytes"), by_settings.at("none").at("peak_reserved_bytes"));
  EXPECT_EQ(expandable.at("difference_bytes"), expandable.at("peak_reserved_bytes").get<std::int64_t>() - recorded);
  const std::string html = text_of(page);
  EXPECT_NE(html.find("<h2>" + title + "</h2>"), std::string::npos);
  EXPECT_EQ(html.find("://"), std::string::npos) << "nothing is fetched";
  const Ran other = run(report_command, {data("measured.sst"), "-o", page, "--json"});
  ASSERT_EQ(other.code, 0) << other.err;
  EXPECT_TRUE(rows_of(nlohmann::json::parse(other.out), title).is_null()) << "no allocator was recorded";
}

TEST(AllocatorReport, NamesWhoHeldMemoryAndTheRowsAddUp) {
  const std::string file = snapshot_file({}, "report.pickle"), page = file + ".md";
  const Result<LoadedTrace> loaded = load_any(std::filesystem::path(file));
  ASSERT_TRUE(loaded);
  const Result<Held> held = held_at(loaded->trace, {});
  ASSERT_TRUE(held);
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"--top", "2"}, {"--by", "stack", "--top", "3"}, {"--at", "peak"}}) {
    std::vector<std::string> arguments{file, "-o", page, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ran ran = run(report_command, arguments);
    ASSERT_EQ(ran.code, 0) << ran.err;
    const auto json = nlohmann::json::parse(ran.out);
    std::int64_t sum = 0;
    for (const auto& table : json.at("tables")) {
      if (table.at("title") != "Who held memory at the peak") continue;
      for (const auto& row : table.at("rows")) sum += row.at("bytes").get<std::int64_t>();
    }
    EXPECT_EQ(sum, held->allocated_bytes);
    EXPECT_EQ(json.at("peak").at("allocated_bytes"), held->allocated_bytes);
    EXPECT_GT(json.at("peak").at("fragmentation").at("reserved_bytes"), held->allocated_bytes);
  }
  const std::string text = text_of(page);
  EXPECT_NE(text.find("model.py:12"), std::string::npos);
  EXPECT_NE(text.find("more than is allocated"), std::string::npos);
  EXPECT_NE(text.find("segments, their blocks and gaps"), std::string::npos);
}

TEST(AllocatorReport, AtATimeItIsWhatWasLiveThen) {
  const std::string file = snapshot_file({}, "at.pickle"), page = file + ".html";
  for (const auto& [time, bytes] : std::vector<std::pair<std::string, std::int64_t>>{{"-1s", 0}, {"4us", 24 << 20}}) {
    const Ran ran = run(report_command, {file, "-o", page, "--json", "--at", time});
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(nlohmann::json::parse(ran.out).at("peak").at("allocated_bytes"), bytes) << time;
  }
  EXPECT_EQ(run(report_command, {file, "-o", page, "--at", "noon"}).code, 2);
  EXPECT_EQ(run(report_command, {file, "-o", page, "--by", "line"}).code, 2);
  EXPECT_EQ(run(report_command, {file, "-o", page, "--rank", "7"}).code, 78);
  EXPECT_EQ(run(report_command, {file, "-o", page, "--memory", "disk"}).code, 78);
}

TEST(AllocatorView, ABrokenOffSnapshotIsRefusedUnlessAllowedAndDrawnAsFarAsItGoes) {
  const std::string whole = snapshot_file({}, "whole.pickle"), cut = whole + ".cut", picture = whole + ".png";
  std::ofstream(cut, std::ios::binary) << text_of(whole).substr(0, std::filesystem::file_size(whole) / 2);
  EXPECT_EQ(run(view_command, {cut, "--screenshot", picture}).code, 65);
  const Ran ran = run(view_command, {cut, "--incomplete", "--screenshot", picture, "--size", "800x600"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.err.find("pickle"), std::string::npos) << ran.err;
}

TEST(AllocatorView, MistakesAreNamedWithTheirExitCode) {
  const std::string file = snapshot_file({}, "mistakes.pickle"), picture = file + ".png";
  for (const auto& [arguments, says] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{{{"--memory-by", "line"}, "site"},
                                                                     {{"--bytes", "1Gi"}, "is no range of bytes"},
                                                                     {{"--bytes", "2Gi:1Gi"}, "is empty"},
                                                                     {{"--bytes", "a:b"}, "'a'"}}) {
    std::vector<std::string> all{file, "--screenshot", picture};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Ran ran = run(view_command, all);
    EXPECT_EQ(ran.code, 2) << ran.err;
    EXPECT_NE(ran.err.find(says), std::string::npos) << ran.err;
  }
  EXPECT_EQ(run(view_command, {file, "--at", "peak", "--memory-by", "stack", "--screenshot", picture}).code, 0);
  for (const char* pane : {"memory", "segments"})
    EXPECT_EQ(run(convert_picture_command,
                  {file, picture, "--pane", pane, "--memory-by", "category", "--bytes", "10Mi:60Mi", "--at", "10000s"})
                  .code,
              0);
}

}  // namespace
}  // namespace shard::view
