// Do tables, styles, progress and errors look as documented in each form?
#include "sim/cli/output.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/cli/progress.h"
#include "sim/cli/table.h"

namespace shard::cli {
namespace {

Table sample() {
  return {{{"name", "name", Align::left}, {"peak_bytes", "peak"}, {"fits", "fits"}},
          {{"a,\"b\"", cell(Bytes{134217728}), true}, {"c|d", Cell(), false}}};
}

TEST(Table, AlignsText) {
  EXPECT_EQ(render(sample(), Format::table, {}),
            "name        peak  fits\n"
            "a,\"b\"  128.0 MiB   yes\n"
            "c|d                 no\n");
}

TEST(Table, JsonKeepsTypesAndColumnOrder) {
  EXPECT_EQ(to_json(sample()).dump(),
            R"([{"name":"a,\"b\"","peak_bytes":134217728,"fits":true},{"name":"c|d","peak_bytes":null,"fits":false}])");
}

TEST(Table, CsvQuotesAsRfc4180) {
  EXPECT_EQ(render(sample(), Format::csv, {}), "name,peak_bytes,fits\n\"a,\"\"b\"\"\",134217728,true\nc|d,,false\n");
}

TEST(Table, MarkdownEscapesBars) {
  EXPECT_EQ(render(sample(), Format::markdown, {}),
            "| name | peak | fits |\n| :-- | --: | --: |\n| a,\"b\" | 128.0 MiB | yes |\n| c\\|d |  | no |\n");
}

TEST(Json, TextThatIsNotUtf8DoesNotThrow) {
  auto document = json_document("search");
  document["file"] = "\xff.json";
  EXPECT_NE(json_text(document).find("\"schema_version\": 1"), std::string::npos);
}

Style style_with(bool terminal, std::map<std::string, std::string> variables) {
  return style_for(terminal, 80, [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Style, ColourNeedsATerminalAndNoNoColor) {
  EXPECT_TRUE(style_with(true, {{"TERM", "xterm"}}).color);
  EXPECT_FALSE(style_with(false, {{"TERM", "xterm"}}).color);
  EXPECT_FALSE(style_with(true, {{"TERM", "dumb"}}).color);
  EXPECT_FALSE(style_with(true, {{"TERM", "xterm"}, {"NO_COLOR", "1"}}).color);
  EXPECT_TRUE(style_with(true, {{"TERM", "xterm"}, {"NO_COLOR", ""}}).color);
}

TEST(Style, UnicodeFollowsTheFirstLocaleVariableThatIsSet) {
  EXPECT_TRUE(style_with(false, {{"LANG", "en_US.UTF-8"}}).unicode);
  EXPECT_TRUE(style_with(false, {{"LC_ALL", "C.utf8"}, {"LANG", "C"}}).unicode);
  EXPECT_FALSE(style_with(false, {{"LC_ALL", "C"}, {"LANG", "en_US.UTF-8"}}).unicode);
  EXPECT_FALSE(style_with(false, {}).unicode);
}

TEST(PrintError, SaysWhereWhatAndHelpAndGivesTheExitCode) {
  std::ostringstream out;
  EXPECT_EQ(print_error(out, {Errc::malformed, "no such key", "a.json:3", "add it"}), 65);
  EXPECT_EQ(out.str(), "shardscope: a.json:3: no such key\n  try: add it\n");
}

TEST(Output, AResultThatCannotBeWrittenIsAnError) {
  std::ostringstream out;
  std::ostringstream errors;
  EXPECT_EQ(finish(out, errors, 0), 0);
  EXPECT_EQ(errors.str(), "");
  out.setstate(std::ios::badbit);
  EXPECT_EQ(finish(out, errors, 0), 74);
  EXPECT_NE(errors.str().find("stdout: the result could not be written"), std::string::npos);
  EXPECT_EQ(finish(out, errors, 3), 3);
}

TEST(Progress, IsSilentInTheFirstSecondAndLeavesTheTerminalClean) {
  double now = 0;
  std::ostringstream out;
  Progress progress(out, "searching", {.terminal = true}, [&] { return Seconds{now}; });
  now = 0.9;
  progress.update(0.1);
  EXPECT_EQ(out.str(), "");
  now = 2;
  progress.update(0.5, "chunk 7");
  EXPECT_EQ(out.str(), "\rsearching [############------------] 50 %, 2.00 s left, chunk 7\033[K");
  now = 2.05;
  progress.update(0.6);
  progress.finish();
  progress.finish();
  EXPECT_TRUE(out.str().ends_with("chunk 7\033[K\r\033[K"));
}

TEST(Progress, WritesALinePerTenSecondsElsewhere) {
  double now = 0;
  std::ostringstream out;
  {
    Progress progress(out, "training", {}, [&] { return Seconds{now}; });
    for (now = 0; now < 25; now += 0.5) progress.update(now / 40, "step");
  }
  EXPECT_EQ(out.str(), "training 25 %, 30.0 s left, step\ntraining 50 %, 20.0 s left, step\n");
}

TEST(Printing, NamesFromFilesDoNotCommandTheTerminal) {
  std::ostringstream out;
  EXPECT_EQ(print_error(out, {Errc::malformed, "no \x1b[31mkey", "a\x07.json", "\xc2\x9bm"}), 65);
  EXPECT_EQ(out.str(), "shardscope: a\\x07.json: no \\x1b[31mkey\n  try: \\u{9b}m\n");
  std::ostringstream text;
  print(text, "op \x1b[2J\n");
  EXPECT_EQ(text.str(), "op \\x1b[2J\n");
  EXPECT_EQ(json_text("\x7f"), "\"\\u007f\"\n");
}

TEST(Printing, TextInMarkdownIsNeitherMarkdownNorHtml) {
  EXPECT_EQ(markdown_text("<script>a|b*c`d[e]\n&\x1b"), "&lt;script&gt;a\\|b\\*c\\`d\\[e\\] &amp;\\\\x1b");
  EXPECT_EQ(markdown_text("peak_device_bytes 12.0 MiB (gpt2)"), "peak_device_bytes 12.0 MiB (gpt2)");
}

}  // namespace
}  // namespace shard::cli
