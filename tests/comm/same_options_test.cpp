// Do all ranks end with the first option that differs, its values and its ranks, and none where all say the same?
#include "executor/commands/same_options.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "executor/comm/in_process.h"
#include "tests/comm/tcp_ranks.h"

namespace shard::commands {
namespace {

using test::Joined;
using Words = std::vector<std::string>;
using Ranks = std::vector<std::unique_ptr<Communicator>>;

enum class Schedule { constant, linear };

/// A command with options of every kind.
struct Sample {
  double rate = 1e-3;
  std::uint64_t seed = 0;
  std::optional<double> decay;
  Schedule schedule = Schedule::constant;
  bool exact = true;
  std::string data = "random";
  std::string trace;
  std::int64_t patience = 60;
  cli::Command command{"shardscope", "train", "trains", ""};

  explicit Sample(const Words& arguments) {
    cli::Group group = command.group("Run");
    group.add("lr", &rate, "RATE", "");
    group.add("seed", &seed, "N", "");
    group.add("weight-decay", &decay, "RATE", "").default_text("0.01 for adamw");
    group.add_choice<Schedule>("lr-schedule", &schedule,
                               {{"constant", Schedule::constant}, {"linear", Schedule::linear}}, "");
    group.add_switch("exact", &exact, "");
    group.add("data", &data, "FILE", "").reads_file([](const std::string& text) {
      constexpr std::string_view kText = "text:";
      return text.starts_with(kText) ? std::vector<std::filesystem::path>{text.substr(kText.size())}
                                     : std::vector<std::filesystem::path>{};
    });
    group.add("trace", &trace, "FILE", "").writes_file();
    group.add("timeout", &patience, "SECONDS", "").may_differ("a rank's own patience");
    const Result<cli::Outcome> parsed = command.parse(arguments);
    if (!parsed) ADD_FAILURE() << to_string(parsed.error());
  }
};

/// What each of the ranks is told that was started with these words; "" where all is well.
std::vector<std::string> told(Ranks& ranks, const std::vector<Words>& arguments) {
  std::vector<std::string> answers(ranks.size());
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    threads.emplace_back([&, rank] {
      const Sample sample(arguments[rank]);
      const Result<void> same = same_options(sample.command, *ranks[rank]);
      if (same) return;
      EXPECT_EQ(same.error().code, Errc::contradiction) << to_string(same.error());
      answers[rank] = same.error().where + ": " + same.error().what;
      ranks[rank]->abort(same.error().what);
    });
  threads.clear();
  return answers;
}

std::vector<std::string> told(const std::vector<Words>& arguments) {
  Ranks ranks = make_in_process(static_cast<int>(arguments.size()));
  return told(ranks, arguments);
}

std::vector<std::string> on_all(std::size_t ranks, const std::string& text) {
  return std::vector<std::string>(ranks, text);
}

TEST(SameOptions, TheFirstThatDiffersIsNamedByAllRanksAlike) {
  EXPECT_EQ(told({{}, {}, {"--seed", "7", "--lr", "0.1"}}),
            on_all(3, "--lr: rank 2 was started with --lr 0.1 (command line), rank 0 with --lr 0.001 (default)"));
  EXPECT_EQ(told({{"--seed", "7"}, {"--seed", "7"}, {"--seed", "8"}}),
            on_all(3, "--seed: rank 2 was started with --seed 8 (command line), rank 0 with --seed 7 (command line)"));
  EXPECT_EQ(told({{"--weight-decay", "0"}, {}}),
            on_all(2,
                   "--weight-decay: rank 1 was started with --weight-decay 0.01 for adamw (default), rank 0 with "
                   "--weight-decay 0 (command line)"));
  EXPECT_EQ(told({{}, {"--no-exact"}}),
            on_all(2, "--exact: rank 1 was started with --no-exact (command line), rank 0 with --exact (default)"));
}

TEST(SameOptions, OneValueInOtherWordsIsTheSame) {
  EXPECT_EQ(told({{}, {"--lr", "1e-3"}, {"--lr-schedule", "constant", "--exact", "--seed", "0"}}), on_all(3, ""));
}

TEST(SameOptions, WhatDoesNotMatterMayDiffer) {
  EXPECT_EQ(told({{"--timeout", "5"}, {"--timeout", "50"}}), on_all(2, ""));
  EXPECT_EQ(told({{"--trace", "here"}, {"--trace", "there"}}), on_all(2, ""));
}

TEST(SameOptions, AFileThatOneRankAloneWritesIsRefused) {
  EXPECT_EQ(told({{"--trace", "here"}, {}}),
            on_all(2, "--trace: rank 1 was started with no --trace, rank 0 with --trace here (command line)"));
}

TEST(SameOptions, FilesCountByTheirContent) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("same_options_" + std::to_string(std::random_device{}()));
  fs::create_directories(folder);
  // Larger than what is read whole; the last byte, and one of the middle, differ.
  const std::uintmax_t large = (std::uintmax_t{64} << 20) + 12345;
  const auto write = [&](const char* name, const std::string& text, std::uintmax_t size) {
    const fs::path path = folder / name;
    std::ofstream(path) << text;
    fs::resize_file(path, size);
    return path;
  };
  const auto source = [](const fs::path& path) { return Words{"--data", "text:" + path.string()}; };
  const Words a = source(write("a", "abc", 3));
  const Words b = source(write("b", "abd", 3));
  const Words same_as_a = source(write("c", "abc", 3));
  EXPECT_EQ(told({a, same_as_a}), on_all(2, ""));
  EXPECT_EQ(told({a, b}), on_all(2, "--data: rank 1 was started with --data " + b[1] +
                                        " (command line), rank 0 with "
                                        "--data " +
                                        a[1] + " (command line)"));
  const Words big = source(write("big", "abc", large));
  const Words big_again = source(write("big2", "abc", large));
  const fs::path other = write("big3", "abc", large);
  std::fstream(other, std::ios::in | std::ios::out).seekp(static_cast<std::streamoff>(large - 1)).put('x');
  EXPECT_EQ(told({big, big_again}), on_all(2, ""));
  EXPECT_NE(told({big, source(other)}), on_all(2, ""));
  EXPECT_NE(told({big, source(write("longer", "abc", large + 1))}), on_all(2, ""));
  fs::remove_all(folder);
}

TEST(SameOptions, AnotherVersionOfTheProgramIsSaid) {
  Ranks ranks = make_in_process(2);
  std::jthread old([&] {
    static_cast<void>(ranks[1]->exchange("what is this"));
    static_cast<void>(ranks[1]->exchange({}));
  });
  const Sample sample({});
  const Result<void> same = same_options(sample.command, *ranks[0]);
  ASSERT_FALSE(same.has_value());
  EXPECT_EQ(same.error().what, "rank 1 has other options than rank 0: it is of another version");
}

// Over TCP rank 0 goes first where it may: the others' error must not be that it left.
TEST(SameOptions, RandomPairsOverTcpAreRefusedByNameOrAlike) {
  const std::vector<std::vector<Words>> ways{{{}, {"--lr", "1e-3"}, {"--lr", "0.01"}, {"--lr", "0.0010000001"}},
                                             {{}, {"--seed", "0"}, {"--seed", "18446744073709551615"}},
                                             {{}, {"--weight-decay", "0.01"}, {"--weight-decay", "0"}},
                                             {{}, {"--lr-schedule", "constant"}, {"--lr-schedule", "linear"}},
                                             {{}, {"--exact"}, {"--no-exact"}},
                                             {{}, {"--data", "random"}, {"--data", "text:absent"}},
                                             {{}, {"--trace", "a"}, {"--trace", "b"}},
                                             {{}, {"--timeout", "1"}, {"--timeout", "2"}}};
  std::mt19937 random(3);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  const auto values = [](const Words& words) {
    std::vector<std::string> all;
    for (const cli::Settled& option : Sample(words).command.settled()) all.push_back(option.value);
    return all;
  };
  for (int pair = 0; pair < 100; ++pair) {
    const std::vector<Words>& of_one = ways[below(ways.size())];
    const Words first = of_one[below(of_one.size())];
    const Words second = of_one[below(of_one.size())];
    std::vector<Joined> joined = test::join_all(test::places_of(3));
    Ranks ranks;
    for (Joined& each : joined) {
      ASSERT_TRUE(each.has_value());
      ranks.push_back(std::move(*each));
    }
    const std::vector<std::string> answers = told(ranks, {first, second, first});
    const bool alike = values(first) == values(second);
    const std::string name = alike ? "" : (first.empty() ? second : first)[0];
    for (const std::string& answer : answers) {
      EXPECT_EQ(answer, answers[0]);
      const std::string option = name == "--no-exact" ? "--exact" : name;
      EXPECT_TRUE(alike ? answer.empty() : answer.starts_with(option + ": rank 1 was started with ")) << answer;
    }
    std::vector<std::jthread> leaving;
    for (auto& rank : ranks) leaving.emplace_back([&rank] { rank.reset(); });
  }
}

}  // namespace
}  // namespace shard::commands
