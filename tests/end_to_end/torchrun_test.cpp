// Do ranks that a launcher started without MPI train as those that train starts itself, and end as promised?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "tests/comm/tcp_ranks.h"
#include "tests/end_to_end/as_predicted.h"
#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

const Words kModel{"--model", "gpt2-nano", "--data", "random", "--sequence", "16"};

Words words_of(const Words& more) {
  Words words{"train"};
  words.insert(words.end(), kModel.begin(), kModel.end());
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Plays torchrun: `shardscope train` for each rank, with the variables that it sets.
class Ranks {
 public:
  Ranks(int world, const Words& more, const Variables& variables = {}) : port_(free_port()) {
    for (int rank = 0; rank < world; ++rank) start(rank, world, more, variables);
  }
  Ranks() : port_(free_port()) {}

  void start(int rank, int world, const Words& more, const Variables& variables = {}) {
    Surroundings place{.environment = {{"RANK", std::to_string(rank)},
                                       {"WORLD_SIZE", std::to_string(world)},
                                       {"LOCAL_RANK", std::to_string(rank)},
                                       {"MASTER_ADDR", "127.0.0.1"},
                                       {"MASTER_PORT", std::to_string(port_)}}};
    for (const auto& [name, value] : variables) place.environment[name] = value;
    Words command{shardscope_path()};
    const Words words = words_of(more);
    command.insert(command.end(), words.begin(), words.end());
    programs_.push_back(std::make_unique<Program>(command, place));
  }
  [[nodiscard]] Program& of(std::size_t rank) { return *programs_[rank]; }
  [[nodiscard]] std::vector<Outcome> wait() {
    std::vector<Outcome> outcomes;
    for (auto& program : programs_) outcomes.push_back(program->wait());
    return outcomes;
  }
  [[nodiscard]] std::string port() const { return std::to_string(port_); }

 private:
  std::uint16_t port_;
  std::vector<std::unique_ptr<Program>> programs_;
};

json state_of_one() {
  return json_of(shardscope(words_of({"--steps", "2", "--global-batch", "4", "--json"})))["state_sha256"];
}

class Torchrun : public testing::TestWithParam<int> {};

TEST_P(Torchrun, EndsInTheStateOfRanksStartedByTrain) {
  const int world = GetParam();
  const ScratchDirectory scratch;
  const std::string trace = scratch.file("measured.sst");
  Ranks ranks(world, {"--steps", "2", "--global-batch", "4", "--stage", "3", "--json", "--trace", trace});
  const std::vector<Outcome> outcomes = ranks.wait();
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const json run = json_of(outcomes[0]);
  EXPECT_EQ(run["transport"], "tcp");
  EXPECT_EQ(run["world_size"], world);
  expect_as_predicted(run, world);
  EXPECT_THAT(outcomes[0].err, HasSubstr("ranks     " + std::to_string(world) +
                                         " by torchrun, this is rank 0, local rank 0, over tcp\n"));
  for (std::size_t rank = 1; rank < outcomes.size(); ++rank) EXPECT_EQ(outcomes[rank].out, "");
  EXPECT_EQ(run["state_sha256"], state_of_one());
#ifdef WITH_RANKS
  const Words same{"--steps", "2", "--global-batch", "4", "--stage", "3", "--json", "--ranks", std::to_string(world)};
  EXPECT_EQ(run["state_sha256"], json_of(shardscope(words_of(same)))["state_sha256"]);
#endif
  EXPECT_EQ(scratch.list(), Words{"measured.sst"});
}

INSTANTIATE_TEST_SUITE_P(Worlds, Torchrun, testing::Values(2, 4));

// torchrun's agent has MASTER_PORT for itself.
TEST(TorchrunPort, TheOneAfterTheAgentsIsTaken) {
  Result<tcp::Socket> agent = Error{};
  std::uint16_t port = 0;
  for (bool next_is_free = false; !next_is_free;) {
    agent = tcp::listen_at({"127.0.0.1", 0});
    ASSERT_TRUE(agent.has_value());
    port = tcp::own_port(*agent);
    next_is_free = port < 65535 && tcp::listen_at({"127.0.0.1", static_cast<std::uint16_t>(port + 1)}).has_value();
  }
  Ranks ranks(2, {"--steps", "1", "--json"},
              {{"TORCHELASTIC_RUN_ID", "none"},
               {"TORCHELASTIC_USE_AGENT_STORE", "True"},
               {"TORCHELASTIC_RESTART_COUNT", "0"},
               {"MASTER_PORT", std::to_string(port)}});
  for (const Outcome& outcome : ranks.wait()) EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST(TorchrunPort, ThatIsTakenIsNamedAndAnotherCanBeSaid) {
  const Result<tcp::Socket> taken = tcp::listen_at({"127.0.0.1", 0});
  ASSERT_TRUE(taken.has_value());
  const std::string port = std::to_string(tcp::own_port(*taken));
  Ranks ranks;
  ranks.start(0, 2, {"--steps", "1"}, {{"MASTER_PORT", port}});
  const Outcome outcome = ranks.of(0).wait();
  EXPECT_EQ(outcome.exit_code, 69);
  EXPECT_THAT(outcome.err, HasSubstr("cannot listen at 127.0.0.1:" + port + ": Address already in use"));
  EXPECT_THAT(outcome.err, HasSubstr("SHARDSCOPE_PORT=N"));
  Ranks again(2, {"--steps", "1", "--json"}, {{"MASTER_PORT", port}, {"SHARDSCOPE_PORT", std::to_string(free_port())}});
  for (const Outcome& end : again.wait()) EXPECT_EQ(end.exit_code, 0) << end.err;
}

TEST(TorchrunFaults, ARankThatIsKilledIsNamedByAllOthers) {
  Ranks ranks(3, {"--steps", "100000"});
  ASSERT_TRUE(ranks.of(0).read_line("step 2/"));
  kill(ranks.of(1).process(), SIGKILL);
  const std::vector<Outcome> outcomes = ranks.wait();
  EXPECT_EQ(outcomes[1].signal, SIGKILL);
  for (const std::size_t survivor : {0u, 2u}) {
    EXPECT_EQ(outcomes[survivor].exit_code, 75) << outcomes[survivor].err;
    EXPECT_THAT(outcomes[survivor].err, HasSubstr("rank 1 died (its connection ended)"));
    EXPECT_THAT(outcomes[survivor].err, HasSubstr("step "));
  }
}

TEST(TorchrunFaults, ARankThatIsStoppedIsNamedAtTheDeadline) {
  Ranks ranks(3, {"--steps", "100000", "--timeout", "2"});
  ASSERT_TRUE(ranks.of(0).read_line("step 2/"));
  kill(ranks.of(1).process(), SIGSTOP);
  for (const std::size_t survivor : {0u, 2u}) {
    const Outcome outcome = ranks.of(survivor).wait();
    EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
    // Another that waits for it in an earlier call may be missing, too.
    EXPECT_TRUE(
        std::regex_search(outcome.err, std::regex("ranks? ([02], )?1(, [02])? ha(s|ve) not arrived within 2 s")))
        << outcome.err;
  }
  kill(ranks.of(1).process(), SIGKILL);
}

// As torchrun ends the others when one has failed.
TEST(TorchrunFaults, ARankThatIsEndedForAnothersSakeSaysWhose) {
  Ranks ranks(2, {"--steps", "100000"});
  ASSERT_TRUE(ranks.of(0).read_line("step 2/"));
  kill(ranks.of(1).process(), SIGSTOP);
  kill(ranks.of(0).process(), SIGTERM);
  const Outcome outcome = ranks.of(0).wait();
  EXPECT_EQ(outcome.signal, SIGTERM) << outcome.exit_code;
  EXPECT_THAT(outcome.err, HasSubstr("stopped by signal: Terminated"));
  kill(ranks.of(1).process(), SIGKILL);
}

TEST(TorchrunFaults, ANumberOfRanksThatDiffersIsNamedByBoth) {
  Ranks ranks;
  ranks.start(0, 2, {"--steps", "1"});
  ranks.start(1, 3, {"--steps", "1"});
  for (const Outcome& outcome : ranks.wait()) {
    EXPECT_EQ(outcome.exit_code, 78) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("rank 1 was started as one of 3 ranks, rank 0 as one of 2"));
  }
}

TEST(TorchrunFaults, AnotherStrategyIsNamedByBoth) {
  Ranks ranks;
  ranks.start(0, 2, {"--steps", "1", "--stage", "1"});
  ranks.start(1, 2, {"--steps", "1", "--stage", "2"});
  for (const Outcome& outcome : ranks.wait()) {
    EXPECT_EQ(outcome.exit_code, 78) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("rank 1 was started with --stage 2 (command line), rank 0 with --stage 1 "
                                       "(command line)"));
  }
}

