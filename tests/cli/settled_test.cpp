// Is every option among those that ranks must agree about, with the value in force, unless it says why it may differ?
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/cli/command_line.h"

namespace shard::cli {
namespace {

enum class Unit { tensor, module };

/// A command with an option of every kind.
struct Sample {
  double rate = 1e-3;
  std::int64_t world = 1;
  Unit unit = Unit::module;
  bool loud = false;
  bool exact = true;
  std::vector<std::string> frozen;
  std::string data;
  std::string trace;
  std::int64_t patience = 60;
  std::string custom;
  Command command{"shardscope", "train", "trains", ""};

  Sample() {
    Group group = command.group("Run");
    group.add("lr", &rate, "RATE", "");
    group.add("world-size", &world, "N", "").default_text("of the launcher");
    group.add_choice<Unit>("unit", &unit, {{"tensor", Unit::tensor}, {"module", Unit::module}}, "");
    group.add_flag("loud", &loud, "");
    group.add_switch("exact", &exact, "");
    group.add_list("freeze", &frozen, "PATTERN", "");
    group.add("data", &data, "FILE", "").reads_file();
    group.add("trace", &trace, "FILE", "").writes_file();
    group.add("timeout", &patience, "SECONDS", "").may_differ("a rank's own patience");
    group.add_custom("at", "TIME", "", [this](std::string_view text, std::string_view, const Range&) -> Result<void> {
      custom = text;
      return {};
    });
  }

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const Settled& each : command.settled()) all.push_back(each.name);
    return all;
  }
  [[nodiscard]] Settled of(const std::string& name) const {
    const std::vector<Settled> all = command.settled();
    const auto found = std::ranges::find(all, name, &Settled::name);
    return found == all.end() ? Settled{} : *found;
  }
};

using Words = std::vector<std::string>;

TEST(Settled, HasEveryOptionThatDoesNotSayWhyItMayDiffer) {
  EXPECT_EQ(Sample().names(), (Words{"lr", "world-size", "unit", "loud", "exact", "freeze", "data", "trace", "at"}));
}

TEST(Settled, DefaultsCountAsIfTheyWereGiven) {
  const Sample plain;
  Sample given;
  ASSERT_TRUE(
      given.command.parse(Words{"--lr", "1e-3", "--world-size", "1", "--unit", "module", "--exact"}).has_value());
  for (const char* name : {"lr", "world-size", "unit", "exact", "loud", "freeze", "data", "trace", "at"})
    EXPECT_EQ(plain.of(name).value, given.of(name).value) << name;
  EXPECT_EQ(plain.of("lr").shown, "--lr 0.001 (default)");
  EXPECT_EQ(given.of("lr").shown, "--lr 1e-3 (command line)");
  EXPECT_EQ(plain.of("world-size").shown, "--world-size of the launcher (default)");
  EXPECT_EQ(plain.of("loud").shown, "no --loud (default)");
  EXPECT_EQ(plain.of("exact").shown, "--exact (default)");
  EXPECT_EQ(plain.of("trace").shown, "no --trace");
}

TEST(Settled, EveryKindOfOptionShowsAnotherValue) {
  const Sample plain;
  Sample given;
  ASSERT_TRUE(given.command
                  .parse(Words{"--lr", "0.0010000000000000002", "--world-size", "2", "--unit", "tensor", "--no-exact",
                               "--loud", "--freeze", "a,b", "--data", "d", "--trace", "t", "--at", "5ms"})
                  .has_value());
  for (const std::string& name : plain.names()) EXPECT_NE(plain.of(name).value, given.of(name).value) << name;
  EXPECT_EQ(given.of("exact").shown, "--no-exact (command line)");
}

TEST(Settled, WhatTheCommandMadeOfAVariableCounts) {
  Sample launched;
  launched.world = 4;
  launched.unit = Unit::tensor;
  Sample given;
  ASSERT_TRUE(given.command.parse(Words{"--world-size", "4", "--unit", "tensor"}).has_value());
  EXPECT_EQ(launched.of("world-size").value, given.of("world-size").value);
  EXPECT_EQ(launched.of("unit").value, given.of("unit").value);
}

TEST(Settled, OfFilesThatAreReadNamesThemAndOfOthersWhetherThereIsOne) {
  Sample first;
  Sample second;
  ASSERT_TRUE(first.command.parse(Words{"--data", "d", "--trace", "here"}).has_value());
  ASSERT_TRUE(second.command.parse(Words{"--trace", "there"}).has_value());
  EXPECT_EQ(first.of("data").files, std::vector<std::filesystem::path>{"d"});
  EXPECT_TRUE(second.of("data").files.empty());
  EXPECT_EQ(first.of("trace").value, second.of("trace").value);
}

}  // namespace
}  // namespace shard::cli
