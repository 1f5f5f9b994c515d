// Do ranks that were started with different options refuse to train by the option's name, however they meet?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/comm/tcp_ranks.h"
#include "tests/daily.h"
#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// With a schedule that has a least learning rate.
const Words kBase{"train",         "--model", "gpt2-nano", "--data",  "random", "--sequence",     "8",
                  "--steps",       "2",       "--json",    "--stage", "2",      "--global-batch", "4",
                  "--lr-schedule", "cosine"};

/// `own` stands in the place of what kBase says of the same option.
Words words_of(const Words& own) {
  Words words{shardscope_path()};
  for (std::size_t i = 0; i < kBase.size(); ++i) {
    const bool has_value = i + 1 < kBase.size() && kBase[i].starts_with("--") && !kBase[i + 1].starts_with("--");
    if (!own.empty() && kBase[i] == own.front()) {
      i += has_value ? 1U : 0U;
      continue;
    }
    words.push_back(kBase[i]);
  }
  words.insert(words.end(), own.begin(), own.end());
  return words;
}

/// Two ranks as torchrun starts them, each with words of its own.
std::vector<Outcome> over_tcp(const Words& first, const Words& second) {
  const std::string port = std::to_string(free_port());
  std::vector<std::unique_ptr<Program>> programs;
  for (const Words* own : {&first, &second}) {
    const std::string rank = std::to_string(programs.size());
    programs.push_back(
        std::make_unique<Program>(words_of(*own), Surroundings{.environment = {{"RANK", rank},
                                                                               {"WORLD_SIZE", "2"},
                                                                               {"LOCAL_RANK", rank},
                                                                               {"MASTER_ADDR", "127.0.0.1"},
                                                                               {"MASTER_PORT", port}}}));
  }
  std::vector<Outcome> outcomes;
  for (auto& program : programs) outcomes.push_back(program->wait());
  return outcomes;
}