TEST(TorchrunFaults, ARankThatDoesNotComeIsNamed) {
  Ranks ranks;
  ranks.start(0, 2, {"--steps", "1", "--timeout", "1"});
  const Outcome outcome = ranks.of(0).wait();
  EXPECT_EQ(outcome.exit_code, 75);
  EXPECT_THAT(
      outcome.err,
      HasSubstr("joining the other ranks, rank 0: rank 1 has not come to 127.0.0.1:" + ranks.port() + " within 1 s"));
}

TEST(TorchrunFaults, WhatContradictsTheLauncherNamesBoth) {
  const auto refused = [](const Words& more, const Variables& variables = {}) {
    Ranks ranks;
    ranks.start(0, 2, more, variables);
    return ranks.of(0).wait();
  };
  const Outcome ranks = refused({"--ranks", "4", "--timeout", "1"});
  EXPECT_EQ(ranks.exit_code, 78);
  EXPECT_THAT(ranks.err, HasSubstr("--world-size 4 (command line), but torchrun started 2 ranks (WORLD_SIZE)"));
  const Outcome shared = refused({"--transport", "shared", "--timeout", "1"});
  EXPECT_EQ(shared.exit_code, 78);
  EXPECT_THAT(shared.err, HasSubstr("those of torchrun speak over TCP"));
  const Outcome beyond = refused({}, {{"RANK", "2"}});
  EXPECT_EQ(beyond.exit_code, 78);
  EXPECT_THAT(beyond.err, HasSubstr("this is rank 2, and WORLD_SIZE is 2"));
  const Outcome nowhere = refused({}, {{"MASTER_ADDR", ""}});
  EXPECT_EQ(nowhere.exit_code, 69);
  EXPECT_THAT(nowhere.err, HasSubstr("MASTER_ADDR is not set"));
  const Outcome no_port = refused({}, {{"MASTER_PORT", "99999"}});
  EXPECT_EQ(no_port.exit_code, 69);
  EXPECT_THAT(no_port.err, HasSubstr("MASTER_PORT is no port: '99999'"));
}

