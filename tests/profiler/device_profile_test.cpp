// Does `train --profile` on a device join all that the device did to the plan: work to ops, memory to arenas, time to
// names? The emulated device's records stand for CUPTI's: both come the same way.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>

#include "tests/end_to_end/program.h"
#include "traces/profile.h"
#include "traces/reader.h"

namespace shard::profiler {
namespace {

using test::Words;

struct Case {
  std::string name;
  std::string model;
  Words words{};
  std::string device{};  ///< SHARDSCOPE_EMULATED_DEVICE
};

void PrintTo(const Case& of, std::ostream* out) {
  *out << of.name;
}

/// Of two layers, as gpt2-nano has them, and of Llama's kind.
constexpr const char* kLlama = R"({"model_type": "llama", "vocab_size": 256, "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
  "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false, "initializer_range": 0.02})";

class DeviceProfile : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr std::int32_t kRanks = 2;
  static constexpr std::int32_t kSteps = 3;

  void SetUp() override {
    scratch_.write("llama-nano.json", kLlama);
    Words words{"train", "--model", GetParam().model, "--data", "random", "--device", "emulated-cuda"};
    for (const char* const word : {"--ranks", "2", "--steps", "3", "--sequence", "16", "--micro-batch", "1"})
      words.emplace_back(word);
    for (const char* const word : {"--profile", "--trace", "run.sst", "--json"}) words.emplace_back(word);
    words.insert(words.end(), GetParam().words.begin(), GetParam().words.end());
    answer_ = test::json_of(test::shardscope(
        words, {.directory = scratch_.path(), .environment = {{"SHARDSCOPE_EMULATED_DEVICE", GetParam().device}}}));
    Result<Trace> loaded = load(scratch_.path() / "run.sst");
    ASSERT_TRUE(loaded.has_value());
    trace_ = std::move(*loaded);
  }

