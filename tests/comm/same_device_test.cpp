// Do ranks that share an emulated GPU keep the contract of communicators, at 1, 2, 3, 4 and 8 ranks?
#include <gtest/gtest.h>

#include <vector>

#include "executor/cuda/emulated/emulated.h"
#include "executor/train/device_run.h"
#include "tests/comm/conformance.h"
#include "tests/comm/mirrored.h"

namespace shard::test {
namespace {

struct Setting {
  const ConformanceCase* test = nullptr;
  int world = 1;
};

class OnOneDevice : public testing::TestWithParam<Setting> {};

TEST_P(OnOneDevice, Conforms) {
  const Setting setting = GetParam();
  const auto api = cuda::make_emulated({.capacity = Bytes{std::int64_t{1} << 29}, .seed = 3});
  ASSERT_TRUE(api);
  std::vector<Findings> findings(static_cast<std::size_t>(setting.world));
  const Result<void> done =
      train::run_ranks(**api, cuda::kernels(), setting.world, std::chrono::seconds(60), false,
                       [&](train::DeviceRank& rank) -> Result<void> {
                         Mirrored comm(**api, rank.room.turns, rank.communicator);
                         const Result<std::span<std::byte>> arena = comm.make_arena(setting.test->arena(), {});
                         if (!arena) return arena.error();
                         setting.test->run(comm, *arena, findings[static_cast<std::size_t>(comm.rank().value)]);
                         return {};
                       });
  EXPECT_TRUE(done) << to_string(done.error());
  for (std::size_t rank = 0; rank < findings.size(); ++rank)
    for (const std::string& finding : findings[rank]) ADD_FAILURE() << "rank " << rank << ": " << finding;
}

/// All but the one that waits for a moment of the clock, which ranks that take turns would wait for in turn.
std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const ConformanceCase& test : conformance_cases())
    for (const int world : {1, 2, 3, 4, 8})
      if (test.name != "WaitingIsNotMoving") all.push_back({&test, world});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Contract, OnOneDevice, testing::ValuesIn(settings()), [](const auto& setting) {
  return setting.param.test->name + "On" + std::to_string(setting.param.world);
});

}  // namespace
}  // namespace shard::test
