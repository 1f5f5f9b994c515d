// Is the JSON of a search read to the value, and is the Pareto front the set of points that nothing beats?
#include "viewer/index/search_result.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/viewer_index/random_trace.h"

namespace shard::view {
namespace {

using testing::pick;
using testing::Random;

const std::string kFile = std::string(TEST_DATA) + "/viewer_index/gpt2_search.json";

std::string text_of_file() {
  std::ostringstream text;
  text << std::ifstream(kFile).rdbuf();
  return text.str();
}

TEST(SearchResult, ReadsWhatTheSearchWrites) {
  const Result<SearchResult> result = load_search_result(kFile);
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(result->rule, "exact");
  EXPECT_EQ(result->world_size, 4);
  EXPECT_EQ(result->total_elements, 124'439'808);
  EXPECT_EQ(result->answer.chunk_elements, 62'418'432);
  EXPECT_EQ(result->answer.waste_elements, 397'056);
  ASSERT_FALSE(result->points.empty());
  EXPECT_EQ(result->points[0].chunk_elements, 33'554'432);
  EXPECT_EQ(result->points[0].peak_device_bytes, 1'660'676'160);
  EXPECT_DOUBLE_EQ(result->points[0].step_seconds.value(), 31.585402274666503);
  EXPECT_TRUE(result->answer.peak_device_bytes.has_value());
  EXPECT_FALSE(result->pareto.empty());
  EXPECT_NEAR(result->waste_share(result->answer), 397056.0 / (124439808.0 + 397056.0), 1e-12);
}

// Chunks of different sizes are no point of the curve, even where their largest has the size of one.
TEST(SearchResult, AVariableAnswerTakesNothingFromThePointOfItsLargestChunk) {
  const char* const kCurve = R"("curve": [{"chunk_elements": 8, "chunk_count": 3, "waste_elements": 5,
      "peak_device_bytes": 100, "step_seconds": 2.0}])";
  const auto parsed = [&](const std::string& more) {
    Result<SearchResult> result = parse_search_result("{" + more + ", " + kCurve + "}");
    EXPECT_TRUE(result) << to_string(result.error());
    return result ? std::move(*result) : SearchResult{};
  };
  const std::string chunk = R"({"chunk_elements": 8, "chunk_count": 2, "waste_elements": 0)";
  const SearchResult asked = parsed(R"("rule": "variable", "chunk": )" + chunk + "}");
  EXPECT_TRUE(asked.answer_is_variable());
  ASSERT_TRUE(asked.variable);
  EXPECT_EQ(asked.variable->chunk_count, 2);
  EXPECT_FALSE(asked.answer.peak_device_bytes);
  EXPECT_FALSE(asked.variable->step_seconds);
  const SearchResult forecast =
      parsed(R"("rule": "variable", "chunk": )" + chunk + R"(, "peak_device_bytes": 90, "step_seconds": 1.5})");
  EXPECT_EQ(forecast.variable->peak_device_bytes, 90);
  EXPECT_EQ(forecast.answer.step_seconds, 1.5);

  // Beside another rule's answer, to compare.
  const SearchResult beside = parsed(R"("rule": "exact", "chunk": {"chunk_elements": 8, "chunk_count": 3},
      "rules": {"exact": {"chunk_elements": 9, "chunk_count": 9}, "variable": )" +
                                     chunk + R"(, "peak_device_bytes": 90}})");
  EXPECT_FALSE(beside.answer_is_variable());
  EXPECT_EQ(beside.answer.chunk_elements, 8);
  EXPECT_EQ(beside.answer.peak_device_bytes, 100);
  ASSERT_TRUE(beside.variable);
  EXPECT_EQ(beside.variable->chunk_count, 2);
  EXPECT_EQ(beside.variable->peak_device_bytes, 90);
  EXPECT_FALSE(parsed(R"("rules": {"variable": {"error": "none"}})").variable);
  EXPECT_FALSE(parse_search_result(
      std::string(R"({"rules": {"variable": {"chunk_count": 1, "waste_elements": -1}}, )") + kCurve + "}"));
}

TEST(SearchResult, TruncationsAreRefused) {
  const std::string text = text_of_file();
  for (std::size_t size = 0; size + 2 < text.size(); size += 11) {
    const Result<SearchResult> result = parse_search_result(std::string_view(text).substr(0, size));
    ASSERT_FALSE(result) << size;
    ASSERT_EQ(result.error().code, Errc::malformed);
  }
}

TEST(SearchResult, RefusesWhatIsNoSearchWithTheReason) {
  for (const char* text : {"", "[]", "3", "{}", "{\"schema_version\": 2, \"curve\": []}",
                           "{\"curve\": [{\"chunk_elements\": -1}]}", "{\"curve\": 3}"}) {
    const Result<SearchResult> result = parse_search_result(text, "here");
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, Errc::malformed) << text;
    EXPECT_NE(result.error().where.find("here"), std::string::npos);
    EXPECT_FALSE(result.error().what.empty());
  }
  EXPECT_EQ(load_search_result("/nowhere/at/all.json").error().code, Errc::no_input);
  EXPECT_EQ(load_search_result("/").error().code, Errc::no_input);
}

TEST(Pareto, FrontIsWhatNothingBeats) {
  Random random(1);
  for (int n = 0; n < 300; ++n) {
    std::vector<SearchPoint> points(static_cast<std::size_t>(pick(random, 0, 40)));
    const bool forecast = n % 3 != 0;
    for (SearchPoint& point : points) {
      point.waste_elements = pick(random, 0, 8);
      if (forecast) point.peak_device_bytes = pick(random, 0, 8);
      if (forecast) point.step_seconds = static_cast<double>(pick(random, 0, 8));
    }
    std::vector<std::size_t> expected;
    for (std::size_t i = 0; i < points.size(); ++i) {
      bool beaten = false;
      for (const SearchPoint& other : points) {
        const SearchPoint& mine = points[i];
        const bool no_worse = other.waste_elements <= mine.waste_elements &&
                              other.peak_device_bytes.value_or(0) <= mine.peak_device_bytes.value_or(0) &&
                              other.step_seconds.value_or(0) <= mine.step_seconds.value_or(0);
        const bool better = other.waste_elements < mine.waste_elements ||
                            other.peak_device_bytes.value_or(0) < mine.peak_device_bytes.value_or(0) ||
                            other.step_seconds.value_or(0) < mine.step_seconds.value_or(0);
        beaten = beaten || (no_worse && better);
      }
      if (!beaten) expected.push_back(i);
    }
    ASSERT_EQ(pareto_front(points), expected);
  }
}

}  // namespace
}  // namespace shard::view
