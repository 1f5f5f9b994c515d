// Are levers simulations of what was asked with one option more, the largest saving first?
#include "sim/commands/levers.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace shard::commands {
namespace {

using Words = std::vector<std::string>;

bool has(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

TEST(Levers, TheLargestSavingComesFirstAndWhatSavesNothingIsLeftOut) {
  const Words asked{"--model", "gpt2"};
  const auto levers =
      find_levers({.arguments = asked, .peak = Bytes{100}, .micro_batch = 8}, [](const Words& words) -> Result<Bytes> {
        if (has(words, "--micro-batch=4")) return Bytes{60};
        if (has(words, "--recompute=block")) return Bytes{50};
        if (has(words, "--stage=1")) return Bytes{100};
        if (has(words, "--stage=2")) return Bytes{101};
        return Error{Errc::contradiction, "not modelled", "", ""};
      });
  ASSERT_EQ(levers.size(), 2u);
  EXPECT_EQ(levers[0].option, "--recompute block");
  EXPECT_EQ(levers[0].saved, Bytes{50});
  EXPECT_EQ(levers[1].option, "--micro-batch 4");
  EXPECT_EQ(levers[1].peak, Bytes{60});
}

TEST(Levers, WhatWasAskedStaysButForTheOptionItself) {
  const Words asked{"--recompute", "none", "--stage=3", "--reproducible", "--json", "--micro-batch", "2"};
  std::vector<Words> lines;
  (void)find_levers({.arguments = asked, .peak = Bytes{1}, .micro_batch = 2}, [&](const Words& words) -> Result<Bytes> {
    lines.push_back(words);
    return Bytes{1};
  });
  const auto line_of = [&](const std::string& last) {
    return *std::find_if(lines.begin(), lines.end(), [&](const Words& words) { return words.back() == last; });
  };
  EXPECT_EQ(line_of("--recompute=block"),
            (Words{"--stage=3", "--reproducible", "--json", "--micro-batch", "2", "--recompute=block"}));
  EXPECT_EQ(line_of("--stage=1"),
            (Words{"--recompute", "none", "--reproducible", "--json", "--micro-batch", "2", "--stage=1"}));
  EXPECT_EQ(line_of("--no-reproducible"),
            (Words{"--recompute", "none", "--stage=3", "--json", "--micro-batch", "2", "--no-reproducible"}));
  EXPECT_EQ(line_of("--micro-batch=1"),
            (Words{"--recompute", "none", "--stage=3", "--reproducible", "--json", "--micro-batch=1"}));
}

}  // namespace
}  // namespace shard::commands
