// Do chunks cut into shards follow the closed forms that hold for any model, and end a step as they began it?
#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <set>

#include "sim/ir/run.h"
#include "tests/like/gemini.h"

namespace shard::like {
namespace {

using test::calls;
using test::gemini;
using test::kSplit;
using test::list_of;
using test::on;

/// Consecutive modules of one to four tensors, none larger than the chunk.
struct RandomCase {
  ParameterList parameters;
  GeminiOptions options;

  explicit RandomCase(std::uint64_t seed, bool oversize = false) {
    std::mt19937_64 random(seed);
    const auto draw = [&](std::int64_t low, std::int64_t high) {
      return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    };
    options.world_size = static_cast<std::int32_t>(std::int64_t{1} << draw(0, 4));
    const std::int64_t chunk = options.world_size * draw(4, 200);
    options.chunk = Elems{chunk};
    std::vector<std::pair<std::string, std::int64_t>> tensors;
    for (std::int64_t m = 0, modules = draw(1, 40); m < modules; ++m)
      for (std::int64_t t = 0, count = draw(1, 4); t < count; ++t)
        tensors.emplace_back("m" + std::to_string(m) + ".t" + std::to_string(t),
                             draw(1, oversize && draw(0, 5) == 0 ? 3 * chunk : chunk));
    parameters = list_of(tensors);
  }
};

/// What the formulas need: K chunks, G of them still gathered when backward begins, at most `most` used by one op.
struct Shape {
  std::int64_t chunks = 0;
  std::int64_t last = 0;
  std::int64_t most = 0;
  std::int64_t bytes = 0;  ///< of one chunk in 16 bits

