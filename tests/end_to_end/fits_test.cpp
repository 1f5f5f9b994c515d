// Does `shardscope simulate` say that a run fits exactly when `shardscope train` runs it?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/end_to_end/program.h"

namespace shard::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// The same run, predicted and real.
json simulated(const Words& strategy, int exit_code) {
  return json_of(shardscope(with({"simulate", "--json"}, strategy)), exit_code);
}
Outcome trained(const Words& strategy) {
  return shardscope(with({"train", "--json", "--data", "random", "--steps", "2"}, strategy));
}

struct Case {
  const char* name;
  Words strategy;
};

void PrintTo(const Case& each, std::ostream* out) {
  *out << each.name;
}

std::vector<Case> cases() {
  const Words nano{"--model", "gpt2-nano", "--sequence", "8"};
  return {
      {"OneRankOnTheDevice", nano},
      {"GradientsAndStateInHostMemory",
       with(nano, {"--world-size", "2", "--stage", "2", "--grad-placement", "host", "--optimizer-placement", "0.5"})},
      {"EverythingInHostMemory", with(nano, {"--world-size", "2", "--stage", "3", "--placement", "host"})},
      {"StateOnDisk", with(nano, {"--precision", "bf16", "--optimizer-placement", "disk", "--disk-path", "/tmp"})},
  };
}

class Fits : public testing::TestWithParam<Case> {};

std::int64_t measured(const json& run, const std::string& memory) {
  std::int64_t largest = 0;
  std::int64_t sum = 0;
  for (const json& arena : run["arenas"])
    if (arena["memory"] == memory) {
      EXPECT_EQ(arena["predicted_peak_bytes"], arena["measured_peak_bytes"]);
      largest = std::max(largest, arena["measured_peak_bytes"].get<std::int64_t>());
      sum += arena["measured_peak_bytes"].get<std::int64_t>();
    }
  return memory == "device" ? largest : sum;
}

/// Capacities around the peak, of one memory.
void expect_fits_iff_runs(const Words& strategy, const std::string& memory, std::int64_t peak) {
  for (const std::int64_t off : {-peak / 2, -1L, 0L, 4096L}) {
    const std::int64_t capacity = peak + off;
    SCOPED_TRACE(memory + " capacity " + std::to_string(capacity) + " of " + std::to_string(peak));
    const Words limited = with(strategy, {"--" + memory + "-capacity", std::to_string(capacity)});
    const bool fits = capacity >= peak;
    const json answer = simulated(limited, fits ? 0 : 3);
    EXPECT_EQ(answer["fits"], fits);
    const Outcome run = trained(limited);
    ASSERT_EQ(run.exit_code, fits ? 0 : 3) << run.err;
    if (fits) {
      EXPECT_LE(measured(json_of(run), memory), capacity);
      continue;
    }
    EXPECT_EQ(json_of(run, 3)["fits"], false);
    EXPECT_EQ(json_of(run, 3)["largest_holders"], answer["largest_holders"]);
    EXPECT_EQ(json_of(run, 3)["smallest_change"], answer["smallest_change"]);
    EXPECT_THAT(run.err, Not(HasSubstr("step 1/")));
    EXPECT_THAT(run.err, HasSubstr(std::to_string(capacity) + " are allowed"));
    EXPECT_EQ(answer["peak_memory"], memory);
    EXPECT_FALSE(answer["largest_holders"].empty());
    EXPECT_LE(answer["largest_holders"].size(), 5u);
    for (const json& holder : answer["largest_holders"])
      EXPECT_THAT(run.err, HasSubstr("  " + holder["name"].get<std::string>() + "\n"));
  }
}

TEST_P(Fits, ExactlyWhenItRuns) {
  const Words& strategy = GetParam().strategy;
  const json free = simulated(strategy, 0);
  expect_fits_iff_runs(strategy, "device", free["peak_device_bytes"]);
  const std::int64_t host = free["peak_host_bytes"];
  if (host > 0) expect_fits_iff_runs(strategy, "host", host);
}