#ifdef MPIRUN
/// The same under one mpirun, whose outcome it is.
std::vector<Outcome> under_mpirun(const Words& first, const Words& second) {
  Words command{MPIRUN, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--quiet"};
  for (const Words* own : {&first, &second}) {
    if (own == &second) command.emplace_back(":");
    command.insert(command.end(), {"-n", "1"});
    for (const std::string& word : words_of(*own)) command.push_back(word);
  }
  return {run(command, under_mpirun_here())};
}
#endif

/// A text, and another of as many bytes.
struct Texts {
  ScratchDirectory directory;
  std::string first = directory.write("first.txt", std::string(4096, 'a'));
  std::string second = directory.write("second.txt", std::string(4095, 'a') + "b");
  std::string same = directory.write("same.txt", std::string(4096, 'a'));
  std::string rate = directory.write("rate.conf", "lr = 0.01\n");
  std::string default_rate = directory.write("default_rate.conf", "lr = 1e-3\n");
};

const Texts& texts() {
  static const Texts kTexts;
  return kTexts;
}

/// Ways to give one option; an empty one leaves it to its default, or to kBase.
struct Ways {
  std::string option;
  std::vector<Words> ways;
};

std::vector<Ways> all_ways() {
  std::vector<Ways> all;
  const auto values = [&](const std::string& option, const Words& given) {
    Ways ways{option, {{}}};
    for (const std::string& value : given) ways.ways.push_back({option, value});
    all.push_back(ways);
  };
  values("--lr", {"1e-3", "0.01", "0.0010000001"});
  values("--weight-decay", {"0", "0.1"});
  values("--seed", {"0", "1", "12345"});
  values("--beta1", {"0.9", "0.8"});
  values("--beta2", {"0.999", "0.99"});
  values("--epsilon", {"1e-8", "1e-6"});
  values("--lr-schedule", {"constant", "linear", "cosine"});
  values("--warmup-steps", {"0", "1", "2"});
  values("--min-lr", {"0", "1e-4"});
  values("--steps", {"1", "3"});
  values("--data", {"text:" + texts().first, "text:" + texts().second, "text:" + texts().same});
  values("--sequence", {"4", "16"});
  values("--stage", {"0", "1", "3"});
  values("--unit", {"module", "chunk", "tensor"});
  values("--global-batch", {"2", "8"});
  values("--micro-batch", {"1", "2"});
  values("--optimizer", {"adamw", "adam", "sgd"});
  values("--recompute", {"none", "block"});
  values("--precision", {"fp32", "bf16", "fp16"});
  values("--clip-norm", {"1", "0.5"});
  values("--gradient-predivide-factor", {"1", "2"});
  values("--dropout", {"0", "0.1"});
  values("--threads", {"1", "2"});
  values("--freeze", {"*bias", "*ln_1*"});
  values("--transport", {"messages"});
  values("--timeout", {"50", "40"});
  values("--print-every", {"1", "2"});
  values("--cluster", {"cpu-local"});
  values("--trace", {texts().directory.file("a.sst"), texts().directory.file("b.sst")});
  values("--log", {texts().directory.file("a.log"), texts().directory.file("b.log")});
  values("--config", {texts().rate, texts().default_rate});
  for (const char* flag : {"--no-reproducible", "--print-memory"}) all.push_back({flag, {{}, {flag}}});
  return all;
}

/// What two ranks do that give one option in two ways: refuse by name, or train as where both give it in either way.
void expect_refused_or_the_same(const std::string& option, const Words& first, const Words& second,
                                const std::vector<Outcome>& ends) {
  if (ends[0].exit_code == 0) {
    for (const Outcome& end : ends) EXPECT_EQ(end.exit_code, 0) << end.err;
    const std::string sha = json_of(ends[0])["state_sha256"];
    EXPECT_FALSE(sha.empty());
    for (const Words& both : {first, second}) EXPECT_EQ(json_of(over_tcp(both, both)[0])["state_sha256"], sha);
    return;
  }
  // What a file says is named as the option that it says.
  std::string name = option == "--config" ? "--lr" : option;
  if (name.starts_with("--no-")) name = "--" + name.substr(5);
  for (const Outcome& end : ends) {
    EXPECT_EQ(end.exit_code, 78) << end.err;
    EXPECT_THAT(end.err, HasSubstr("rank 1 was started with "));
    EXPECT_THAT(end.err, HasSubstr(", rank 0 with "));
    EXPECT_THAT(end.err, HasSubstr(name));
  }
}

/// One option in two ways, the same for the same number.
struct Pair {
  std::size_t number = 0;
  std::string option;
  Words first;
  Words second;
};

std::vector<Pair> pairs(std::size_t count) {
  const std::vector<Ways> options = all_ways();
  std::mt19937 random(20);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  std::vector<Pair> all;
  for (std::size_t number = 0; number < count; ++number) {
    const Ways& ways = options[below(options.size())];
    const std::size_t first = below(ways.ways.size());
    const std::size_t second = (first + 1 + below(ways.ways.size() - 1)) % ways.ways.size();
    all.push_back({number, ways.option, ways.ways[first], ways.ways[second]});
  }
  return all;
}

/// SHARDSCOPE_OPTION_PAIRS of them, or some of sixty.
std::vector<Pair> pairs_wanted() {
  const char* const text = std::getenv("SHARDSCOPE_OPTION_PAIRS");
  return text == nullptr ? daily::part_of(pairs(60), 12) : pairs(std::stoul(text));
}

TEST(DifferentOptions, AreRefusedByNameOrChangeNothing) {
  std::size_t refused = 0;
  for (const Pair& pair : pairs_wanted()) {
    SCOPED_TRACE("pair " + std::to_string(pair.number) + ": " + json(pair.first).dump() + " and " +
                 json(pair.second).dump());
#ifdef MPIRUN
    const bool tcp = pair.number % 2 == 0;
    const std::vector<Outcome> ends = tcp ? over_tcp(pair.first, pair.second) : under_mpirun(pair.first, pair.second);
#else
    const std::vector<Outcome> ends = over_tcp(pair.first, pair.second);
#endif
    expect_refused_or_the_same(pair.option, pair.first, pair.second, ends);
    if (ends[0].exit_code != 0) ++refused;
  }
  RecordProperty("refused", static_cast<int>(refused));
}

TEST(DifferentOptions, AreNamedWithBothValuesAndBothRanks) {
  for (const Outcome& end : over_tcp({}, {"--lr", "0.1"})) {
    EXPECT_EQ(end.exit_code, 78) << end.err;
    EXPECT_THAT(end.err,
                HasSubstr("rank 1 was started with --lr 0.1 (command line), rank 0 with --lr 0.001 (default)"));
    EXPECT_EQ(end.out, "");
  }
}

// That rank says what is wrong with its options, the other which of them differs; it does not wait for a rank that is
// gone.
TEST(DifferentOptions, ThatOneRankRefusesByItselfAreNamedOnTheOtherToo) {
  for (const std::size_t wrong : {0U, 1U}) {
    const Words contradiction{"--global-batch", "3"};
    const std::vector<Outcome> ends = wrong == 0 ? over_tcp(contradiction, {}) : over_tcp({}, contradiction);
    for (const Outcome& end : ends) {
      EXPECT_EQ(end.exit_code, 78) << end.err;
      EXPECT_THAT(end.err, HasSubstr("global"));
    }
    EXPECT_THAT(ends[1 - wrong].err, HasSubstr("--global-batch 3"));
  }
}

TEST(DifferentOptions, OfAFileThatHasOtherContentAreNamed) {
  for (const Outcome& end : over_tcp({"--data", "text:" + texts().first}, {"--data", "text:" + texts().second})) {
    EXPECT_EQ(end.exit_code, 78) << end.err;
    EXPECT_THAT(end.err, HasSubstr("rank 1 was started with --data text:" + texts().second));
  }
}

TEST(DifferentOptions, ThatSayTheSameInOtherWordsTrain) {
  for (const Outcome& end : over_tcp({"--config", texts().default_rate}, {"--lr", "0.001"}))
    EXPECT_EQ(end.exit_code, 0) << end.err;
}

// Rank 0 writes for all, and all take part.
TEST(DifferentOptions, ATraceOfOneRankAloneIsRefused) {
  for (const bool of_first : {true, false}) {
    const Words trace{"--trace", texts().directory.file("one.sst")};
    for (const Outcome& end : over_tcp(of_first ? trace : Words{}, of_first ? Words{} : trace)) {
      EXPECT_EQ(end.exit_code, 78) << end.err;
      EXPECT_THAT(end.err, HasSubstr("no --trace"));
    }
  }
}

#ifdef MPIRUN
TEST(DifferentOptions, OfRanksUnderMpirunAreNamed) {
  for (const Words& other : {Words{"--lr", "0.1"}, Words{"--transport", "messages"}}) {
    const Outcome end = under_mpirun({}, other)[0];
    EXPECT_EQ(end.exit_code, 78) << end.err;
    EXPECT_THAT(end.err, HasSubstr("rank 1"));
    EXPECT_THAT(end.err, HasSubstr(other[0] + " " + other[1]));
  }
}
#endif

}  // namespace
}  // namespace shard::test
