// Which recorded durations stand in for which laws: of recordings without shapes, of nsys and of our own traces?
#include "profiler/steptime/match.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "profiler/steptime/forecast.h"
#include "profiler/steptime/read_recording.h"
#include "sim/cluster/read_cluster.h"

namespace shard::steptime {
namespace {

using import::KinetoKernel;
using import::KinetoOperator;
using import::KinetoProgram;

using ::testing::HasSubstr;

/// A kernel that the step launches.
struct Launch {
  std::string name;
  std::int64_t blocks = 0;
};

constexpr const char *kAdd = "at::native::add", *kNorm = "at::native::norm", *kProduct = "";

/// One step; of a product `blocks` is the size.
WorkList work_of(const std::vector<Launch>& launches) {
  std::string text = std::string(standin::kWorkHeader) + "\n";
  std::int64_t time = 0;
  for (const Launch& each : launches) {
    const std::string begin = "\t" + std::to_string(time += 10) + "\t1\t0\t0\t", n = std::to_string(each.blocks);
    text += each.name == kProduct ? "p" + begin + n + "\t" + n + "\t" + n + "\t1\t14\t14\t14\t68\tcublasGemmEx\n"
                                  : "k" + begin + n + "\t1\t1\t128\t1\t1\t" + each.name + "\n";
  }
  return *parse_work(text + "s\t" + std::to_string(time + 10) + "\t1\t0\t0\t1\n", "test");
}

/// A kernel that was recorded: `blocks` 0 where grids are not known.
struct Ran {
  std::string name;
  std::int64_t blocks = 0, ns = 0;
};

KinetoProgram recording_of(const std::vector<Ran>& kernels) {
  KinetoProgram made;
  std::int64_t time = 0;
  for (const Ran& each : kernels) {
    KinetoKernel kernel;
    kernel.name = each.name, kernel.category = "kernel";
    kernel.begin_ns = time += 1'000'000, kernel.duration_ns = each.ns;
    if (each.blocks > 0) kernel.grid = {each.blocks, 1, 1}, kernel.block = {128, 1, 1};
    made.kernels.push_back(kernel);
  }
  return made;
}

Result<Forecast> step_of(const std::vector<Launch>& launches, const KinetoProgram* recording) {
  static const cluster::Cluster card = *cluster::read_cluster("a100-80gb-x8");
  std::optional<Recorded> recorded;
  if (recording != nullptr) recorded.emplace(*recording, "run.json");
  return forecast(work_of(launches), {}, {.cluster = &card, .recorded = recorded ? &*recorded : nullptr});
}

double took(const Forecast& forecast, std::size_t i) {
  return (forecast.shown[i].end - forecast.shown[i].begin).count();
}
double share(const Forecast& forecast, FoundBy by) {
  return forecast.recorded_by[static_cast<std::size_t>(by)];
}

const std::vector<Launch> kStep{{kAdd, 4096}, {kProduct, 2048}, {kNorm, 512}, {kAdd, 1024}};

/// The step's own timeline, as that would be recorded where products have other names.
std::vector<Ran> timeline(std::int64_t times) {
  std::vector<Ran> ran;
  const Result<Forecast> laws = step_of(kStep, nullptr);
  for (std::size_t i = 0; i < kStep.size(); ++i)
    ran.push_back({.name = kStep[i].name == kProduct ? "sm80_xmma_gemm" : "void " + kStep[i].name + "(int)",
                   .blocks = kStep[i].blocks,
                   .ns = times * std::llround(took(*laws, i) * 1e9)});
  return ran;
}

TEST(Match, TwiceTheRunsOwnTimelineTakesTwiceAsLong) {
  const KinetoProgram twice = recording_of(timeline(2));
  const Result<Forecast> laws = step_of(kStep, nullptr), f = step_of(kStep, &twice);
  ASSERT_TRUE(f) << f.error().what;
  const double between = took(*f, 0) - 2 * took(*laws, 0);  // from kernel to kernel, which is no kernel's
  for (std::size_t i = 0; i < kStep.size(); ++i) EXPECT_NEAR(took(*f, i) - between, 2 * took(*laws, i), 3e-9) << i;
  EXPECT_DOUBLE_EQ(f->recorded, 1);
  EXPECT_TRUE(f->not_recorded.empty());
  EXPECT_GT(share(*f, FoundBy::place), 0);
  EXPECT_NEAR(share(*f, FoundBy::place) + share(*f, FoundBy::launch), 1, 1e-12);
}

TEST(Match, KernelThatIsNotRecordedKeepsItsLaw) {
  const KinetoProgram adds = recording_of({{kAdd, 4096, 9'000'000}, {kAdd, 1024, 5'000'000}});
  const Result<Forecast> laws = step_of(kStep, nullptr), f = step_of(kStep, &adds);
  ASSERT_TRUE(f) << f.error().what;
  EXPECT_NEAR(took(*f, 1), took(*laws, 1), 1e-12);
  EXPECT_NEAR(took(*f, 2), took(*laws, 2), 1e-12);
  EXPECT_NEAR(took(*f, 0) - took(*f, 3), 4e-3, 1e-9);
  ASSERT_EQ(f->not_recorded.size(), 2u);
  EXPECT_EQ(f->not_recorded[0].kind, Work::product);
  EXPECT_EQ(f->not_recorded[1].kind, Work::kernel);
  EXPECT_LT(f->recorded, 1);
}

TEST(Match, OrderOfCallsDoesNotMatterWhereGridsAreKnown) {
  std::vector<Ran> kernels{{kAdd, 4096, 9000}, {kNorm, 512, 5000}, {kAdd, 1024, 2000}, {kAdd, 4096, 7000}};
  const KinetoProgram forwards = recording_of(kernels);
  std::ranges::reverse(kernels);
  const KinetoProgram backwards = recording_of(kernels);
  const Result<Forecast> a = step_of(kStep, &forwards), b = step_of(kStep, &backwards);
  ASSERT_TRUE(a && b);
  for (std::size_t i = 0; i < kStep.size(); ++i) EXPECT_DOUBLE_EQ(took(*a, i), took(*b, i));
}

TEST(Match, ProductBetweenOtherKernelsKeepsItsLaw) {
  // PyTorch's own kernel is no product, whatever its place.
  const KinetoProgram other =
      recording_of({{kAdd, 4096, 9000}, {"at::native::softmax", 7, 5'000'000}, {kNorm, 512, 2000}});
  // Two kernels are no one product.
  const KinetoProgram more =
      recording_of({{kAdd, 4096, 9000}, {"gemm", 7, 5'000'000}, {"gemm", 7, 5'000'000}, {kNorm, 512, 2000}});
  for (const KinetoProgram* const each : {&other, &more})
    EXPECT_NEAR(took(*step_of(kStep, each), 1), took(*step_of(kStep, nullptr), 1), 1e-12);
}

TEST(Match, WhatEndsAProductBelongsToIt) {
  for (const char* end : {"cublasLt::splitKreduce_kernel", "void epilogue::impl::globalKernel<float, true>(int)"}) {
    const KinetoProgram parts =
        recording_of({{kAdd, 4096, 9000}, {"gemm", 7, 4'000'000}, {end, 7, 1'000'000}, {kNorm, 512, 2000}});
    EXPECT_NEAR(took(*step_of(kStep, &parts), 1), 5e-3, 5e-6) << end;
  }
}

TEST(Match, CallsThatDifferWidenTheInterval) {
  const KinetoProgram even = recording_of({{kAdd, 4096, 5'000'000}, {kAdd, 4096, 5'000'000}}),
                      uneven = recording_of({{kAdd, 4096, 1'000'000}, {kAdd, 4096, 9'000'000}});
  const Result<Forecast> a = step_of(kStep, &even), b = step_of(kStep, &uneven);
  ASSERT_TRUE(a && b);
  EXPECT_DOUBLE_EQ(a->seconds.count(), b->seconds.count());
  EXPECT_LT(a->high.count() * 1.3, b->high.count());
}

TEST(Match, ProductsInPlacesThatLookAlikeAreNotMixed) {
  const std::vector<Launch> step{{kAdd, 9}, {kProduct, 2048}, {kNorm, 9}, {kAdd, 9}, {kProduct, 512}, {kNorm, 9}};
  const KinetoProgram recording = recording_of({{kAdd, 9, 5000}, {"gemm", 7, 5'000'000}, {kNorm, 9, 5000}});
  EXPECT_NEAR(took(*step_of(step, &recording), 1), took(*step_of(step, nullptr), 1), 1e-12);
}

TEST(Match, WithoutGridsTheNameAndItsTurnTell) {
  std::vector<Ran> kernels;
  for (int step = 0; step < 3; ++step)
    for (const auto& [name, ns] : {std::pair(kAdd, 9000), {kNorm, 4000}, {kAdd, 3000}})
      kernels.push_back({.name = name, .blocks = 0, .ns = ns + 100 * (step - 1)});
  const KinetoProgram recording = recording_of(kernels);
  const Result<Forecast> f = step_of(kStep, &recording);
  ASSERT_TRUE(f) << f.error().what;
  EXPECT_NEAR(took(*f, 0) - took(*f, 3), 6e-6, 1e-10);
  EXPECT_NEAR(took(*f, 2) - took(*f, 3), 1e-6, 1e-10);
  EXPECT_GT(share(*f, FoundBy::name), 0);
}

TEST(Match, WithoutGridsAndWithOtherCountsANameKeepsItsLaw) {
  // Three additions of two sizes a step are never five.
  std::vector<Ran> kernels{{kNorm, 0, 4000}, {kNorm, 0, 4000}};
  for (int i = 0; i < 5; ++i) kernels.push_back({.name = kAdd, .blocks = 0, .ns = 9'000'000});
  const KinetoProgram recording = recording_of(kernels);
  const Result<Forecast> f = step_of(kStep, &recording), laws = step_of(kStep, nullptr);
  EXPECT_NEAR(took(*f, 0), took(*laws, 0), 1e-12);
  EXPECT_NEAR(took(*f, 3), took(*laws, 3), 1e-12);
}

TEST(Match, RecordingOfAnotherProgramIsAnErrorThatSaysBothSides) {
  const KinetoProgram other = recording_of({{"void simulate_fluid<4>(int)", 77, 1000}});
  const Result<Forecast> f = step_of(kStep, &other);
  ASSERT_FALSE(f);
  EXPECT_EQ(f.error().code, Errc::contradiction);
  EXPECT_EQ(f.error().where, "run.json");
  EXPECT_THAT(f.error().what, HasSubstr("'at::native::add' (grid 4096x1x1, block 128x1x1)"));
  EXPECT_THAT(f.error().what, HasSubstr("'void simulate_fluid<4>(int)' (grid 77x1x1, block 128x1x1)"));
}

/// An addition of so many rows between 5 and 45.
KinetoOperator operator_of(std::int64_t rows, bool typed) {
  KinetoOperator made;
  made.name = "aten::mm", made.begin_ns = 5, made.end_ns = 45, made.thread = 1;
  made.inputs.push_back({.sizes = {rows, 64}, .strides = {}, .type = typed ? "float" : "", .argument = 0});
  return made;
}

TEST(Match, OperatorsOfRangesFindProductsBySizes) {
  static const cluster::Cluster card = *cluster::read_cluster("a100-80gb-x8");
  KinetoProgram recording = recording_of({{"sm80_gemm", 7, 5'000'000}}), program;
  recording.operators = {operator_of(32, false)};
  recording.calls = {{.begin_ns = 10, .thread = 1, .correlation = 3}};
  recording.kernels[0].correlation = 3;
  const Recorded recorded(recording);
  for (const std::int64_t rows : {32, 33}) {
    program.operators = {operator_of(rows, true)};
    const Result<Forecast> f = forecast(work_of({{kProduct, 64}}), program, {.cluster = &card, .recorded = &recorded});
    EXPECT_EQ(static_cast<bool>(f), rows == 32);
    if (!f) continue;
    EXPECT_NEAR(took(*f, 0), 5e-3, 5e-6);
    EXPECT_DOUBLE_EQ(share(*f, FoundBy::sizes), 1);
  }
}

TEST(Match, OfAnOperatorOfRangesAProductTakesWhatItsKernelsLeave) {
  static const cluster::Cluster card = *cluster::read_cluster("a100-80gb-x8");
  KinetoProgram recording = recording_of({{kAdd, 40, 1'000'000}, {"sm80_gemm", 7, 5'000'000}}), program;
  recording.operators = {operator_of(32, false)};
  for (std::int64_t i = 0; i < 2; ++i) {
    recording.calls.push_back({.begin_ns = 10 + i, .thread = 1, .correlation = i});
    recording.kernels[static_cast<std::size_t>(i)].correlation = i;
  }
  const Recorded recorded(recording);
  program.operators = {operator_of(32, true)};
  const Result<Forecast> f =
      forecast(work_of({{kAdd, 40}, {kProduct, 64}}), program, {.cluster = &card, .recorded = &recorded});
  ASSERT_TRUE(f) << f.error().what;
  EXPECT_NEAR(took(*f, 0), 1e-3, 5e-6);
  EXPECT_NEAR(took(*f, 1), 5e-3, 5e-6);
}

}  // namespace
}  // namespace shard::steptime
