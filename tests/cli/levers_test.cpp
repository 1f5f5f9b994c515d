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
  const auto levers = find_levers({.arguments = asked, .peak = Bytes{100}, .micro_batch = 8},
                                  [](const Words& words) -> Result<LeverAnswer> {
                                    if (has(words, "--micro-batch=4")) return LeverAnswer{.peak = Bytes{60}};
                                    if (has(words, "--recompute=block")) return LeverAnswer{.peak = Bytes{50}};
                                    if (has(words, "--stage=1")) return LeverAnswer{.peak = Bytes{100}};
                                    if (has(words, "--stage=2")) return LeverAnswer{.peak = Bytes{101}};
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
  (void)find_levers({.arguments = asked, .peak = Bytes{1}, .micro_batch = 2},
                    [&](const Words& words) -> Result<LeverAnswer> {
                      lines.push_back(words);
                      return LeverAnswer{.peak = Bytes{1}};
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

TEST(Levers, OfAHostPutDataElsewhereAndSayWhereAnotherMemoryIsTooSmall) {
  const Words asked{"--placement", "host"};
  const auto levers = find_levers(
      {.arguments = asked, .peak = Bytes{100}, .memory = Memory::host}, [](const Words& words) -> Result<LeverAnswer> {
        if (has(words, "--placement=device")) return LeverAnswer{Bytes{0}, cluster::Verdict::does_not_fit};
        if (has(words, "--optimizer-placement=disk") && has(words, "--disk-path=.") && !has(words, "--placement"))
          return LeverAnswer{Bytes{40}, cluster::Verdict::fits};
        return LeverAnswer{Bytes{100}, cluster::Verdict::does_not_fit};
      });
  ASSERT_EQ(levers.size(), 2u);
  EXPECT_EQ(levers[0].option, "--placement device");
  EXPECT_EQ(levers[0].verdict, cluster::Verdict::does_not_fit);
  EXPECT_EQ(levers[1].option,
            "--param-placement host --grad-placement host --optimizer-placement disk --disk-path DIR");
  EXPECT_EQ(levers[1].verdict, cluster::Verdict::fits);
  const std::string text = to_text(levers);
  EXPECT_NE(text.find("host memory"), std::string::npos) << text;
  EXPECT_NE(text.find("--placement device  (0.00 MiB), does not fit\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace shard::commands
