// Is a list of values told apart from the commas of one value, and does every option take one?
#include "sim/cli/lists.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "sim/cli/command_line.h"

namespace shard::cli {
namespace {

using Values = std::vector<std::string>;

TEST(Lists, CommasOfAValueAreItsOwn) {
  EXPECT_EQ(values_in("0,1,2"), (Values{"0", "1", "2"}));
  EXPECT_EQ(values_in("0"), (Values{"0"}));
  EXPECT_EQ(values_in(""), (Values{""}));
  EXPECT_EQ(values_in("1,,2,"), (Values{"1", "", "2", ""}));
  EXPECT_EQ(values_in("a\\,b.json,c"), (Values{"a,b.json", "c"}));
  EXPECT_EQ(values_in("a\\b,c\\"), (Values{"a\\b", "c\\"}));
  EXPECT_EQ(values_in("wte,wpe;h.*", ';'), (Values{"wte,wpe", "h.*"}));
  EXPECT_EQ(values_in(R"({"a": 1, "b": {"c": [2,3]}},gpt2,{"d": "},\",{"})"),
            (Values{R"({"a": 1, "b": {"c": [2,3]}})", "gpt2", R"({"d": "},\",{"})"}));
  EXPECT_EQ(values_in("h{1,2}"), (Values{"h{1", "2}"}));  // not at the beginning: no object
}

// What is written with its separators behind backslashes is read back.
TEST(Lists, AreReadBack) {
  std::mt19937 random(3);
  const std::string letters = "ab1.\\,;\"[}";
  for (int round = 0; round < 5000; ++round) {
    const char separator = round % 2 == 0 ? ',' : ';';
    Values values(1 + random() % 4);
    std::string text;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) text += separator;
      for (std::size_t n = random() % 6; n > 0; --n) {
        const char c = letters[random() % letters.size()];
        // A backslash in front of a separator would be the separator's.
        if (c == separator && values[i].ends_with('\\')) continue;
        values[i] += c;
        text += c == separator ? std::string{'\\', c} : std::string{c};
      }
      if (values[i].ends_with('\\')) values[i] += 'x', text += 'x';
    }
    EXPECT_EQ(values_in(text, separator), values) << text;
  }
}

/// A command whose options take lists; `choices` says which value of each counts.
struct Listing {
  int stage = 0;
  bool keep = false;
  std::string unit_name = "module";
  Values freeze;
  std::string picture;
  Values asked;
  Command command{"shardscope", "sweep", "predicts many", ""};

  explicit Listing(std::vector<std::size_t> choices) {
    Group group = command.group("All");
    group.add("stage", &stage, "0..3", "stage").least(0).most(3).alias("zero-stage");
    group.add_switch("keep", &keep, "keep");
    group.add_words(
        "unit", std::vector<Group::Named>{{"tensor", ""}, {"module", ""}},
        [this]() -> std::size_t { return unit_name == "tensor" ? 0 : 1; },
        [this](std::size_t i) { unit_name = i == 0 ? "tensor" : "module"; }, "unit");
    group.add_list("freeze", &freeze, "PATTERN[,...]", "frozen");
    group.add("picture", &picture, "FILE", "file").once();
    command.take_lists([this, choices](const std::string& option, const Values& values) {
      asked.push_back(option + "/" + std::to_string(values.size()));
      return choices[asked.size() - 1];
    });
  }
  Result<Outcome> parse(const Values& arguments) { return command.parse(arguments); }
};

TEST(Lists, TheChosenValueCounts) {
  Listing line({2, 1, 0, 1});
  const auto outcome = line.parse({"--zero-stage", "0,1,3", "--keep=true,false", "--unit=tensor,module", "--freeze",
                                   "a,b;c,d", "--picture", "a,b.svg"});
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  EXPECT_EQ(line.stage, 3);
  EXPECT_FALSE(line.keep);
  EXPECT_EQ(line.unit_name, "tensor");
  EXPECT_EQ(line.freeze, (Values{"c", "d"}));
  EXPECT_EQ(line.picture, "a,b.svg");
  EXPECT_EQ(line.asked, (Values{"stage/3", "keep/2", "unit/2", "freeze/2"}));
  EXPECT_EQ(line.command.describe("stage"), "--stage 3 (command line)");
}

TEST(Lists, OneValueIsNoList) {
  Listing line({});
  ASSERT_TRUE(line.parse({"--keep", "--stage", "2", "--freeze", "a,b", "--no-keep"}).has_value() == false);
  Listing other({});
  ASSERT_TRUE(other.parse({"--keep", "--stage", "2", "--freeze", "a,b"}));
  EXPECT_TRUE(other.keep);
  EXPECT_EQ(other.freeze, (Values{"a", "b"}));
}

TEST(Lists, StandInAFileOfOptions) {
  const std::string path = (std::filesystem::temp_directory_path() / "shardscope_lists_test.conf").string();
  std::ofstream(path) << "stage = 1,2\nkeep = true,false\n";
  Listing line({1, 0});
  const auto outcome = line.parse({"--config", path});
  std::filesystem::remove(path);
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  EXPECT_EQ(line.stage, 2);
  EXPECT_TRUE(line.keep);
  EXPECT_EQ(line.command.describe("stage"), "--stage 2 (" + path + ":1)");
}

// A wrong value is found whichever is chosen.
TEST(Lists, EveryValueIsChecked) {
  for (const char* text : {"0,1,4", "4,0", "0,", "0,x"}) {
    Listing line({0});
    const auto outcome = line.parse({"--stage", text});
    ASSERT_FALSE(outcome) << text;
    EXPECT_EQ(outcome.error().code, Errc::usage) << text;
    EXPECT_NE(to_string(outcome.error()).find("--stage"), std::string::npos) << text;
  }
}

TEST(Lists, HelpSaysHowEachOptionTakesThem) {
  const std::string help = Listing({}).command.help();
  EXPECT_NE(help.find("--keep=true,false"), std::string::npos) << help;
  EXPECT_NE(help.find("';'"), std::string::npos) << help;
}

}  // namespace
}  // namespace shard::cli
