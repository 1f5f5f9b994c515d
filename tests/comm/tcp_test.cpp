// Do ranks over TCP keep the contract of communicators, at 1 to 8 ranks?
#include <gtest/gtest.h>

#include <thread>

#include "tests/comm/conformance.h"
#include "tests/comm/tcp_ranks.h"

namespace shard::test {
namespace {

class OverTcp : public testing::TestWithParam<int> {};

TEST_P(OverTcp, Conforms) {
  const std::vector<TcpPlace> places = places_of(GetParam());
  std::vector<Findings> findings(places.size());
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < places.size(); ++rank)
    threads.emplace_back([&, rank] {
      const Joined comm = make_tcp(places[rank]);
      if (!comm) return findings[rank].push_back(to_string(comm.error()));
      const Result<std::span<std::byte>> arena = (*comm)->make_arena(kArena);
      if (!arena) return findings[rank].push_back(to_string(arena.error()));
      for (const ConformanceCase& test : conformance_cases()) {
        const std::size_t before = findings[rank].size();
        test.run(**comm, *arena, findings[rank]);
        for (std::size_t i = before; i < findings[rank].size(); ++i) findings[rank][i].insert(0, test.name + ": ");
        if (findings[rank].size() > before) return (*comm)->abort("a finding");
      }
    });
  threads.clear();
  for (std::size_t rank = 0; rank < findings.size(); ++rank)
    for (const std::string& finding : findings[rank]) ADD_FAILURE() << "rank " << rank << ": " << finding;
}

INSTANTIATE_TEST_SUITE_P(Contract, OverTcp, testing::Values(1, 2, 3, 4, 6, 8),
                         [](const auto& setting) { return "On" + std::to_string(setting.param); });

}  // namespace
}  // namespace shard::test
