// Are levers simulations of what was asked with one option changed, the largest saving first?
#include "sim/commands/levers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

namespace shard::commands {
namespace {

using Changes = std::vector<cli::Change>;

bool has(std::span<const cli::Change> changes, const cli::Change& change) {
  return std::ranges::find(changes, change) != changes.end();
}

TEST(Levers, TheLargestSavingComesFirstAndWhatSavesNothingIsLeftOut) {
  const auto levers = find_levers({.peak = Bytes{100}, .micro_batch = 8},
                                  [](std::span<const cli::Change> changes) -> Result<LeverAnswer> {
                                    if (has(changes, {"micro-batch", "4"})) return LeverAnswer{.peak = Bytes{60}};
                                    if (has(changes, {"recompute", "block"})) return LeverAnswer{.peak = Bytes{50}};
                                    if (has(changes, {"reproducible", "false"})) return LeverAnswer{.peak = Bytes{90}};
                                    if (has(changes, {"stage", "1"})) return LeverAnswer{.peak = Bytes{100}};
                                    if (has(changes, {"stage", "2"})) return LeverAnswer{.peak = Bytes{101}};
                                    return Error{Errc::contradiction, "not modelled", "", ""};
                                  });
  ASSERT_EQ(levers.size(), 3u);
  EXPECT_EQ(levers[0].option, "--recompute block");
  EXPECT_EQ(levers[0].saved, Bytes{50});
  EXPECT_EQ(levers[1].option, "--micro-batch 4");
  EXPECT_EQ(levers[1].peak, Bytes{60});
  EXPECT_EQ(levers[2].option, "--no-reproducible");
}

/// A run that fits may have a lever that does not: it lowers one memory for another.
TEST(Levers, ThatNoneIsEnoughIsSaidOfRunsThatDoNotFitAlone) {
  const auto pulled = [](cluster::Verdict verdict) {
    return find_levers({.peak = Bytes{100}, .micro_batch = 1},
                       [=](std::span<const cli::Change> changes) -> Result<LeverAnswer> {
                         if (has(changes, {"recompute", "block"}))
                           return LeverAnswer{.peak = Bytes{50}, .verdict = verdict, .short_of = Memory::host};
                         return Error{Errc::contradiction, "not modelled", "", ""};
                       });
  };
  const auto text = [](const std::vector<Lever>& levers, bool fits) {
    return largest_text(levers, fits, [](Bytes bytes) { return show_mib(bytes); });
  };
  const auto none = pulled(cluster::Verdict::does_not_fit);
  EXPECT_NE(text(none, false).find("does not fit the host\n  no single option"), std::string::npos);
  EXPECT_EQ(text(none, true).find("no single option"), std::string::npos);
  EXPECT_EQ(text(pulled(cluster::Verdict::tight), false).find("no single option"), std::string::npos);
}

TEST(Levers, SayWhatTheyCostInSpeedWhereLawsCanTell) {
  const auto levers =
      find_levers({.peak = Bytes{100}, .tokens_per_second = 1000, .micro_batch = 1},
                  [](std::span<const cli::Change> changes) -> Result<LeverAnswer> {
                    const auto answer = [](int peak, double speed) {
                      return LeverAnswer{.peak = Bytes{peak}, .verdict = {}, .tokens_per_second = speed};
                    };
                    if (has(changes, {"recompute", "block"})) return answer(10, 750);
                    if (has(changes, {"stage", "1"})) return answer(20, 905);
                    if (has(changes, {"attention", "sdpa"})) return answer(30, 1250);
                    if (has(changes, {"optimizer-placement", "host"})) return answer(40, 0);
                    return Error{Errc::contradiction, "not modelled", "", ""};
                  });
  const std::string text = to_text(levers, [](Bytes bytes) { return show_mib(bytes); });
  EXPECT_NE(text.find("--recompute block  (0.00 MiB), 25 % fewer tokens/s\n"), std::string::npos) << text;
  EXPECT_NE(text.find("--stage 1  (0.00 MiB), about as fast\n"), std::string::npos) << text;
  EXPECT_NE(text.find("--attention sdpa  (0.00 MiB), 25 % more tokens/s\n"), std::string::npos) << text;
  EXPECT_NE(text.find("--optimizer-placement host  (0.00 MiB)\n"), std::string::npos) << text;
}

TEST(Levers, EachChangesOneOption) {
  std::vector<Changes> asked;
  std::mutex one_at_a_time;
  (void)find_levers({.peak = Bytes{1}, .micro_batch = 2},
                    [&](std::span<const cli::Change> changes) -> Result<LeverAnswer> {
                      const std::scoped_lock lock(one_at_a_time);
                      asked.emplace_back(changes.begin(), changes.end());
                      return LeverAnswer{.peak = Bytes{1}};
                    });
  EXPECT_GT(asked.size(), 10u);
  for (const Changes& changes : asked) EXPECT_EQ(changes.size(), 1u) << changes.front().option;
}

TEST(Levers, OfAHostPutDataElsewhereAndSayWhereAnotherMemoryIsTooSmall) {
  const auto levers = find_levers({.peak = Bytes{100}, .memory = Memory::host},
                                  [](std::span<const cli::Change> changes) -> Result<LeverAnswer> {
                                    if (has(changes, {"placement", "device"}))
                                      return LeverAnswer{Bytes{0}, cluster::Verdict::does_not_fit};
                                    // What --placement says of all counts no longer where each is said by itself.
                                    if (has(changes, {"optimizer-placement", "disk"}) &&
                                        has(changes, {"disk-path", "."}) && has(changes, {"placement"}))
                                      return LeverAnswer{Bytes{40}, cluster::Verdict::fits};
                                    return LeverAnswer{Bytes{100}, cluster::Verdict::does_not_fit};
                                  });
  ASSERT_EQ(levers.size(), 2u);
  EXPECT_EQ(levers[0].option, "--placement device");
  EXPECT_EQ(levers[0].verdict, cluster::Verdict::does_not_fit);
  EXPECT_EQ(levers[1].option,
            "--param-placement host --grad-placement host --optimizer-placement disk --disk-path DIR");
  EXPECT_EQ(levers[1].verdict, cluster::Verdict::fits);
  const std::string text = to_text(levers, [](Bytes bytes) { return show_mib(bytes); });
  EXPECT_NE(text.find("host memory"), std::string::npos) << text;
  EXPECT_NE(text.find("--placement device  (0.00 MiB), does not fit\n"), std::string::npos) << text;
}

/// A command with an option, a flag and an alias, as it stands with these changes.
struct ChangedLine {
  std::string stage = "0";
  bool reproducible = false;
  cli::Command command{"shardscope", "test", "tries changes", ""};

