// Does the in-process communicator keep the contract, at 1, 2, 3, 4, 5, 6, 8 and 13 ranks?
#include <gtest/gtest.h>

#include <thread>

#include "executor/comm/in_process.h"
#include "tests/comm/conformance.h"

namespace shard::test {
namespace {

struct Setting {
  const ConformanceCase* test = nullptr;
  int world = 1;
};

class InProcess : public testing::TestWithParam<Setting> {};

TEST_P(InProcess, Conforms) {
  const Setting setting = GetParam();
  std::vector<std::unique_ptr<Communicator>> ranks = make_in_process(setting.world);
  std::vector<Findings> findings(ranks.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      threads.emplace_back([&, rank] {
        const Result<std::span<std::byte>> arena = ranks[rank]->make_arena(setting.test->arena());
        if (!arena) return findings[rank].push_back(to_string(arena.error()));
        setting.test->run(*ranks[rank], *arena, findings[rank]);
      });
  }
  for (std::size_t rank = 0; rank < findings.size(); ++rank)
    for (const std::string& finding : findings[rank]) ADD_FAILURE() << "rank " << rank << ": " << finding;
}

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const ConformanceCase& test : conformance_cases())
    for (const int world : {1, 2, 3, 4, 5, 6, 8, 13}) all.push_back({&test, world});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Contract, InProcess, testing::ValuesIn(settings()), [](const auto& setting) {
  return setting.param.test->name + "On" + std::to_string(setting.param.world);
});

TEST(Single, KeepsTheContractWithoutALauncher) {
  const std::unique_ptr<Communicator> comm = make_single();
  const Result<std::span<std::byte>> arena = comm->make_arena(kArena);
  ASSERT_TRUE(arena.has_value());
  EXPECT_EQ(comm->size(), 1);
  Findings findings;
  for (const ConformanceCase& test : conformance_cases()) test.run(*comm, *arena, findings);
  EXPECT_EQ(findings, Findings{});
}

/// How often an exchange with a rank that never comes looks at the clock, a second each, under a deadline of ten; the
/// first `busy` times something gets done.
int looks_of_a_vain_exchange(int busy) {
  int looks = 0;
  std::shared_ptr<Progress> progress;
  progress = std::make_shared<Progress>([&] {
    if (++looks <= busy) progress->note();
    return Progress::Clock::time_point(std::chrono::seconds(looks));
  });
  const auto ranks = make_in_process(2, {.deadline = std::chrono::seconds(10)}, progress);
  EXPECT_FALSE(ranks[0]->exchange("here"));
  return looks;
}

TEST(InProcessDeadline, BeginsAnewWithEveryProgress) {
  EXPECT_GT(looks_of_a_vain_exchange(0), 10);
  EXPECT_EQ(looks_of_a_vain_exchange(30), looks_of_a_vain_exchange(20) + 10);
}

}  // namespace
}  // namespace shard::test
