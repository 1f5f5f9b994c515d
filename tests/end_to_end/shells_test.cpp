// Do bash and zsh complete what the commands declare, and do the manual pages say it?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;

/// Is there such a program on PATH?
bool has(const std::string& program) {
  return run({"/bin/sh", "-c", "command -v " + program + " >/dev/null"}).exit_code == 0;
}

/// What bash offers behind these words, of which the last is being written.
Words offered(const Words& words, const ScratchDirectory& scratch) {
  static const std::string script = shardscope({"completion", "bash"}).out;
  scratch.write("completion.bash", script);
  std::string drive = "source ./completion.bash; COMP_WORDS=(";
  for (const std::string& each : words) drive += " '" + each + "'";
  drive +=
      "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); function=$(complete -p shardscope); function=${function#*-F }; "
      "${function%% *}; printf '%s\\n' \"${COMPREPLY[@]}\"";
  const Outcome outcome = run({"/bin/bash", "-euc", drive}, {.directory = scratch.path()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  Words all;
  std::istringstream in(outcome.out);
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) all.push_back(line);
  return all;
}

TEST(Bash, CompletesCommandsOptionsAndFixedWords) {
  const ScratchDirectory scratch;
  EXPECT_THAT(offered({"shardscope", "si"}, scratch), ElementsAre("simulate"));
  EXPECT_THAT(offered({"shardscope", ""}, scratch), IsSupersetOf({"search", "train", "help", "man"}));
  EXPECT_THAT(offered({"shardscope", "simulate", "--uni"}, scratch), ElementsAre("--unit"));
  EXPECT_THAT(offered({"shardscope", "simulate", "--no-keep"}, scratch), ElementsAre("--no-keep-gathered"));
  EXPECT_THAT(offered({"shardscope", "simulate", "--rank"}, scratch), Contains("--ranks"));  // an alias
  EXPECT_THAT(offered({"shardscope", "simulate", "--unit", ""}, scratch),
              ElementsAre("tensor", "bucket", "module", "chunk"));
  EXPECT_THAT(offered({"shardscope", "simulate", "--stage", ""}, scratch), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(offered({"shardscope", "simulate", "--chunk-size", ""}, scratch),
              ElementsAre("search", "variable", "none"));
  EXPECT_THAT(offered({"shardscope", "help", "sl"}, scratch), ElementsAre("slow"));
  EXPECT_THAT(offered({"shardscope", "completion", ""}, scratch), ElementsAre("bash", "zsh"));
}

/// Readline parts "--unit=c" at the '='.
TEST(Bash, CompletesBehindAnEqualsSign) {
  const ScratchDirectory scratch;
  EXPECT_THAT(offered({"shardscope", "simulate", "--unit", "=", "c"}, scratch), ElementsAre("chunk"));
  EXPECT_THAT(offered({"shardscope", "simulate", "--unit", "="}, scratch), Contains("chunk"));
  EXPECT_THAT(offered({"shardscope", "simulate", "--unit=c"}, scratch), ElementsAre("chunk"));
}

TEST(Bash, CompletesTheLastOfAList) {
  const ScratchDirectory scratch;
  EXPECT_THAT(offered({"shardscope", "sweep", "--stage", "0,1,"}, scratch),
              ElementsAre("0,1,0", "0,1,1", "0,1,2", "0,1,3"));
  EXPECT_THAT(offered({"shardscope", "simulate", "--stage", "0,"}, scratch), ElementsAre());
}

TEST(Bash, CompletesKnownNamesAndFiles) {
  const ScratchDirectory scratch;
  scratch.write("gpt2-of mine.json", "{}");
  scratch.write("run.sst", "");
  EXPECT_THAT(offered({"shardscope", "simulate", "--model", "gpt2-"}, scratch),
              IsSupersetOf({"gpt2-medium", "gpt2-xl", "gpt2-of mine.json"}));
  EXPECT_THAT(offered({"shardscope", "simulate", "--cluster", "h100"}, scratch), Contains("h100-80gb-x8"));
  EXPECT_THAT(offered({"shardscope", "inspect", "run"}, scratch), ElementsAre("run.sst"));
  EXPECT_THAT(offered({"shardscope", "simulate", "--ds-config", "run"}, scratch), ElementsAre("run.sst"));
  EXPECT_THAT(offered({"shardscope", "simulate", "--sequence", "run"}, scratch), ElementsAre());
}

/// Nothing that a command declares is missing, nothing stands there that it does not take.
TEST(Bash, OffersTheOptionsThatCommandsDeclare) {
  const ScratchDirectory scratch;
  for (const char* command : {"search", "simulate", "sweep", "plan", "compare", "inspect", "convert", "train"}) {
    const nlohmann::json described = json_of(shardscope({command, "--help=json"}));
    Words expected;
    for (const auto& group : described["groups"])
      for (const auto& option : group["options"]) {
        expected.push_back("--" + option["name"].get<std::string>());
        for (const auto& alias : option["aliases"]) expected.push_back("--" + alias.get<std::string>());
        if (option["negatable"]) expected.push_back("--no-" + option["name"].get<std::string>());
      }
    EXPECT_GE(expected.size(), 4u) << command;
    Words given = offered({"shardscope", command, "--"}, scratch);
    std::erase(given, "--");
    std::ranges::sort(expected);
    std::ranges::sort(given);
    EXPECT_EQ(given, expected) << command;
  }
}

/// zsh's own functions are played: what they are asked for says what would be completed.
TEST(Zsh, ReadsTheFunctionAndAsksForTheCommandsOptions) {
  const ScratchDirectory scratch;
  const std::string path = scratch.write("_shardscope", shardscope({"completion", "zsh"}).out);
  EXPECT_THAT(read_file(path), testing::StartsWith("#compdef shardscope\n"));
  EXPECT_THAT(read_file(path), HasSubstr("'--unit=[what is gathered, released and reduced together]:"));
  if (!has("zsh")) GTEST_SKIP() << "no zsh here";
  const std::string play =
      "_arguments() { print -l -- \"$@\" }; _describe() { print -l -- ${(P)2} }; compadd() { print -l -- ${(P)2} }; ";
  const auto ask = [&](const std::string& words, int current) {
    const Outcome outcome = run(
        {"zsh", "-fc", play + "words=(" + words + "); CURRENT=" + std::to_string(current) + "; source ./_shardscope"},
        {.directory = scratch.path()});
    EXPECT_EQ(outcome.err, "");
    return outcome.out;
  };
  EXPECT_THAT(ask("shardscope ''", 2), HasSubstr("simulate:"));
  EXPECT_THAT(ask("shardscope help ''", 3), HasSubstr("\nslow\n"));
  const std::string specs = ask("shardscope simulate ''", 3);
  EXPECT_THAT(specs, HasSubstr("(tensor bucket module chunk)"));
  EXPECT_THAT(specs, HasSubstr("--no-keep-gathered["));
}

Words man_pages(const ScratchDirectory& scratch) {
  const Outcome outcome = shardscope({"man", "--all", scratch.file("man")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  Words pages;
  for (const auto& each : std::filesystem::directory_iterator(scratch.path() / "man")) pages.push_back(each.path());
  std::ranges::sort(pages);
  return pages;
}

TEST(Man, PagesHaveTheSectionsThatReadersLookFor) {
  const ScratchDirectory scratch;
  const Words pages = man_pages(scratch);
  EXPECT_GE(pages.size(), 12u);
  for (const std::string& page : pages) {
    const std::string text = read_file(page);
    EXPECT_THAT(text, testing::StartsWith(".TH "));
    for (const char* section : {"NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "SEE ALSO"})
      EXPECT_THAT(text, HasSubstr("\n.SH " + std::string(section) + "\n")) << page;
    // A line of text never asks roff for anything that is not meant.
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      if (!line.starts_with('.')) continue;
      EXPECT_THAT(line.substr(0, 3), testing::MatchesRegex("\\.(TH|SH|SS|TP|PP|EX|EE|br|nh|ad|B |I |B|I)"))
          << page << line;
    }
  }
  EXPECT_EQ(shardscope({"man", "simulate"}).out, read_file(scratch.path() / "man/shardscope-simulate.1"));
  EXPECT_EQ(shardscope({"man"}).out, read_file(scratch.path() / "man/shardscope.1"));
  EXPECT_THAT(shardscope({"man", "simulat"}).err, HasSubstr("did you mean 'simulate'?"));
  EXPECT_EQ(shardscope({"man", "simulat"}).exit_code, 2);
  EXPECT_EQ(shardscope({"completion", "fish"}).exit_code, 2);
}

TEST(Man, FormattersTakeThePages) {
  const ScratchDirectory scratch;
  const Words pages = man_pages(scratch);
  const bool groff = has("groff") && run({"groff", "-man", "-Tutf8", pages.front()}).exit_code == 0;
  const bool mandoc = has("mandoc");
  if (!groff && !mandoc) GTEST_SKIP() << "neither groff with man's macros nor mandoc here";
  for (const std::string& page : pages) {
    if (groff) {
      const Outcome shown = run({"groff", "-man", "-Tutf8", "-ww", "-P-cbou", page});
      EXPECT_EQ(shown.exit_code, 0);
      EXPECT_EQ(shown.err, "") << page;
      EXPECT_THAT(shown.out, HasSubstr("NAME")) << page;
    }
    // A page of a build has no date.
    if (mandoc) {
      EXPECT_THAT(run({"/bin/sh", "-c", "mandoc -Tlint -Wwarning '" + page + "' | grep -v 'missing date'"}).out, "");
    }
  }
}

}  // namespace
}  // namespace shard::test
