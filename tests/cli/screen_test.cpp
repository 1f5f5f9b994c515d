// Does nothing get through a screen but printable text and marks of ours, however it is written?
#include "sim/cli/screen.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "sim/cli/output.h"
#include "sim/cli/program.h"
#include "sim/cli/table.h"
#include "traces/base/printable.h"

namespace shard::cli {
namespace {

constexpr const char* kHostile = "a\x1b]0;t\a\r\xc2\x9b\u202e\u2069\x7f\xff";
constexpr const char* kShown = "a\\x1b]0;t\\x07\\x0d\\u{9b}\\u{202e}\\u{2069}\\x7f\\xff";

TEST(Screen, WhatIsWrittenBecomesPrintable) {
  std::ostringstream out;
  {
    const Screen screen(out);
    out << kHostile << 7 << '\x1b' << std::flush;
  }
  EXPECT_EQ(out.str(), std::string(kShown) + "7\\x1b");
  out << '\x1b';  // the stream is what it was
  EXPECT_TRUE(out.str().ends_with('\x1b'));
}

TEST(Screen, PiecesMakeNoDifference) {
  constexpr std::string_view kPieces[] = {"a",    "\n",   "\x1b",     "\xe2", "\x96", "\x88",
                                          "\xc2", "\x9b", "\xf0\x9f", "\x80", "\xff"};
  std::mt19937 random(1);  // NOLINT: the same every time
  for (int trial = 0; trial < 2000; ++trial) {
    std::string whole;
    std::ostringstream out;
    {
      const Screen screen(out);
      for (int i = 0; i < 12; ++i) {
        const std::string_view piece = kPieces[random() % std::size(kPieces)];
        whole += piece;
        out << piece;
        if (random() % 2 == 0) out.flush();
      }
    }
    ASSERT_EQ(out.str(), printable(whole));
  }
}

TEST(Screen, OnlyOurMarksStyle) {
  std::ostringstream out;
  {
    const Screen screen(out);
    const Table table{.columns = {{"name", "name\x1b[5m"}}, .rows = {{kHostile}}};
    out << render(table, Format::table, {.color = true});
    print_error(out, {Errc::malformed, kHostile, "", ""}, {.color = true});
  }
  EXPECT_EQ(out.str(), "\x1b[1m" + std::string(std::string_view(kShown).size() - 11, ' ') + "name\\x1b[5m\x1b[0m\n" +
                           kShown + "\n\x1b[1;31mshardscope:\x1b[0m " + kShown + "\n");
}

TEST(Screen, EveryFormOfATableIsPrintable) {
  const Table table{.columns = {{"name", "name"}}, .rows = {{kHostile}, {{kHostile, kHostile}}}};
  for (const Format format : {Format::table, Format::json, Format::csv, Format::markdown}) {
    const std::string text = render(table, format, {}).str();
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Screen, JsonPassesAsItIs) {
  const std::string text = json_text(nlohmann::ordered_json{{"name", "a\x1b\u202e\x7f\"\\\n"}});
  std::ostringstream out;
  {
    const Screen screen(out);
    out << text;
  }
  EXPECT_EQ(out.str(), text);
}

TEST(Screen, WhatCannotBeWrittenIsNoticed) {
  std::ostringstream out;
  out.setstate(std::ios::failbit);
  const Screen screen(out);
  EXPECT_TRUE(out.fail());
  out << Styled("a") << "b";
  EXPECT_TRUE(out.fail());
}

TEST(Screen, IsInFrontOfBothStreamsOfEveryProgram) {
  std::ostringstream out;
  std::ostringstream errors;
  Program program("shardscope", "0.1.0");
  program.add("search", [&](std::span<const std::string>) {
    out << kHostile;
    errors << kHostile;
    return 0;
  });
  EXPECT_EQ(run_program(program, std::vector<std::string>{"search"}, out, errors), 0);
  // The byte at the end begins nothing: it is shown at once.
  EXPECT_EQ(out.str(), kShown);
  EXPECT_EQ(errors.str(), kShown);
}

}  // namespace
}  // namespace shard::cli
