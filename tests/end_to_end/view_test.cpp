// The viewer through the one program: pictures and reports without a display, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "tests/end_to_end/command_lines.h"
#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

/// predicted.sst, measured.sst, before.sst (another plan) and more.
const ScratchDirectory& inputs() {
  static const std::unique_ptr<ScratchDirectory> kInputs = [] {
    auto in = std::make_unique<ScratchDirectory>();
    make_inputs(*in);
    in->write("garbage.sst", "this is no trace, but it is long enough to hold a header of one, and more than that");
    const std::string good = read_file(in->path() / "predicted.sst");
    in->write("cut.sst", good.substr(0, good.size() / 2));
    return in;
  }();
  return *kInputs;
}

/// In the directory of the inputs, without a display.
Outcome in_place(const Words& words) {
  return shardscope(words, {.directory = inputs().path(), .environment = {{"DISPLAY", ""}, {"WAYLAND_DISPLAY", ""}}});
}

/// Width and height as a PNG file's header says; {0, 0} where it is none.
std::pair<int, int> png_size(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  if (!bytes.starts_with("\x89PNG\r\n\x1a\n") || bytes.size() < 24) return {0, 0};
  const auto number = [&](std::size_t at) {
    int value = 0;
    for (std::size_t i = at; i < at + 4; ++i) value = value * 256 + static_cast<unsigned char>(bytes[i]);
    return value;
  };
  return {number(16), number(20)};
}

TEST(Help, ListsTheCommandsOfTheViewer) {
  const std::string help = shardscope({"--help"}).out;
  for (const std::string command : {"view", "report"}) {
    EXPECT_THAT(help, HasSubstr("\n  " + command + " "));
    const Outcome own = shardscope({command, "--help"});
    EXPECT_EQ(own.exit_code, 0);
    EXPECT_THAT(own.out, HasSubstr("Usage: shardscope " + command));
    EXPECT_EQ(shardscope({"help", command}).out, own.out);
  }
}

class HelpExamples : public testing::TestWithParam<std::string> {};

/// Those that open a window make a picture of it instead.
TEST_P(HelpExamples, Run) {
  const Outcome help = shardscope({GetParam(), "--help"});
  const std::vector<CommandLine> lines = command_lines(help.out.substr(help.out.find("Examples:\n")));
  ASSERT_GE(lines.size(), 2U);
  const ScratchDirectory scratch;
  make_inputs(scratch);
  scratch.write("result.json",
                shardscope({"search", "--model", "gpt2", "--world-size", "8", "--no-forecast", "--json"}).out);
  for (CommandLine line : lines) {
    if (line.text.starts_with("shardscope view") && line.text.find("--screenshot") == std::string::npos)
      line.text += " --screenshot window.png --size 800x500";
    const Outcome outcome = run_line(line, scratch);
    EXPECT_EQ(outcome.exit_code, line.exit_code) << line.text << "\n" << outcome.err;
  }
}

INSTANTIATE_TEST_SUITE_P(All, HelpExamples, testing::Values("view", "report"),
                         [](const auto& each) { return each.param; });

TEST(View, ScreenshotWithJsonSaysWhatItCost) {
  const Outcome outcome =
      in_place({"view", "predicted.sst", "measured.sst", "--screenshot", "whole.png", "--size", "900x600", "--json"});
  const json j = json_of(outcome);
  EXPECT_EQ(j["command"], "view");
  EXPECT_EQ(j["schema_version"], 1);
  for (const char* key : {"load_seconds", "first_picture_seconds", "build_seconds", "draw_seconds"})
    EXPECT_GT(j[key].get<double>(), 0) << key;
  EXPECT_GT(j["resident_bytes"], 1 << 20);
  const json inspected = json_of(in_place({"inspect", "predicted.sst", "--json"}));
  ASSERT_EQ(j["traces"].size(), 2U);
  EXPECT_EQ(j["traces"][0]["span_count"], inspected["span_count"]);
  EXPECT_EQ(j["traces"][0]["memory_event_count"], inspected["memory_event_count"]);
  EXPECT_EQ(png_size(inputs().path() / "whole.png"), std::pair(900, 600));
}

TEST(View, WithoutADisplaySaysSoAndWhatWorksInstead) {
  const Outcome outcome = in_place({"view", "predicted.sst"});
  EXPECT_EQ(outcome.exit_code, 69) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("--screenshot FILE.png"));
}