  test::ScratchDirectory scratch_;
  nlohmann::json answer_;
  Trace trace_;
};

/// The rest is asked of one run of each way to enqueue.
class DeviceProfileOfAWay : public DeviceProfile {};

bool is_work(Activity activity) {
  return activity == Activity::kernel || activity == Activity::copy || activity == Activity::fill ||
         is_collective(activity);
}

TEST_P(DeviceProfile, LeavesNoWorkWithoutItsOp) {
  const nlohmann::json& records = answer_.at("profile").at("records");
  ASSERT_FALSE(records.is_null()) << answer_.at("profile").at("why_not_recorded");
  EXPECT_GT(records.at("device_spans").get<int>(), 100);
  EXPECT_EQ(records.at("device_spans_with_op"), records.at("device_spans"));
  EXPECT_EQ(records.at("device_spans_without_call"), 0);
  EXPECT_EQ(records.at("dropped_events"), 0);
  // Of the trace itself, and within the stretch of the op that it belongs to.
  using Place = std::tuple<Rank, OpId, Phase, std::int32_t>;
  std::map<Place, std::pair<std::int64_t, std::int64_t>> ops;
  std::map<Place, int> parts;
  for (std::size_t i = 0; i < trace_.spans.size(); ++i)
    if (const Span span = trace_.spans[i]; span.activity == Activity::mark)
      ops[{trace_.track_of(span.track).rank, span.op, span.phase, span.step}] = {span.begin_ns,
                                                                                 span.begin_ns + span.duration_ns};
  for (std::size_t i = 0; i < trace_.spans.size(); ++i) {
    const Span span = trace_.spans[i];
    const Track& track = trace_.track_of(span.track);
    if (track.kind != TrackKind::stream || !is_work(span.activity)) continue;
    ASSERT_TRUE(span.op.valid()) << trace_.name_of(span.name);
    const Place place{track.rank, span.op, span.phase, span.step};
    ASSERT_TRUE(ops.contains(place)) << trace_.name_of(span.name);
    EXPECT_LE(ops[place].first, span.begin_ns);
    EXPECT_GE(ops[place].second, span.begin_ns + span.duration_ns);
    ++parts[place];
  }
  EXPECT_EQ(parts.size(), ops.size()) << "an op is as long as what it did";
}

TEST_P(DeviceProfileOfAWay, HasTheSameOpsInEverySteadyStep) {
  std::map<std::pair<Rank, std::int32_t>, std::multiset<std::int32_t>> ops;
  for (std::size_t i = 0; i < trace_.spans.size(); ++i)
    if (const Span span = trace_.spans[i]; span.activity == Activity::mark && span.phase == Phase::steady_step)
      ops[{trace_.track_of(span.track).rank, span.step}].insert(span.op.value);
  ASSERT_EQ(ops.size(), static_cast<std::size_t>(kRanks * (kSteps - 1)));
  for (std::int32_t rank = 0; rank < kRanks; ++rank) EXPECT_EQ((ops[{Rank{rank}, 1}]), (ops[{Rank{rank}, 2}])) << rank;
}

TEST_P(DeviceProfileOfAWay, SeesEachArenaAllocatedToTheByte) {
  std::map<std::pair<int, std::string>, std::int64_t> arenas;
  for (const ArenaSummary& arena : trace_.arenas)
    arenas[{arena.rank.value, to_string(arena.memory)}] = arena.capacity_bytes;
  int seen = 0;
  for (const nlohmann::json& each : answer_.at("profile").at("records").at("allocations")) {
    if (each.at("memory") != "device") continue;
    const std::int64_t arena = arenas.at({each.at("rank").get<int>(), "device"});
    EXPECT_EQ(each.at("largest_bytes"), arena);
    // Beside it a rank has one number on the device, that of the step.
    EXPECT_EQ(each.at("peak_bytes"), arena + 8);
    ++seen;
  }
  EXPECT_EQ(seen, kRanks);
}

TEST_P(DeviceProfileOfAWay, LeavesAtMostAHundredthOfTheStepsUnnamed) {
  for (const nlohmann::json& rank : answer_.at("profile").at("coverage"))
    EXPECT_GE(rank.at("named_seconds").get<double>(), 0.99 * rank.at("step_seconds").get<double>()) << rank;
  EXPECT_EQ(answer_.at("profile").at("coverage").size(), static_cast<std::size_t>(kRanks));
}

TEST_P(DeviceProfileOfAWay, CountsCollectivesAsTheRunDid) {
  const Profile found = profile(trace_);
  std::map<std::pair<Rank, Activity>, std::pair<std::int64_t, std::int64_t>> recorded, told;
  for (const CollectiveUse& use : found.collectives) recorded[{use.place.rank, use.kind}] = {use.count, use.bytes};
  for (const CollectiveTotal& total : trace_.collectives)
    told[{total.rank, activity_of(total.kind)}] = {total.count, total.bytes};
  for (const auto& [key, total] : told) {
    EXPECT_GE(recorded[key].first, total.first) << to_string(key.second);  // the digest's come on top
    EXPECT_GE(recorded[key].second, total.second) << to_string(key.second);
  }
  EXPECT_FALSE(told.empty());
}

const std::vector<Case> kWays{{"Graphs", "gpt2-nano", {"--stage", "3"}},
                              {"WithoutGraphs", "gpt2-nano", {"--stage", "3", "--no-graph"}},
                              {"Offload", "gpt2-nano", {"--stage", "3", "--placement", "host"}},
                              {"OneEach", "gpt2-nano", {"--stage", "2"}, "devices=2"}};

std::vector<Case> all_cases() {
  std::vector<Case> all = kWays;
  for (const char* const model : {"gpt2-nano", "llama-nano.json"})
    for (const char* const stage : {"0", "1", "2", "3"})
      all.push_back({std::string(model).substr(0, 4) + "Stage" + stage, model, {"--stage", stage}});
  all.push_back({"LlamaWithoutGraphs", "llama-nano.json", {"--stage", "1", "--no-graph"}});
  all.push_back({"LlamaOnOneEachWithOwnSums", "llama-nano.json", {"--stage", "3", "--no-reproducible"}, "devices=2"});
  return all;
}

const auto kNamed = [](const auto& of) { return of.param.name; };

INSTANTIATE_TEST_SUITE_P(Runs, DeviceProfile, ::testing::ValuesIn(all_cases()), kNamed);
INSTANTIATE_TEST_SUITE_P(Ways, DeviceProfileOfAWay, ::testing::ValuesIn(kWays), kNamed);

}  // namespace
}  // namespace shard::profiler