  explicit Shape(const GeminiResult& r, const ParameterList& parameters) {
    chunks = static_cast<std::int64_t>(r.layout.chunks.size());
    bytes = r.layout.chunks[0].elems.count() * 2;
    std::map<std::string_view, std::set<std::size_t>> used;
    for (std::size_t c = 0; c < r.layout.chunks.size(); ++c)
      for (const PlacedParameter& p : r.layout.chunks[c].parameters)
        used[module_name(parameters[p.parameter].name)].insert(c);
    for (const auto& [name, set] : used) most = std::max(most, static_cast<std::int64_t>(set.size()));
    last = static_cast<std::int64_t>(used[module_name(parameters.back().name)].size());
  }
};

class ClosedForms : public testing::TestWithParam<std::uint64_t> {};

TEST_P(ClosedForms, NothingKeptGatheredNothingOffloaded) {
  const RandomCase c(GetParam());
  const GeminiResult r = gemini(kSplit, c.parameters, c.options);
  const Shape s(r, c.parameters);
  const std::int64_t n = c.options.world_size;
  for (const GeminiIteration& it : r.iterations) {
    EXPECT_EQ(calls(it.after_forward, Collective::all_gather).count, s.chunks);
    EXPECT_EQ(calls(it.after_backward, Collective::all_gather).count, 2 * s.chunks - s.last);
    EXPECT_EQ(calls(it.after_backward, Collective::all_gather).bytes.count(), (2 * s.chunks - s.last) * s.bytes);
    EXPECT_EQ(calls(it.after_backward, Collective::reduce_scatter).count, n == 1 ? 0 : s.chunks);
    EXPECT_EQ(it.after_backward.to_device.count() + it.after_backward.to_host.count(), 0);
    EXPECT_EQ(it.after_backward.model_data_peak.count(), 3 * s.chunks * s.bytes / n + s.most * (s.bytes - s.bytes / n));
  }
}

TEST_P(ClosedForms, EverythingKeptGathered) {
  RandomCase c(GetParam());
  c.options.shard_param_frac = 0;
  const GeminiResult r = gemini(kSplit, c.parameters, c.options);
  const Shape s(r, c.parameters);
  for (const GeminiIteration& it : r.iterations) {
    EXPECT_EQ(calls(it.after_backward, Collective::all_gather).count, s.chunks);
    EXPECT_EQ(it.after_backward.model_data_peak.count(),
              2 * s.chunks * s.bytes / c.options.world_size + s.chunks * s.bytes);
  }
}

TEST_P(ClosedForms, EverythingOffloaded) {
  RandomCase c(GetParam());
  c.options.offload_optim_frac = c.options.offload_param_frac = 1;
  const GeminiResult r = gemini(kSplit, c.parameters, c.options);
  const Shape s(r, c.parameters);
  const std::int64_t shard = s.bytes / c.options.world_size;
  const std::int64_t again = (s.chunks - s.last) * shard;
  for (std::size_t i = 0; i < r.iterations.size(); ++i) {
    const LedgerMoment& all = r.iterations[i].after_backward;
    EXPECT_EQ(all.to_device.count(), (i == 0 ? 1 : 2) * s.chunks * shard + again) << i;
    EXPECT_EQ(all.to_host.count(), again + s.chunks * shard);
    EXPECT_EQ(all.model_data_peak.count(), s.most * s.bytes);
    EXPECT_EQ(on(all, Memory::device), 0);
    EXPECT_EQ(on(all, Memory::host), 3 * s.chunks * shard);
  }
}

TEST_P(ClosedForms, OptimizerOffloaded) {
  RandomCase c(GetParam());
  c.options.offload_optim_frac = 1;
  const GeminiResult r = gemini(kSplit, c.parameters, c.options);
  const Shape s(r, c.parameters);
  const std::int64_t shards = s.chunks * s.bytes / c.options.world_size;
  EXPECT_EQ(r.offloaded_chunks, s.chunks);
  for (std::size_t i = 0; i < r.iterations.size(); ++i) {
    EXPECT_EQ(r.iterations[i].after_backward.to_device.count(), i == 0 ? 0 : 2 * shards);
    EXPECT_EQ(r.iterations[i].after_backward.to_host.count(), shards);
  }
}

INSTANTIATE_TEST_SUITE_P(Random, ClosedForms, testing::Range<std::uint64_t>(0, 40));

/// Any fractions, tensors larger than a chunk too.
class AnyPolicy : public testing::TestWithParam<std::uint64_t> {};

TEST_P(AnyPolicy, AStepEndsAsItBeganAndMemoryIsBetweenTheExtremes) {
  RandomCase c(GetParam(), true);
  std::mt19937_64 random(GetParam());
  const auto fraction = [&] { return std::vector<double>{0, 0.1, 0.3, 0.5, 0.95, 1}[random() % 6]; };
  c.options.shard_param_frac = fraction();
  c.options.offload_optim_frac = fraction();
  c.options.offload_param_frac = fraction();
  ASSERT_TRUE(check_gemini(GeminiRules::split, c.parameters, c.options));
  const GeminiPlan plan = split_chunks(step_of_modules(c.parameters),
                                       gemini_layout(GeminiRules::split, c.parameters, c.options), c.options);
  Ledger ledger(plan.plan, plan.marks);
  const auto run = [&](Phase phase) { ASSERT_TRUE(plan::run(*plan.plan.find(phase), ledger)); };
  run(Phase::creation);
  run(Phase::first_step);
  const std::vector<bool> before = ledger.live();
  run(Phase::steady_step);
  EXPECT_EQ(ledger.live(), before);

  std::int64_t chunks = 0;
  for (const Chunk& chunk : plan.layout.chunks) chunks += 2 * chunk.elems.count();
  for (const LedgerMoment& m : ledger.moments()) {
    EXPECT_LE(on(m, Memory::device) + on(m, Memory::host), 2 * chunks / c.options.world_size + chunks);
    EXPECT_GE(on(m, Memory::device) + on(m, Memory::host), 3 * chunks / c.options.world_size);
    EXPECT_EQ(calls(m, Collective::reduce_scatter).count, m.name == "after forward" || c.options.world_size == 1
                                                              ? 0
                                                              : static_cast<std::int64_t>(plan.layout.chunks.size()));
  }
}

INSTANTIATE_TEST_SUITE_P(Random, AnyPolicy, testing::Range<std::uint64_t>(0, 100));

// 4 tensors in 2 chunks: what fractions are taken of is twice the chunks' bytes, so half of it is all of them.
TEST(StaticPolicy, FractionsAreOfTensorsTimesChunks) {
  const ParameterList parameters = list_of({{"a.w", 6}, {"a.b", 2}, {"b.w", 6}, {"b.b", 2}});
  GeminiOptions options{.world_size = 2, .chunk = Elems{8}};
  options.offload_optim_frac = 0.5;
  EXPECT_EQ(gemini(kSplit, parameters, options).offloaded_chunks, 2);
  options.offload_optim_frac = 0.25;
  EXPECT_EQ(gemini(kSplit, parameters, options).offloaded_chunks, 1);
  options = {.world_size = 2, .chunk = Elems{8}, .shard_param_frac = 0.5};
  EXPECT_EQ(gemini(kSplit, parameters, options).keep_gathered_bytes, 32.0);
  EXPECT_EQ(calls(gemini(kSplit, parameters, options).iterations[1].after_backward, Collective::all_gather).count, 2);
}

// The argument still decides where chunks are first put.
TEST(StaticPolicy, ParametersAreOffloadedOnlyWhereBothOtherFractionsAreOne) {
  const ParameterList parameters = list_of({{"a.w", 8}, {"b.w", 8}});
  const GeminiResult r = gemini(kSplit, parameters, {.world_size = 2, .chunk = Elems{8}, .offload_param_frac = 1});
  EXPECT_EQ(r.rest_host.count(), 2 * 8);
  EXPECT_EQ(r.rest_device.count(), 2 * 16);
  EXPECT_EQ(r.iterations[0].after_backward.to_device.count(), 2 * 8);
  EXPECT_EQ(r.iterations[1].after_backward.to_device.count(), 0);
  EXPECT_THAT(r.notes, testing::ElementsAre(testing::HasSubstr("--offload-param-frac has no effect")));
}

TEST(StaticPolicy, AModelKeptGatheredIsAllReduced) {
  const GeminiResult r = gemini(kSplit, list_of({{"a.w", 5}, {"a.b", 4}}),
                                {.world_size = 4, .chunk = Elems{9}, .keep_gathered = true, .offload_optim_frac = 1});
  for (const GeminiIteration& it : r.iterations) {
    EXPECT_EQ(calls(it.after_backward, Collective::all_gather).count, 0);
    EXPECT_EQ(calls(it.after_backward, Collective::all_reduce), (Calls{1, Bytes{18}}));
    EXPECT_EQ(it.after_backward.model_data_peak.count(), 9 * 6);
  }
  EXPECT_EQ(r.optimizer_state.count(), 9 * 8);
}

// A chunk of 40 elements on two ranks: 80 bytes gathered beside a shard of 40; the shards' masters are 80.
TEST(DevicePeak, CountsCopiesSideBySideAdamAndCreation) {
  const ParameterList parameters = list_of({{"a.w", 40}});
  const GeminiResult r = gemini(kSplit, parameters, {.world_size = 2, .chunk = Elems{40}});
  EXPECT_EQ(r.iterations[0].after_backward.model_data_peak.count(), 80 + 80);
  EXPECT_EQ(r.optimizer_state.count(), 20 * 8);
  EXPECT_EQ(r.device_peak.count(), 80 + 40 + 80 + 160);
  EXPECT_EQ(r.peak_op, "all_gather chunk 0");
  // With all offloaded the fp32 chunk on its way to its shard is the most there ever is: 40 + 20 elements of 4 bytes.
  const GeminiResult offloaded = gemini(
      kSplit, parameters, {.world_size = 2, .chunk = Elems{40}, .offload_optim_frac = 1, .offload_param_frac = 1});
  EXPECT_EQ(offloaded.device_peak.count(), 240);
  EXPECT_EQ(offloaded.peak_op, "cut chunk 0 masters");
}

}  // namespace
}  // namespace shard::like