TEST(View, DifferentPlansAreRefusedAndForceLinesThemUp) {
  const Words words{"view", "predicted.sst", "before.sst", "--screenshot", "plans.png", "--size", "600x400"};
  const Outcome refused = in_place(words);
  EXPECT_EQ(refused.exit_code, 78);
  EXPECT_THAT(refused.err, HasSubstr("two different plans"));
  EXPECT_THAT(refused.err, HasSubstr("--force"));
  EXPECT_FALSE(std::filesystem::exists(inputs().path() / "plans.png"));
  Words forced = words;
  forced.emplace_back("--force");
  EXPECT_EQ(in_place(forced).exit_code, 0);
  EXPECT_EQ(png_size(inputs().path() / "plans.png"), std::pair(600, 400));
}

TEST(View, FilesThatCannotBeReadEndWithTheirExitCode) {
  struct Case {
    std::string file;
    int code;
    std::string says;
  };
  for (const Case& each :
       {Case{"nosuch.sst", 66, "cannot be read"}, {"garbage.sst", 65, "byte 0"}, {"params.json", 65, "params.json"}}) {
    for (const Words& words : {Words{"view", each.file, "--screenshot", "refused.png"},
                               {"report", each.file, "-o", "refused.html"},
                               {"convert", each.file, "refused.png"}}) {
      const Outcome outcome = in_place(words);
      EXPECT_EQ(outcome.exit_code, each.code) << words[0] << " " << each.file << ": " << outcome.err;
      EXPECT_THAT(outcome.err, HasSubstr(each.says));
      EXPECT_THAT(outcome.err, HasSubstr(each.file));
      EXPECT_THAT(outcome.out, IsEmpty());
    }
  }
  EXPECT_FALSE(std::filesystem::exists(inputs().path() / "refused.png"));
  EXPECT_FALSE(std::filesystem::exists(inputs().path() / "refused.html"));
}

TEST(View, ATraceThatIsCutOffIsShownAsFarAsItGoes) {
  const Outcome outcome = in_place({"view", "cut.sst", "--screenshot", "cut.png", "--json"});
  const json j = json_of(outcome);
  EXPECT_FALSE(j["traces"][0]["complete"].get<bool>());
  EXPECT_THAT(outcome.err, HasSubstr("byte"));
  EXPECT_THAT(outcome.err, HasSubstr("shown: "));
}

TEST(Convert, ToAPictureIsHandedOverToTheViewer) {
  const Outcome outcome = in_place({"convert", "predicted.sst", "memory.png", "--pane", "memory", "--size", "640x300"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(png_size(inputs().path() / "memory.png"), std::pair(640, 300));
  EXPECT_EQ(in_place({"convert", "predicted.sst", "memory", "--to", "png"}).exit_code, 0);
  EXPECT_EQ(png_size(inputs().path() / "memory").first, 1600);
}

TEST(Demonstration, EndsWithAPictureOfItsTracesAndItsPath) {
  const std::string script = (std::filesystem::path(TEST_DATA).parent_path() / "examples/compare_picture.sh").string();
  const auto with_path = [&](const std::string& programs) {
    return run({script, inputs().path().string()},
               {.environment = {{"PATH", programs + ":" + std::getenv("PATH")}, {"DISPLAY", ""}}});
  };
  const Outcome drawn = with_path(programs_directory());
  EXPECT_EQ(drawn.exit_code, 0) << drawn.err;
  const std::filesystem::path picture = std::filesystem::canonical(inputs().path()) / "compare.png";
  EXPECT_THAT(drawn.out, testing::StartsWith(picture.string()));
  EXPECT_EQ(png_size(picture), std::pair(1600, 1000));

  std::filesystem::remove(picture);
  const ScratchDirectory alone;  // of the programs only the first
  std::filesystem::copy_file(shardscope_path(), alone.path() / "shardscope");
  const Outcome without = with_path(alone.path().string());
  EXPECT_EQ(without.exit_code, 0) << without.err;
  EXPECT_THAT(without.out, HasSubstr("the viewer (shardscope-view) was not built"));
  EXPECT_FALSE(std::filesystem::exists(picture));
}

TEST(Report, IsOneFileWithTheNumbersOfCompare) {
  const json j = json_of(in_place({"report", "predicted.sst", "measured.sst", "-o", "report.html", "--json"}));
  EXPECT_EQ(j["command"], "report");
  EXPECT_FALSE(j["verdicts"].empty());
  const std::string html = read_file(inputs().path() / "report.html");
  EXPECT_THAT(html, HasSubstr("data:image/png;base64,"));
  EXPECT_THAT(html, testing::Not(HasSubstr("src=\"http")));
  EXPECT_EQ(in_place({"report", "predicted.sst", "before.sst", "-o", "other.html"}).exit_code, 78);
}

}  // namespace
}  // namespace shard::test