TEST(TorchrunFaults, AVariableThatIsNoNumberIsNamed) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"RANK", "x"}, {"RANK", "-1"}, {"WORLD_SIZE", "0"}, {"WORLD_SIZE", "99999999999"}, {"LOCAL_RANK", "one"}};
  for (const auto& [variable, value] : wrong) {
    Ranks ranks;
    ranks.start(0, 2, {"--steps", "1"}, {{variable, value}});
    const Outcome outcome = ranks.of(0).wait();
    EXPECT_EQ(outcome.exit_code, 78) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(variable + " of the environment is '" + value + "'"));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(TorchrunFaults, AHostThatIsNotKnownIsNamedAtOnce) {
  for (const int rank : {0, 1}) {
    Ranks ranks;
    ranks.start(rank, 2, {"--steps", "1", "--timeout", "3600"}, {{"MASTER_ADDR", "no.such.host.invalid"}});
    const Outcome outcome = ranks.of(0).wait();
    EXPECT_EQ(outcome.exit_code, 69) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("the host 'no.such.host.invalid' is not known here"));
    EXPECT_THAT(outcome.err, HasSubstr("MASTER_ADDR=HOST"));
  }
}

// srun --mpi=none: no PMI, and no variables of torchrun.
TEST(SrunWithoutPmi, MeetsOverTcp) {
  std::vector<std::unique_ptr<Program>> programs;
  const std::string port = std::to_string(free_port());
  for (int rank = 0; rank < 2; ++rank) {
    Words command{shardscope_path()};
    for (const std::string& word : words_of({"--steps", "2", "--global-batch", "4", "--json"})) command.push_back(word);
    programs.push_back(
        std::make_unique<Program>(command, Surroundings{.environment = {{"SLURM_PROCID", std::to_string(rank)},
                                                                        {"SLURM_STEP_NUM_TASKS", "2"},
                                                                        {"SLURM_LOCALID", std::to_string(rank)},
                                                                        {"SLURM_JOB_ID", "4711"},
                                                                        {"SLURM_STEP_ID", "0"},
                                                                        {"SLURM_STEP_NODELIST", "localhost"},
                                                                        {"SHARDSCOPE_PORT", port}}}));
  }
  const Outcome second = programs[1]->wait();
  const Outcome first = programs[0]->wait();
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(first.err, HasSubstr("ranks     2 by srun, this is rank 0, local rank 0, over tcp\n"));
  EXPECT_EQ(json_of(first)["state_sha256"], state_of_one());
}

}  // namespace
}  // namespace shard::test