TEST_P(Fits, TheChangeThatIsNamedFits) {
  const Words& strategy = GetParam().strategy;
  const json free = simulated(strategy, 0);
  for (const char* memory : {"device", "host"}) {
    const std::int64_t peak = free["peak_" + std::string(memory) + "_bytes"];
    if (peak == 0) continue;
    const Words capacity{"--" + std::string(memory) + "-capacity", std::to_string(peak - 1)};
    const json short_of = simulated(with(strategy, capacity), 3);
    ASSERT_TRUE(short_of["smallest_change"].is_object()) << memory;
    const Outcome refused = trained(with(strategy, capacity));
    const std::string options = short_of["smallest_change"]["options"];
    EXPECT_THAT(refused.err, HasSubstr("try: " + options));
    // An option that is given twice is not accepted: the change takes the place of the old one.
    Words changed = strategy;
    const std::string leave = ", and leave ";
    const std::size_t without = options.find(leave);
    if (without != std::string::npos) {
      const std::size_t name = without + leave.size();
      const auto old = std::ranges::find(changed, options.substr(name, options.find(' ', name) - name));
      ASSERT_NE(old, changed.end()) << options;
      changed.erase(old, old + 2);
    }
    std::istringstream words(options.substr(0, without));
    for (std::string word; words >> word;) {
      if (const auto old = std::ranges::find(changed, word); old != changed.end()) changed.erase(old, old + 2);
      changed.push_back(word);
      words >> word;
      changed.push_back(word == "DIR" ? "/tmp" : word);
    }
    const Outcome run = trained(with(changed, capacity));
    EXPECT_EQ(run.exit_code, 0) << options << '\n' << run.err;
    if (run.exit_code == 0) {
      EXPECT_LT(measured(json_of(run), memory), peak) << options;
    }
  }
}

/// Where the capacity decides what rests on the device, a run fits as soon as it does with everything in host memory.
TEST(FitsAutomatically, ExactlyWhenItRuns) {
  const Words strategy{"--model", "gpt2-nano", "--sequence", "8", "--world-size", "2", "--stage", "2"};
  const std::int64_t least = simulated(with(strategy, {"--placement", "host"}), 0)["peak_device_bytes"];
  const std::int64_t most = simulated(strategy, 0)["peak_device_bytes"];
  for (const std::int64_t capacity : {least - 1, least, (least + most) / 2, most}) {
    SCOPED_TRACE("capacity " + std::to_string(capacity));
    const Words limited = with(strategy, {"--placement", "auto", "--device-capacity", std::to_string(capacity)});
    const bool fits = capacity >= least;
    EXPECT_EQ(simulated(limited, fits ? 0 : 3)["fits"], fits);
    const Outcome run = trained(limited);
    ASSERT_EQ(run.exit_code, fits ? 0 : 3) << run.err;
    if (fits) {
      EXPECT_LE(measured(json_of(run), "device"), capacity);
    }
  }
}

TEST(FitsAutomatically, FromAMeasuredRun) {
  const ScratchDirectory scratch;
  const Words strategy{"train", "--json",  "--data",    "random",     "--steps",
                       "2",     "--model", "gpt2-nano", "--sequence", "8"};
  const json first =
      json_of(shardscope(with(strategy, {"--placement", "host", "--trace", "a.sst"}), {.directory = scratch.path()}));
  const std::int64_t capacity = 2 * measured(first, "device");
  const Words again = with(strategy, {"--placement", "auto", "--device-capacity", std::to_string(capacity),
                                      "--from-trace", "a.sst", "--trace", "b.sst"});
  const json second = json_of(shardscope(again, {.directory = scratch.path()}));
  EXPECT_EQ(second["state_sha256"], first["state_sha256"]);
  EXPECT_LE(measured(second, "device"), capacity);
  EXPECT_GT(measured(second, "device"), measured(first, "device"));
  EXPECT_LT(measured(second, "host"), measured(first, "host"));
  // The plan made again is known by the one it was made from.
  EXPECT_EQ(shardscope({"compare", "a.sst", "b.sst"}, {.directory = scratch.path()}).exit_code, 0);
}

INSTANTIATE_TEST_SUITE_P(Runs, Fits, testing::ValuesIn(cases()),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace shard::test
