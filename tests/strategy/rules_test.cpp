// Do rules name options that there are, and do errors say which options contradict each other?
#include "sim/strategy/rules.h"

#include <gtest/gtest.h>

#include "sim/commands/strategy_options.h"
#include "sim/strategy/fields.h"

namespace shard::plan {
namespace {

TEST(Rules, NameOptionsAndWordsThatThereAre) {
  commands::StrategyOptions options;
  cli::Command command("shardscope", "test", "summary", "");
  commands::add_strategy_options(command, options, false);
  const auto check_words = [](std::string_view option, const Values& values) {
    const Field* field = find_field(option);
    const auto* named = field == nullptr ? nullptr : std::get_if<WordMember>(&field->place);
    if (named == nullptr) return;
    for (const std::string_view value : words_in(values.list)) {
      bool found = false;
      for (const Word& word : named->words()) found = found || value == word.text;
      EXPECT_TRUE(found) << option << ' ' << value;
    }
  };
  for (const Rule& rule : rules()) {
    EXPECT_TRUE(command.has(rule.other)) << rule.other;
    EXPECT_NE(rule.why.find("{}"), std::string_view::npos) << rule.why;
    for (const std::string_view option : words_in(rule.options)) {
      EXPECT_TRUE(command.has(option)) << option;
      check_words(option, rule.values);
    }
    check_words(rule.other, rule.others);
    if (rule.broken != Broken::by_values) continue;
    EXPECT_NE(find_field(rule.options), nullptr) << rule.options;
    EXPECT_NE(find_field(rule.other), nullptr) << rule.other;
  }
}

TEST(Rules, ErrorsCarryBothOptions) {
  const Result<void> checked = check_rules({.world_size = 2, .stage = 2, .keep_gathered = true});
  ASSERT_FALSE(checked);
  const Error& error = checked.error();
  EXPECT_EQ(error.what,
            "--keep-gathered keeps units after they were gathered for forward, but --stage 2 gathers none for it");
  EXPECT_EQ(error.help, "--stage 3");
  ASSERT_EQ(error.mentions.size(), 2U);
  EXPECT_EQ(error.mentions[0].option, "keep-gathered");
  EXPECT_EQ(error.what.substr(0, error.mentions[0].end), "--keep-gathered");
  EXPECT_EQ(error.mentions[1].option, "stage");
  EXPECT_TRUE(error.what.substr(0, error.mentions[1].end).ends_with("but --stage 2"));
}

}  // namespace
}  // namespace shard::plan
