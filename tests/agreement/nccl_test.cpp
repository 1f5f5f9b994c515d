// Ranks with a GPU each, over NCCL, and ranks that share one: the same bits, as planned; and what ends a run of them?
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "executor/flight/read_recorder.h"
#include "executor/rank/request_of.h"
#include "tests/agreement/matrix.h"
#include "tests/comm/emulated_gpus.h"
#include "tests/model/tiny_models.h"

namespace shard {
namespace {

struct OwnGpus {
  cuda::EmulatedOptions device{};
  bool graphs = true;
  bool reproducible = true;
  std::chrono::milliseconds deadline{60'000};
  std::shared_ptr<Progress> progress{};                                 ///< null: of its own
  std::vector<std::unique_ptr<flight::Recorder>>* recorders = nullptr;  ///< one a rank is added to them
};

Result<InProcessRun> run_on_own(const std::shared_ptr<const model::Model>& model, const plan::Strategy& strategy,
                                const train::SessionOptions& session, const OwnGpus& run = {}) {
  Result<plan::PlanSet> plans = plan::compile(model, strategy);
  if (!plans) return plans.error();
  const test::EmulatedGpus gpus(strategy.world_size, run.device);
  InProcessRun result{.plans = std::move(*plans), .ranks = {}};
  result.ranks.resize(static_cast<std::size_t>(strategy.world_size));
  for (std::int32_t rank = 0; run.recorders != nullptr && rank < strategy.world_size; ++rank) {
    auto made =
        flight::Recorder::in_memory({.rank = Rank{rank}, .world = strategy.world_size}, result.plans.of_rank(rank));
    if (!made) return made.error();
    run.recorders->push_back(std::move(*made));
  }
  const Result<void> done = train::run_ranks(
      gpus.own(),
      {.deadline = run.deadline,
       .graphs = run.graphs,
       .reproducible = run.reproducible,
       .progress = run.progress ? run.progress : std::make_shared<Progress>()},
      [&](train::DeviceRank& rank) -> Result<void> {
        const std::int32_t number = rank.communicator.rank().value;
        const auto data =
            open_data("random", *model, {.batch = strategy.micro_batch, .sequence = strategy.sequence, .seed = 7});
        if (!data) return data.error();
        cpu::ThreadPool pool(1);
        train::SessionOptions recorded = session;
        if (run.recorders != nullptr) recorded.recorder = (*run.recorders)[static_cast<std::size_t>(number)].get();
        auto own = train::run_session(rank, result.plans.of_rank(number), **data, pool, recorded);
        if (!own) return own.error();
        result.ranks[static_cast<std::size_t>(number)] = std::move(*own);
        return {};
      });
  if (!done) return done.error();
  return result;
}

plan::Strategy strategy_of(std::int32_t world, std::int32_t stage, plan::UnitKind unit, plan::Precision precision) {
  return {.world_size = world,
          .stage = stage,
          .unit = unit,
          .chunk_elems = Elems{4096},
          .micro_batch = 1,
          .global_batch = 4,
          .sequence = 8,
          .precision = precision,
          .prefetch = stage == 3 ? 1 : 0,
          .device = plan::Device::cuda};
}

/// The digest of the strategy on a device that all ranks share.
std::string shared_digest(const std::shared_ptr<const model::Model>& model, plan::Strategy strategy) {
  const auto run = run_in_process(model, strategy, session_of(3));
  return run ? run->ranks.front().state_sha256 : to_string(run.error());
}

/// With the workspace for sums, and as planned.
std::string own_digest(const std::shared_ptr<const model::Model>& model, plan::Strategy strategy,
                       const OwnGpus& gpus = {}) {
  strategy.transport = plan::Transport::messages;
  const auto run = run_on_own(model, strategy, session_of(3), gpus);
  if (!run) return to_string(run.error());
  expect_as_planned(*run, 3, to_string(strategy));
  for (const train::SessionResult& rank : run->ranks)
    EXPECT_EQ(rank.collectives.wire.count() > 0, strategy.world_size > 1) << to_string(strategy);
  return run->ranks.front().state_sha256;
}

class OverNccl : public testing::TestWithParam<plan::Precision> {};

TEST_P(OverNccl, StrategiesHaveTheBitsOfASharedDevice) {
  const auto model = tiny_gpt2(true);
  const std::string sha = shared_digest(model, strategy_of(1, 0, plan::UnitKind::module, GetParam()));
  ASSERT_EQ(sha.size(), 64U) << sha;
  std::uint64_t seed = 1;
  for (const std::int32_t world : {2, 4})
    for (const std::int32_t stage : {0, 1, 2, 3}) {
      const plan::UnitKind unit = (stage + world / 2) % 2 == 0 ? plan::UnitKind::chunk : plan::UnitKind::module;
      const plan::Strategy strategy = strategy_of(world, stage, unit, GetParam());
      const bool graphs = seed % 3 != 0;
      EXPECT_EQ(own_digest(model, strategy, {.device = {.seed = 10 * ++seed}, .graphs = graphs}), sha)
          << to_string(strategy) << (graphs ? ", graphs" : "");
    }
}

INSTANTIATE_TEST_SUITE_P(Precisions, OverNccl, testing::Values(plan::Precision::fp32, plan::Precision::bf16),
                         [](const auto& p) { return std::string(to_string(p.param)); });

// Groups of some ranks only: a communicator for each.
TEST(OverNccl, RanksThatShareAModelHaveTheBitsOfASharedDevice) {
  const auto model = tiny_gpt2(true);
  plan::Strategy strategy = strategy_of(4, 2, plan::UnitKind::module, plan::Precision::fp32);
  strategy.tensor_parallel = 2;
  const std::string sha = shared_digest(model, strategy);
  ASSERT_EQ(sha.size(), 64U) << sha;
  for (const bool graphs : {true, false}) EXPECT_EQ(own_digest(model, strategy, {.graphs = graphs}), sha);
}

// Without the promise of equal bits, sums are NCCL's: losses agree, and no staging is planned.
TEST(OverNccl, SumsOfItsOwnAreNear) {
  const auto model = tiny_gpt2(true);
  plan::Strategy strategy = strategy_of(4, 2, plan::UnitKind::module, plan::Precision::fp32);
  strategy.reproducible = false;
  const auto own = run_on_own(model, strategy, session_of(3), {.reproducible = false});
  const auto shared = run_in_process(model, strategy, session_of(3));
  ASSERT_TRUE(own && shared) << to_string(own.error());
  expect_as_planned(*own, 3, "NCCL's sums");
  for (std::size_t step = 0; step < 3; ++step) {
    const float expected = shared->ranks.front().losses[step];
    EXPECT_NEAR(own->ranks.front().losses[step], expected, 1e-5F * std::abs(expected));
  }
}

/// Of the plan's collectives, as a rank runs them: op and bytes, of creation, three steps and the digest.
using Calls = std::vector<std::pair<std::int32_t, std::int64_t>>;
Calls planned_calls(const plan::Plan& plan) {
  Calls calls;
  const auto add = [&](Phase which) {
    const plan::PhaseOps* const phase = plan.find(which);
    if (phase == nullptr) return;
    for (const plan::Op& op : phase->ops)
      if (const auto* const call = std::get_if<plan::Communicate>(&op.action))
        calls.emplace_back(op.id.value, executor::full_bytes(plan, op, *call).count());
  };
  for (const Phase phase : {Phase::creation, Phase::first_step, Phase::steady_step, Phase::steady_step, Phase::digest})
    add(phase);
  return calls;
}

// Whatever the host sees of a device and when: the recorder has each collective once, in order, of the phase it is of.
TEST(OverNccl, TheFlightRecorderHasEveryCollectiveInOrder) {
  const auto model = tiny_gpt2(true);
  for (const bool graphs : {true, false})
    for (const std::int32_t stage : {1, 3}) {
      plan::Strategy strategy = strategy_of(4, stage, plan::UnitKind::module, plan::Precision::fp32);
      strategy.transport = plan::Transport::messages;
      std::vector<std::unique_ptr<flight::Recorder>> recorders;
      const auto run = run_on_own(model, strategy, session_of(3), {.graphs = graphs, .recorders = &recorders});
      ASSERT_TRUE(run) << to_string(run.error());
      for (std::int32_t rank = 0; rank < 4; ++rank) {
        const auto read = flight::read_recordings(recorders[static_cast<std::size_t>(rank)]->snapshot());
        ASSERT_TRUE(read);
        Calls started, landed;
        std::uint32_t in_order = 0;
        for (const flight::Entry& each : read->front().entries) {
          if (each.event.kind == flight::EventKind::started) {
            EXPECT_EQ(each.event.call, started.size() + 1);
            started.emplace_back(each.event.op, each.event.bytes);
          }
          if (each.event.kind != flight::EventKind::landed) continue;
          EXPECT_EQ(each.event.call, ++in_order);
          EXPECT_LE(in_order, started.size()) << "landed before it was started";
          landed.emplace_back(each.event.op, 0);
        }
        ASSERT_LT(read->front().entries.size(), flight::kRingRecords) << "the ring holds the whole run";
        EXPECT_EQ(started, planned_calls(run->plans.of_rank(rank))) << graphs << ' ' << stage;
        EXPECT_EQ(landed.size(), started.size());
      }
    }
}

// NCCL's communicators wait for the graphs that their calls are in.
TEST(OverNccl, ACapturedStepIsLetGoOfBeforeItsCommunicators) {
  const auto model = tiny_gpt2(true);
  const plan::Strategy strategy = strategy_of(2, 2, plan::UnitKind::module, plan::Precision::fp32);
  const auto run = run_on_own(model, strategy, session_of(3), {.reproducible = false});
  EXPECT_TRUE(run) << to_string(run.error());
}

// A rank that has ended a phase waits at the next meeting for one that gets on: here with the digest of all.
TEST(OverNccl, RanksWaitForOneThatGetsOn) {
  const auto model = tiny_gpt2(true);
  std::atomic<std::int64_t> seconds{0};
  std::atomic<std::int64_t> looks{0};
  OwnGpus gpus{.graphs = false, .reproducible = false};
  gpus.progress = std::make_shared<Progress>([&] {
    ++looks;
    return Progress::Clock::time_point(std::chrono::seconds(seconds));
  });
  train::SessionOptions session = session_of(2);
  session.read_state = [&](auto, auto, auto) {
    seconds += 60;  // the deadline
    // The other rank looks at the clock, unless it has given up.
    const std::int64_t before = looks;
    for (int tries = 0; looks < before + 2 && tries < 100'000; ++tries) std::this_thread::yield();
  };
  plan::Strategy strategy = strategy_of(2, 2, plan::UnitKind::module, plan::Precision::fp32);
  strategy.reproducible = false;
  const auto run = run_on_own(model, strategy, session, gpus);
  EXPECT_TRUE(run) << to_string(run.error());
  EXPECT_GT(seconds, 600);
}

// A step that fails behind its capture, and its peer: an abort waits for graphs, and would for good.
TEST(OverNccl, ErrorsLetGoOfACapturedStepBeforeTheyAbort) {
  const auto model = tiny_gpt2(true);
  const plan::Strategy strategy = strategy_of(2, 2, plan::UnitKind::module, plan::Precision::fp32);
  for (const auto kind : {cuda::PlantedFault::Kind::error, cuda::PlantedFault::Kind::hang}) {
    OwnGpus gpus{.reproducible = false, .deadline = std::chrono::milliseconds(500)};
    gpus.device.fault = cuda::PlantedFault{"launch_graph", 1, kind};
    const auto run = run_on_own(model, strategy, session_of(3), gpus);
    ASSERT_FALSE(run);
    EXPECT_EQ(run.error().code, kind == cuda::PlantedFault::Kind::hang ? Errc::retryable : Errc::unavailable)
        << to_string(run.error());
  }
}

/// Whether every such run makes the call before its end.
bool makes(std::string_view call, bool reproducible) {
  const bool of_sums = call == "nccl_send" || call == "nccl_receive";
  const bool of_own_sums = call == "nccl_reduce_scatter";
  const bool of_all = call == "nccl_unique_id" || call == "nccl_begin" || call == "nccl_is_ready" ||
                      call == "nccl_group_start" || call == "nccl_group_end" || call == "nccl_all_gather";
  return of_all || (reproducible ? of_sums : of_own_sums);
}

class NcclFaults : public testing::TestWithParam<std::string_view> {};

// Within the deadline, on all ranks, and said as what it is.
TEST_P(NcclFaults, EndTheRun) {
  const auto model = tiny_gpt2(false);
  for (const bool reproducible : {true, false})
    for (const auto kind : {cuda::PlantedFault::Kind::error, cuda::PlantedFault::Kind::hang}) {
      plan::Strategy strategy = strategy_of(2, 2, plan::UnitKind::module, plan::Precision::fp32);
      strategy.reproducible = reproducible;
      if (reproducible) strategy.transport = plan::Transport::messages;
      const bool hang = kind == cuda::PlantedFault::Kind::hang;
      if (hang && !makes(GetParam(), reproducible)) continue;
      const OwnGpus gpus{.device = {.fault = cuda::PlantedFault{std::string(GetParam()), 1, kind}},
                         .reproducible = reproducible,
                         .deadline = std::chrono::milliseconds(hang ? 500 : 60'000)};
      const auto start = std::chrono::steady_clock::now();
      const auto run = run_on_own(model, strategy, session_of(2), gpus);
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
      EXPECT_TRUE(!run || !makes(GetParam(), reproducible)) << GetParam();
      if (run) continue;  // a call that such a run does not make, or one behind its end
      EXPECT_EQ(run.error().code, hang ? Errc::retryable : Errc::unavailable) << to_string(run.error());
      EXPECT_NE(run.error().where.find("rank "), std::string::npos) << to_string(run.error());
      // All but the first and the last meeting is an op's.
      const bool joins = GetParam() == "nccl_unique_id" || GetParam() == "nccl_begin" || GetParam() == "nccl_is_ready";
      const bool leaves = GetParam() == "nccl_finish" || GetParam() == "nccl_destroy";
      EXPECT_TRUE(joins || leaves || run.error().where.find(" op ") != std::string::npos) << to_string(run.error());
    }
}

INSTANTIATE_TEST_SUITE_P(Calls, NcclFaults,
                         testing::ValuesIn(cuda::emulated_nccl_calls().begin(), cuda::emulated_nccl_calls().end()),
                         [](const auto& c) { return std::string(c.param); });

}  // namespace
}  // namespace shard
