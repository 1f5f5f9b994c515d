// Do a calibration's trainings have every kind of op, and does it make the cluster of the samples that it is given?
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "executor/commands/busy_machine.h"
#include "executor/commands/calibration_cases.h"
#include "executor/commands/calibration_result.h"
#include "executor/commands/calibration_rounds.h"
#include "executor/commands/calibration_run.h"
#include "sim/cluster/read_cluster.h"
#include "sim/cluster/write_cluster.h"
#include "traces/base/output_file.h"

namespace shard::commands {
namespace {

/// A folder with the models' descriptions.
class Models {
 public:
  explicit Models(std::span<const CalibrationModel> models = calibration_models())
      : path_(testing::TempDir() + "calibration_models") {
    std::filesystem::create_directories(path_);
    for (const CalibrationModel& model : models)
      EXPECT_TRUE(write_file(path_ + "/" + model.name + ".json", model.config));
  }
  Models(const Models&) = delete;
  Models& operator=(const Models&) = delete;
  ~Models() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::set<std::string> kinds_of(const CaseRecord& record) {
  std::set<std::string> kinds;
  for (const plan::Plan& plan : record.plans.classes)
    for (const plan::Op& op : plan.find(Phase::steady_step)->ops) kinds.insert(to_string(plan::class_of(op)));
  return kinds;
}

TEST(Cases, OfOneRankAndOfAllCoresHaveEveryKindOfOp) {
  const Models models;
  std::set<std::string> alone;
  std::set<std::string> together;
  for (const CalibrationCase& each : calibration_cases(2, true)) {
    const Result<CaseRecord> record = plan_case(each, models.path());
    ASSERT_TRUE(record) << to_string(record.error());
    (each.ranks == 1 ? alone : together).merge(kinds_of(*record));
  }
  for (const char* kind :
       {"embedding forward", "embedding backward", "add_position backward", "layer_norm backward", "rms_norm backward",
        "linear forward", "linear backward_input", "linear backward_weight", "rotary backward", "attention forward",
        "attention backward", "gelu backward", "swiglu backward", "add forward", "cross_entropy backward",
        "mse backward", "load_batch", "adamw"}) {
    EXPECT_TRUE(alone.contains(kind)) << kind;
    EXPECT_TRUE(together.contains(kind)) << kind;
  }
  for (const char* kind : {"dropout backward", "accumulate", "copy", "inspect", "decide"})
    EXPECT_TRUE(alone.contains(kind)) << kind;
  for (const char* kind : {"all_gather", "reduce_scatter", "all_reduce"}) EXPECT_TRUE(together.contains(kind)) << kind;
}

TEST(Cases, OfAGpuHaveEveryKindOfOpToo) {
  const Models models(device_models(false));
  std::set<std::string> alone;
  std::set<std::string> together;
  for (const CalibrationCase& each : device_cases(false)) {
    const Result<CaseRecord> record = plan_case(each, models.path());
    ASSERT_TRUE(record) << to_string(record.error());
    EXPECT_EQ(record->plans.of_rank(0).target.device, plan::Device::cuda);
    EXPECT_TRUE(each.graphs);
    (each.ranks == 1 ? alone : together).merge(kinds_of(*record));
  }
  for (const char* kind : {"embedding backward",
                           "add_position backward",
                           "layer_norm backward",
                           "rms_norm backward",
                           "linear backward_weight",
                           "rotary backward",
                           "attention backward",
                           "gelu backward",
                           "swiglu backward",
                           "add forward + layer_norm forward",
                           "add forward + rms_norm forward",
                           "cross_entropy backward",
                           "mse backward",
                           "dropout backward",
                           "load_batch",
                           "adamw",
                           "accumulate",
                           "copy",
                           "inspect",
                           "decide"})
    EXPECT_TRUE(alone.contains(kind)) << kind;
  for (const char* kind : {"all_gather", "reduce_scatter", "all_reduce", "linear forward", "adamw", "copy"})
    EXPECT_TRUE(together.contains(kind)) << kind;
}

TEST(Cases, WithoutAWayToStartRanksAllAreOfOneRank) {
  for (const CalibrationCase& each : calibration_cases(4, false)) EXPECT_EQ(each.ranks, 1);
  for (const CalibrationCase& each : calibration_cases(1, true)) EXPECT_EQ(each.ranks * each.threads, 1);
}

TEST(Record, GivesLowerQuartilesOfOpsAndTheMedianStep) {
  const Models models;
  Result<CaseRecord> record = plan_case(calibration_cases(2, true).front(), models.path());
  ASSERT_TRUE(record);
  const plan::Plan& plan = record->plans.of_rank(0);
  const plan::Op& op = plan.find(Phase::steady_step)->ops[2];
  record->op_seconds[{0, op.id.value}] = {4, 3, 2, 1};
  record->step_seconds = {7, 9, 8};
  const std::vector<cost::OpSample> samples = samples_of(*record);
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0].seconds, 2);
  EXPECT_EQ(samples[0].kind, plan::class_of(op));
  const cost::StepSample step = step_of(*record);
  EXPECT_EQ(step.ops, 1);
  EXPECT_EQ(step.busy_seconds, 2);
  EXPECT_EQ(step.seconds, 8);
}

/// Trainings of so many seconds each, on a clock that only they move; how often each ran.
struct Trainings {
  explicit Trainings(std::vector<double> each)
      : seconds(std::move(each)), records(seconds.size()), ran(seconds.size()) {}
  Result<Rounds> run(double allowed) {
    return run_rounds(
        records, {.now = [this] { return now; }, .begin = 0, .end = allowed},
        [this](CaseRecord& record, double left) -> Result<bool> {
          const auto which = static_cast<std::size_t>(&record - records.data());
          now += std::min(seconds[which], left);
          if (seconds[which] > left) return false;
          ++ran[which];
          return true;
        },
        [](double, const std::string&) {});
  }
  std::vector<double> seconds;
  std::vector<CaseRecord> records;
  std::vector<int> ran;
  double now = 0;
};

TEST(Rounds, AreWholeAndAsManyAsFit) {
  Trainings trainings({1, 2, 3});
  const Result<Rounds> rounds = trainings.run(20);
  ASSERT_TRUE(rounds);
  EXPECT_EQ(rounds->whole, 3);
  EXPECT_EQ(rounds->left_out, 0U);
  EXPECT_EQ(trainings.ran, (std::vector<int>{3, 3, 3}));
  EXPECT_EQ(trainings.now, 18);
}

TEST(Rounds, TheFirstEndsWithTheTimeToo) {
  Trainings trainings({2, 2, 2, 2, 2});
  const Result<Rounds> rounds = trainings.run(7);
  ASSERT_TRUE(rounds);
  EXPECT_EQ(rounds->left_out, 2U);
  EXPECT_EQ(trainings.ran, (std::vector<int>{1, 1, 1, 0, 0}));
  EXPECT_LE(trainings.now, 7);
}

TEST(Rounds, ATrainingThatTakesLongerThanAllOthersIsEnded) {
  Trainings trainings({1, 100, 1});
  const Result<Rounds> rounds = trainings.run(10);
  ASSERT_TRUE(rounds);
  EXPECT_EQ(trainings.ran, (std::vector<int>{1, 0, 0}));
  EXPECT_EQ(trainings.now, 10);
}

TEST(Rounds, WithoutTimeForOneAreAnError) {
  const Result<Rounds> rounds = Trainings({5, 1}).run(3);
  ASSERT_FALSE(rounds);
  EXPECT_EQ(rounds.error().code, Errc::retryable);
  EXPECT_EQ(rounds.error().where, "--seconds");
}

cost::OpSample sample(const char* kind, Dtype dtype, plan::OpWork work, double seconds) {
  return {.kind = *plan::op_class(kind), .dtype = dtype, .work = work, .seconds = seconds};
}

/// 10 GFLOP/s alone, and 8 each for two ranks; half of it for attention; 2 GB/s in optimizer steps, 1 in gathers.
std::vector<OccupancySamples> made_up() {
  const auto of = [](std::int32_t ranks, double rate) {
    OccupancySamples o{.ranks = ranks, .threads = 1, .ops = {}, .steps = {}};
    o.ops = {sample("linear forward", Dtype::f32, {.flops = 1e9, .weight_bytes = 1e6, .bytes = 1e6}, 1e9 / rate),
             sample("linear forward", Dtype::bf16, {.flops = 1e9, .weight_bytes = 1e6, .bytes = 1e6}, 2e9 / rate),
             sample("attention forward", Dtype::f32, {.flops = 1e9, .bytes = 1e6}, 2e9 / rate),
             sample("adamw", Dtype::f32, {.flops = 1e6, .bytes = 1e8}, 0.1)};
    if (ranks > 1) o.ops.push_back(sample("all_gather", Dtype::f32, {.bytes = 1e6}, 1e-3));
    return o;
  };
  return {of(1, 10e9), of(2, 8e9)};
}

TEST(ClusterOf, GeneralFiguresAreTheBestThatAllCoresReached) {
  const cluster::Cluster c = cluster_of(made_up(), {.processor = "a processor", .cores = 2, .date = "2026-01-01"});
  EXPECT_EQ(c.cores, 2);
  EXPECT_TRUE(c.ranks_share_device);
  EXPECT_FALSE(c.streams_overlap);
  EXPECT_DOUBLE_EQ(c.peak_fp32.count(), 16e9);
  EXPECT_DOUBLE_EQ(c.peak_bf16->count(), 8e9);
  EXPECT_DOUBLE_EQ(c.attention_efficiency, 0.5);
  EXPECT_DOUBLE_EQ(c.memory_bandwidth.count(), 2e9);
  EXPECT_DOUBLE_EQ(c.intra_host.bus_bandwidth.count(), 1e9);
  EXPECT_NE(c.source.find("a processor"), std::string::npos);
  EXPECT_NE(c.source.find("2026-01-01"), std::string::npos);
  ASSERT_TRUE(c.measured);
  ASSERT_EQ(c.measured->occupancies.size(), 2U);
  EXPECT_EQ(c.measured->occupancies[1].ranks, 2);
  EXPECT_EQ(c.measured->occupancies[1].laws.size(), 5U);
  EXPECT_FALSE(c.measured->method.empty());
}

TEST(ClusterOf, IsAFileThatIsReadBackEqual) {
  const std::string text =
      cluster::to_json(cluster_of(made_up(), {.processor = "a processor", .cores = 2, .date = "2026-01-01"}));
  const Result<cluster::Cluster> back = cluster::parse_cluster(text, "here.json");
  ASSERT_TRUE(back) << to_string(back.error());
  EXPECT_EQ(cluster::to_json(*back), text);
}

/// A GPU of 100 bytes less 30 for context and library; figures that are easy to find again.
DeviceFigures made_up_gpu() {
  return {.facts = {.name = "a GPU",
                    .compute_capability = 90,
                    .multiprocessors = 132,
                    .threads_per_multiprocessor = 2048,
                    .memory = Bytes{100}},
          .devices = 8,
          .memory = Bytes{70},
          .host_memory = Bytes{1000},
          .host_bandwidth = 11,
          .memory_bandwidth = 22,
          .products = {.f32 = 20e9, .tf32 = 40e9, .bf16 = 80e9, .f16 = 60e9},
          .copies = {.latency = 1e-6, .each_way = 33, .both_ways = 44},
          .launches = {.host = 3e-6, .each = 2e-6, .graph = 1e-6},
          .collectives = {.latency = 5e-6, .bandwidth = 55},
          .all = {{"product", 80e9, "flops/s", "the best of three"}}};
}

TEST(ClusterOf, AGpuHasItsOwnFiguresAndTheLawsOfItsOps) {
  std::vector<OccupancySamples> samples = made_up();
  samples[0].ops.push_back(sample("attention forward", Dtype::bf16, {.flops = 1e9, .bytes = 1e6}, 1.0 / 20));
  const cluster::Cluster c = cluster_of(samples, {.processor = "p", .cores = 2, .date = "2026-01-01"}, made_up_gpu());
  EXPECT_EQ(c.name, "calibrated-gpu");
  EXPECT_EQ(c.device, cluster::DeviceKind::cuda);
  EXPECT_EQ(c.devices_per_host, 8);
  EXPECT_EQ(c.device_memory, Bytes{70});
  EXPECT_EQ(c.card->threads_per_multiprocessor, 2048);
  EXPECT_EQ(c.peak_fp32.count(), 20e9);
  EXPECT_EQ(c.peak_tf32->count(), 40e9);
  EXPECT_EQ(c.peak_bf16->count(), 80e9);
  EXPECT_EQ(c.peak_fp16->count(), 60e9);
  EXPECT_DOUBLE_EQ(c.attention_efficiency, 0.25);
  EXPECT_EQ(c.memory_bandwidth.count(), 22);
  EXPECT_EQ(c.host_memory_bandwidth->count(), 11);
  EXPECT_EQ(c.host_link->bandwidth.count(), 33);
  EXPECT_EQ(c.launch.count(), 1e-6);
  EXPECT_EQ(c.intra_host.bus_bandwidth.count(), 55);
  EXPECT_EQ(c.measured->occupancies.size(), 2U);
  EXPECT_EQ(c.measured->figures.front().method, "the best of three");
  EXPECT_EQ(c.source.find("mean nothing"), std::string::npos);
  const Result<cluster::Cluster> back = cluster::parse_cluster(cluster::to_json(c), "gpu.json");
  ASSERT_TRUE(back) << to_string(back.error());
  EXPECT_EQ(cluster::to_json(*back), cluster::to_json(c));
}

TEST(LikelyError, HoldsForFourOfFiveStepsAndIsNeverLessThanDaysDifferBy) {
  CalibrationResult result{};
  const auto of = [&](std::vector<double> predicted) {
    result.steps.clear();
    for (const double seconds : predicted) result.steps.push_back({"model", "", seconds, 1.0});
    return likely_error(result);
  };
  EXPECT_DOUBLE_EQ(of({1, 1, 1, 1, 1}), 0.1);
  EXPECT_NEAR(of({1.2, 1.2, 1.2, 1.2, 1.2, 1.2, 1.2, 1.2, 1.2, 3}), 0.2, 1e-12);
  EXPECT_NEAR(of({0.5, 0.5, 0.5, 0.5, 0.5}), 1, 1e-12) << "half of what it took is as far off as twice";
  EXPECT_DOUBLE_EQ(of({}), 1) << "nothing was compared";
}

TEST(ProcessorTime, OfThisProcessIsPartOfWhatItsCoresDid) {
  const ProcessorTime time;
  constexpr double kSeconds = 0.2, kTicks = 0.1;  // of every core one may be counted late
  volatile double x = 1;
  while (time.of_this_process() < kSeconds) x = x * 1.0000001;
  EXPECT_GE(time.passed(), kSeconds / cores_here());
  EXPECT_GE(time.of_cores_here(), kSeconds - kTicks);
}

TEST(ProcessorTime, WhatIsNotOwnIsOfOthers) {
  const ProcessorTime time;
  volatile double x = 1;
  while (time.of_this_process() < 0.2) x = x * 1.0000001;
  const double all = time.of_cores_here();
  EXPECT_EQ(time.cores_of_others(all + 100), 0) << "never less than none";
  EXPECT_GE(time.cores_of_others(0), all / time.passed() * 0.9);
}

TEST(Answer, HasTheKeysOfTheDocument) {
  const CalibrationResult result{
      .cluster = cluster_of(made_up(), {.processor = "a processor", .cores = 2, .date = "2026-01-01"}),
      .steps = {{"narrow", "--ranks 1", 1.1, 1.0}, {"wide", "--ranks 2", 0.5, 1.0}, {"middle", "", 1.0, 1.0}},
      .seconds = 12,
      .repetitions = 3,
      .left_out = 2};
  const nlohmann::ordered_json j = to_json(result, "here.json");
  std::vector<std::string> keys;
  for (const auto& item : j.items()) keys.push_back(item.key());
  EXPECT_EQ(keys, (std::vector<std::string>{"schema_version", "command", "device", "file", "cores",
                                            "calibration_seconds", "busy_cores", "repetitions", "left_out",
                                            "step_error", "steps", "laws", "figures"}));
  EXPECT_NEAR(j["step_error"]["median"].get<double>(), 0.1, 1e-12);
  EXPECT_NEAR(j["step_error"]["worst"].get<double>(), 0.5, 1e-12);
  EXPECT_EQ(j["laws"].size(), 9U);
  const std::string text = to_text(result, "here.json");
  EXPECT_NE(text.find("median error 10.0 %, worst 50.0 % of 3"), std::string::npos) << text;
  EXPECT_NE(text.find("here.json"), std::string::npos);
  EXPECT_NE(text.find("no time for 2 of 5 trainings"), std::string::npos) << text;
}

}  // namespace
}  // namespace shard::commands
