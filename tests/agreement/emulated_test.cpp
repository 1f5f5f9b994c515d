// The GPU backend on an emulated device: do strategies agree to the bit, whatever the order that CUDA leaves open?
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "tests/agreement/bit_class.h"
#include "tests/agreement/random_runs.h"
#include "tests/daily.h"
#include "tests/model/tiny_models.h"

namespace shard {
namespace {

class OnGpu : public testing::TestWithParam<BitClass> {};

// One digest per class, arenas' peaks and collectives as planned, streams in a random order.
TEST_P(OnGpu, StrategiesAgree) {
  Subject subject = subject_of(GetParam(), 8, 3);
  subject.worlds = {1, 2, 4};
  subject.device = plan::Device::cuda;
  std::vector<std::vector<std::size_t>> rows = pairwise(levels(subject));
  if (rows.size() > EMULATED_ROWS) rows = daily::part_of(rows, rows.size() / EMULATED_ROWS);
  expect_agreement(subject, rows);
}

INSTANTIATE_TEST_SUITE_P(Pairs, OnGpu, testing::ValuesIn(EMULATED_CLASSES),
                         [](const auto& c) { return name_of(c.param); });

class RandomOnGpu : public testing::TestWithParam<unsigned> {};

TEST_P(RandomOnGpu, StrategiesAgree) {
  RandomRuns all;
  for (unsigned i = 0; i < 4; ++i) {
    const RandomRuns runs = expect_random_class_agrees(5000 + 4 * GetParam() + i, 4, plan::Device::cuda);
    all.ran += runs.ran;
    all.compared += runs.compared;
  }
  EXPECT_GE(all.compared, 8);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomOnGpu, testing::Range(0U, EMULATED_RANDOM_GROUPS));

/// A random plan for GPUs on several ranks.
struct Drawn {
  plan::ModelPtr model;
  plan::Strategy strategy;
  plan::PlanSet plans;
};

std::optional<Drawn> draw(unsigned seed) {
  plan::RandomCases cases(seed);
  for (int tries = 0; tries < 100; ++tries) {
    const auto model = cases.model();
    plan::Strategy s = cases.strategy(*model);
    s.world_size = 2 * s.tensor_parallel;
    s.shard_group = 0;
    s.device = plan::Device::cuda;
    s.transport = plan::Transport::shared;  // edges about staging order nothing where no message is sent
    s.global_batch = 4 * s.micro_batch;
    if (s.precision == plan::Precision::tf32) s.precision = plan::Precision::fp32;
    if (s.has_variable_chunks()) cases.vary_chunks(s, *model);
    if (s.chunk_elems.count() > 0) s.chunk_elems = round_up(s.chunk_elems, 2);
    if (!plan::check(*model, s)) continue;
    Result<plan::PlanSet> plans = plan::compile(model, s);
    if (plans) return Drawn{model, s, std::move(*plans)};
  }
  return std::nullopt;
}

std::string digest_of(const Drawn& drawn, const EmulatedRun& run) {
  const auto ranks = run_emulated(drawn.plans, *drawn.model, drawn.strategy, session_of(3), "random", run);
  return ranks ? ranks->front().state_sha256 : to_string(ranks.error());
}

// Bits of a plan do not depend on the order of streams, nor on whether steps are graphs.
TEST(OrderOnGpu, NoSeedChangesABit) {
  for (unsigned seed = 0; seed < EMULATED_SEEDED_PLANS; ++seed) {
    const std::optional<Drawn> drawn = draw(100 + seed);
    ASSERT_TRUE(drawn);
    std::set<std::string> digests;
    for (std::uint64_t order = 1; order <= EMULATED_ORDERS; ++order)
      digests.insert(digest_of(*drawn, {.device = {.seed = order}, .graphs = order % 2 == 0}));
    EXPECT_EQ(digests.size(), 1U) << to_string(drawn->strategy) << ": " << *digests.begin();
    EXPECT_EQ(digests.begin()->size(), 64U) << *digests.begin();
  }
}

/// The plans without the edge number `dropped` of one rank's steady step, and of its first step; how many there are.
std::size_t edges_of(const plan::Plan& plan) {
  std::size_t edges = 0;
  for (const plan::Op& op : plan.find(Phase::steady_step)->ops) edges += op.dependencies.size();
  return edges;
}

plan::PlanSet without_edge(const plan::PlanSet& plans, std::size_t dropped, std::string& edge) {
  plan::PlanSet changed = plans;
  plan::Plan& plan = changed.classes.front();
  std::size_t number = 0;
  for (plan::Op& op : plan.find(Phase::steady_step)->ops) {
    std::vector<OpId> kept;
    for (const OpId id : op.dependencies) {
      if (number++ != dropped)
        kept.push_back(id);
      else
        edge = "op " + std::to_string(id.value) + " before op " + std::to_string(op.id.value) + " '" +
               std::string(op.name) + "'";
    }
    op.dependencies = plan.list(kept);
  }
  return changed;
}

// An edge of the plan left out is a fault of the device's order, whatever order it took, just where it is one of the
// plan.
TEST(OrderOnGpu, EveryDroppedEdgeIsFound) {
  std::mt19937 random(EMULATED_DROPPED_EDGES);
  int dropped = 0;
  for (unsigned seed = 0; dropped < EMULATED_DROPPED_EDGES; ++seed) {
    const std::optional<Drawn> drawn = draw(300 + seed);
    ASSERT_TRUE(drawn);
    const std::size_t edges = edges_of(drawn->plans.of_rank(0));
    if (edges == 0) continue;
    const std::size_t edge = std::uniform_int_distribution<std::size_t>(0, edges - 1)(random);
    std::string left_out;
    Drawn broken{drawn->model, drawn->strategy, without_edge(drawn->plans, edge, left_out)};
    // Some edges keep ranks' plans alike and order nothing on this one: the verifier of plans tells.
    const bool matters = !plan::verify(broken.plans);
    const std::string said = digest_of(broken, {.device = {.as_enqueued = true}});
    EXPECT_EQ(said.find("nothing orders") != std::string::npos, matters)
        << "seed " << seed << ", " << left_out << " of " << to_string(drawn->strategy) << ": " << said;
    if (!matters) continue;
    ++dropped;
  }
}

/// Whether a fault at the first such call ends a run. Runs whose ops are not timed ask for no seconds; how much memory
/// is in use is asked behind the last step, when nobody waits for the device any more.
bool ends_run(std::string_view call, cuda::PlantedFault::Kind kind) {
  if (call == "memory_info") return kind == cuda::PlantedFault::Kind::error;
  return call != "seconds_between";
}

class Hangs : public testing::TestWithParam<std::string_view> {};

// Within the deadline, and said as what it is.
TEST_P(Hangs, AndErrorsAtEveryCallEndTheRun) {
  const std::optional<Drawn> drawn = draw(77);
  ASSERT_TRUE(drawn);
  for (const auto kind : {cuda::PlantedFault::Kind::error, cuda::PlantedFault::Kind::hang})
    for (const std::int64_t occurrence : {1, 5}) {
      const cuda::PlantedFault fault{std::string(GetParam()), occurrence, kind};
      // A run that nothing ends may take its time.
      const std::chrono::milliseconds deadline{ends_run(GetParam(), kind) ? 200 : 10'000};
      const auto ranks = run_emulated(drawn->plans, *drawn->model, drawn->strategy, session_of(3), "random",
                                      {.device = {.fault = fault}, .deadline = deadline});
      // The first of every call that such a run makes ends it; a fifth there may not be.
      if (occurrence == 1) {
        EXPECT_EQ(!ranks, ends_run(GetParam(), kind)) << GetParam() << (ranks ? "" : ": " + to_string(ranks.error()));
      }
      if (ranks) continue;
      const bool hang = kind == cuda::PlantedFault::Kind::hang;
      EXPECT_EQ(ranks.error().code, hang ? Errc::retryable : Errc::unavailable)
          << GetParam() << ' ' << occurrence << ": " << to_string(ranks.error());
    }
}

INSTANTIATE_TEST_SUITE_P(Calls, Hangs, testing::ValuesIn(cuda::emulated_calls().begin(), cuda::emulated_calls().end()),
                         [](const auto& c) { return std::string(c.param); });

/// A clock that goes on by a second at every look, which only those have that wait.
std::shared_ptr<Progress> looked_at() {
  auto looks = std::make_shared<std::atomic<int>>();
  return std::make_shared<Progress>([looks] { return Progress::Clock::time_point(std::chrono::seconds(++*looks)); });
}

// The op that hangs is the one that is named, in the first step and in later ones.
TEST(HangOnGpu, IsNamed) {
  const auto model = load_model(kGpt2Nano.model);
  plan::Strategy s{.micro_batch = 1, .global_batch = 1, .sequence = 4};
  s.device = plan::Device::cuda;
  const auto plans = plan::compile(model, s);
  ASSERT_TRUE(plans);
  std::vector<OpId> products;  // as the run makes them
  for (const Phase phase : {Phase::first_step, Phase::steady_step, Phase::steady_step})
    for (const plan::Op& op : plans->of_rank(0).find(phase)->ops)
      if (const auto* c = std::get_if<plan::Compute>(&op.action); c != nullptr)
        if (c->kind == model::OperatorKind::linear) products.push_back(op.id);
  for (const std::size_t which : {std::size_t{3}, products.size() - 1}) {
    const cuda::PlantedFault fault{"multiply", static_cast<std::int64_t>(which) + 1, cuda::PlantedFault::Kind::hang};
    EmulatedRun run{.device = {.fault = fault}, .graphs = false, .deadline = std::chrono::minutes(2)};
    run.progress = looked_at();
    const auto ranks = run_emulated(*plans, *model, s, session_of(3), "random", run);
    ASSERT_FALSE(ranks);
    EXPECT_EQ(ranks.error().where, "rank 0 op " + std::to_string(products[which].value)) << to_string(ranks.error());
  }
}

// However long a phase takes: as long as its ops end, it does not hang. What hangs behind them is found and named.
TEST(HangOnGpu, IsNotAPhaseWhoseOpsGoOn) {
  const std::optional<Drawn> drawn = draw(77);
  ASSERT_TRUE(drawn);
  for (const bool graphs : {false, true}) {
    EmulatedRun run{.device = {.work_per_question = 1}, .graphs = graphs, .deadline = std::chrono::minutes(2)};
    run.progress = looked_at();
    const auto ranks = run_emulated(drawn->plans, *drawn->model, drawn->strategy, session_of(3), "random", run);
    EXPECT_TRUE(ranks) << to_string(ranks.error());
    EXPECT_GT(run.progress->now().time_since_epoch(), 10 * run.deadline);
    run.progress = looked_at();
    run.device.fault = cuda::PlantedFault{"multiply", 3, cuda::PlantedFault::Kind::hang};
    const auto hung = run_emulated(drawn->plans, *drawn->model, drawn->strategy, session_of(3), "random", run);
    ASSERT_FALSE(hung);
    EXPECT_EQ(hung.error().code, Errc::retryable) << to_string(hung.error());
    EXPECT_NE(hung.error().what.find("has not ended"), std::string::npos) << to_string(hung.error());
  }
}

// One op of the host that takes long tells that it gets on, while it runs: here the digest of a flat of many
// parameters.
TEST(HangOnGpu, IsNotALongOpOfTheHost) {
  const auto model = load_model(kGpt2Nano.model);
  plan::Strategy s{.micro_batch = 1, .global_batch = 1, .sequence = 4, .device = plan::Device::cuda};
  const auto plans = plan::compile(model, s);
  ASSERT_TRUE(plans);
  std::chrono::milliseconds time{0};
  EmulatedRun run;
  run.progress = std::make_shared<Progress>([&] { return Progress::Clock::time_point(time); });
  std::int64_t moves = 0;
  int silent = 0;
  int shown = 0;
  train::SessionOptions session = session_of(2);
  session.read_state = [&](model::ParamId, plan::Digest::Content, std::span<const std::byte>) {
    silent += run.progress->moves() == std::exchange(moves, run.progress->moves());
    ++shown;
    time += run.deadline;
  };
  const auto ranks = run_emulated(*plans, *model, s, session, "random", run);
  EXPECT_TRUE(ranks) << to_string(ranks.error());
  EXPECT_GT(shown, 10);
  EXPECT_EQ(silent, 0);
}

/// A run of heads of this width on an emulated card.
Result<std::vector<train::SessionResult>> run_of_heads(int width, std::int32_t compute_capability) {
  const auto model = tiny_model(R"({"model_type": "gpt2", "vocab_size": 37, "n_positions": 8, "n_layer": 1,
                                    "n_head": 1, "n_embd": )" +
                                std::to_string(width) + "}");
  plan::Strategy s{.micro_batch = 1, .global_batch = 1, .sequence = 4, .device = plan::Device::cuda};
  const auto plans = plan::compile(model, s);
  if (!plans) return plans.error();
  EmulatedRun run;
  run.device.compute_capability = compute_capability;
  return run_emulated(*plans, *model, s, session_of(2), "random", run);
}

// What a card cannot run is said before anything runs, of just those heads whose launches it would refuse.
TEST(CardOnGpu, IsAskedForItsSharedMemoryFirst) {
  for (const int fits : {64, 80, 132, 212}) EXPECT_TRUE(run_of_heads(fits, 89)) << fits;
  for (const int wide : {84, 128, 216, 256}) {
    const auto refused = run_of_heads(wide, 89);
    ASSERT_FALSE(refused) << wide;
    EXPECT_EQ(refused.error().code, Errc::unavailable);
    EXPECT_NE(refused.error().what.find("heads of " + std::to_string(wide)), std::string::npos)
        << to_string(refused.error());
    EXPECT_NE(refused.error().what.find("8.9 has 99 KB"), std::string::npos) << to_string(refused.error());
    EXPECT_NE(refused.error().where.find("rank 0 op "), std::string::npos) << to_string(refused.error());
    EXPECT_EQ(refused.error().help.find("heads of 80 or narrower"), 0U) << to_string(refused.error());
  }
  for (const std::int32_t other : {80, 90, 100}) EXPECT_TRUE(run_of_heads(128, other)) << other;
}

// What the host cannot do in a stream's order ends the run: here data that shrinks behind the first step.
TEST(HostCallOnGpu, ErrorEndsTheRun) {
  const auto model = load_model(kGpt2Nano.model);
  plan::Strategy s{.micro_batch = 1, .global_batch = 1, .sequence = 4};
  s.device = plan::Device::cuda;
  const auto plans = plan::compile(model, s);
  ASSERT_TRUE(plans);
  const std::filesystem::path file = std::filesystem::temp_directory_path() / "shrinks.txt";
  std::ofstream(file) << std::string(4096, 'a');
  train::SessionOptions session = session_of(3);
  session.after_step = [&](const train::StepResult&) { std::filesystem::resize_file(file, 1); };
  const auto ranks = run_emulated(*plans, *model, s, session, "text:" + file.string());
  ASSERT_FALSE(ranks);
  EXPECT_TRUE(ranks.error().code == Errc::io || ranks.error().code == Errc::malformed) << to_string(ranks.error());
}

// The same model, data and steps: as near as sums in another order are.
TEST(OnGpuAndCpu, LossesOfManyStepsAreEqual) {
  for (const bool llama : {false, true})
    for (const auto& [precision, tolerance] :
         {std::pair{plan::Precision::fp32, 1e-5F}, std::pair{plan::Precision::bf16, 1e-2F}}) {
      const Subject subject = llama ? kLlamaNano : kGpt2Nano;
      const auto model = load_model(subject.model);
      plan::Strategy s{.micro_batch = 1, .global_batch = 2, .sequence = 16, .precision = precision};
      if (!llama) s.dropout = 0.1F;  // masks of every step
      train::SessionOptions session = session_of(EMULATED_STEPS);
      session.learning_rate = [](std::int64_t step) { return 4e-3 / static_cast<double>(step + 1); };
      const auto on_cpu = run_in_process(model, s, session);
      s.device = plan::Device::cuda;
      const auto on_gpu = run_in_process(model, s, session);
      ASSERT_TRUE(on_cpu && on_gpu);
      for (std::size_t step = 0; step < EMULATED_STEPS; ++step) {
        const float expected = on_cpu->ranks[0].losses[step];
        EXPECT_NEAR(on_gpu->ranks[0].losses[step], expected, tolerance * expected) << subject.model << ' ' << step;
      }
    }
}

/// The gradient of each parameter in the first step: its first moment over 1 - beta1.
std::map<std::int32_t, std::vector<float>> first_gradients(const std::shared_ptr<const model::Model>& model,
                                                           const plan::Strategy& strategy) {
  std::map<std::int32_t, std::vector<float>> gradients;
  train::SessionOptions session = session_of(1);
  session.read_state = [&](model::ParamId param, plan::Digest::Content content, std::span<const std::byte> elements) {
    if (content != plan::Digest::Content::first_moment) return;
    std::vector<float>& moment = gradients[param.value];
    moment.resize(elements.size() / sizeof(float));
    std::memcpy(moment.data(), elements.data(), elements.size());
  };
  EXPECT_TRUE(run_in_process(model, strategy, session));
  return gradients;
}

TEST(OnGpuAndCpu, GradientsOfTheFirstStepAreEqual) {
  for (const Subject& subject : {kGpt2Nano, kLlamaNano})
    for (const auto& [precision, tolerance] :
         {std::pair{plan::Precision::fp32, 1e-5F}, std::pair{plan::Precision::fp16, 2e-2F}}) {
      const auto model = load_model(subject.model);
      plan::Strategy s{.micro_batch = 2, .global_batch = 4, .sequence = 24, .precision = precision};
      const auto on_cpu = first_gradients(model, s);
      s.device = plan::Device::cuda;
      const auto on_gpu = first_gradients(model, s);
      ASSERT_EQ(on_cpu.size(), model->parameters.size());
      ASSERT_EQ(on_gpu.size(), on_cpu.size());
      for (const auto& [param, expected] : on_cpu) {
        const std::vector<float>& actual = on_gpu.at(param);
        ASSERT_EQ(actual.size(), expected.size());
        float largest = 0;
        for (const float e : expected) largest = std::max(largest, std::abs(e));
        for (std::size_t i = 0; i < expected.size(); ++i)
          ASSERT_NEAR(actual[i], expected[i], tolerance * largest)
              << subject.model << ' ' << model->parameters[static_cast<std::size_t>(param)].name << ' ' << i;
      }
    }
}

}  // namespace
}  // namespace shard
