// Do a calibration's trainings have every kind of op, and does it make the cluster of the samples that it is given?
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

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
  Models() : path_(testing::TempDir() + "calibration_models") {
    std::filesystem::create_directories(path_);
    for (const CalibrationModel& model : calibration_models())
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

TEST(Answer, HasTheKeysOfTheReadme) {
  const CalibrationResult result{
      .cluster = cluster_of(made_up(), {.processor = "a processor", .cores = 2, .date = "2026-01-01"}),
      .steps = {{"narrow", "--ranks 1", 1.1, 1.0}, {"wide", "--ranks 2", 0.5, 1.0}, {"middle", "", 1.0, 1.0}},
      .seconds = 12,
      .repetitions = 3,
      .left_out = 2};
  const nlohmann::ordered_json j = to_json(result, "here.json");
  std::vector<std::string> keys;
  for (const auto& item : j.items()) keys.push_back(item.key());
  EXPECT_EQ(keys, (std::vector<std::string>{"schema_version", "command", "file", "cores", "calibration_seconds",
                                            "repetitions", "left_out", "step_error", "steps", "laws"}));
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