  explicit ChangedLine(const std::vector<cli::Change>& changes, const std::vector<std::string>& arguments) {
    cli::Group group = command.group("Options");
    group.add("stage", &stage, "N", "a stage").alias("zero-stage");
    group.add_flag("reproducible", &reproducible, "a flag");
    command.change(changes);
    const Result<cli::Outcome> done = command.parse(arguments);
    EXPECT_TRUE(done) << done.error().what;
  }
};

TEST(Levers, AChangeCountsWhateverWasTyped) {
  for (const std::vector<std::string>& typed :
       {std::vector<std::string>{"--stage", "3"}, {"--zero-stage=3"}, {"--zero_stage=3", "--reproducible"}, {}}) {
    const ChangedLine changed({{"stage", "2"}, {"reproducible"}}, typed);
    EXPECT_EQ(changed.stage, "2");
    EXPECT_FALSE(changed.reproducible) << "what was said of it does not count";
    EXPECT_EQ(changed.command.typed("stage"), "2");
  }
  EXPECT_EQ(ChangedLine({}, {"--stage", "3"}).stage, "3");
}

TEST(Levers, AChangeOfWhatIsNoOptionIsAnError) {
  cli::Command command("shardscope", "test", "tries changes", "");
  const std::vector<cli::Change> changes{{"none-such", "1"}};
  command.change(changes);
  EXPECT_FALSE(command.parse({}));
}

}  // namespace
}  // namespace shard::commands
