// Does the whole search hang together: defaults, comparison, curve, JSON, text, and errors that name their options?
#include "sim/search/chunk_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "sim/chunk/layout.h"
#include "sim/search/chunk_search_json.h"
#include "sim/search/chunk_search_text.h"
#include "sim/search/outlier_filter.h"
#include "tests/search/models.h"

namespace shard::testing {
namespace {

using ::testing::HasSubstr;

ChunkSearchOptions on_ranks(std::int64_t world_size, ChunkRule rule = ChunkRule::exact) {
  ChunkSearchOptions options;
  options.rule = rule;
  options.world_size = world_size;
  return options;
}

ChunkSearchResult search(const ParameterList& list, const ChunkSearchOptions& options) {
  Result<ChunkSearchResult> result = search_chunks(list, options);
  EXPECT_TRUE(result) << to_string(result.error());
  return *result;
}

TEST(ChunkSearch, TheAnswersLayoutIsTheOneThatIsBuilt) {
  for (const char* name : {"gpt2", "t5-large", "huge-emb-tiny", "awkward-17m"}) {
    const ParameterList& list = oracle_model(name);
    const ChunkSearchResult result = search(list, on_ranks(8));
    for (const Result<RuleAnswer>& answer : result.rules) {
      ASSERT_TRUE(answer);
      const Oversize oversize = answer->rule == ChunkRule::gemini_v019 ? Oversize::exact : Oversize::round_up;
      const ChunkLayout layout = answer->rule == ChunkRule::variable ? layout_variable(list, answer->chunk_starts, 8)
                                                                     : layout_uniform(list, answer->chunk, 8, oversize);
      EXPECT_EQ(layout.waste, answer->waste) << name << ' ' << to_string(answer->rule);
      EXPECT_EQ(static_cast<std::int64_t>(layout.chunks.size()), answer->chunk_count);
    }
  }
}

TEST(ChunkSearch, TheWinnerIsTheLowestPointOfTheCurve) {
  for (const char* name : {"gpt2", "bert-large", "opt-1.3b", "mlp-20x2000"}) {
    const ChunkSearchResult result = search(oracle_model(name), on_ranks(4));
    bool on_curve = false;
    Elems before;
    for (const ForecastCurvePoint& at : result.curve) {
      EXPECT_GT(at.point.chunk, before);
      before = at.point.chunk;
      EXPECT_GE(at.point.waste, result.answer.waste);
      on_curve = on_curve || at.point.chunk == result.answer.chunk;
    }
    EXPECT_TRUE(on_curve) << name;
  }
}

TEST(ChunkSearch, ExactNeverWastesMoreThanGeminiWithTheDefaults) {
  // A range whose end no candidate's alignment stays within: the default maximum is rounded up as well.
  ChunkSearchOptions options = on_ranks(7);
  options.search_interval = Elems{999};
  for (const char* name : {"gpt2", "gpt2-xl", "llama-7b", "t5-large", "opt-1.3b", "mlp-20x2000"}) {
    const ChunkSearchResult result = search(oracle_model(name), options);
    EXPECT_LE(result.rules[0]->waste, result.rules[1]->waste) << name;
  }
}

TEST(ChunkSearch, AModelBelowTheMinimumIsOneChunk) {
  const ChunkSearchResult result = search(oracle_model("tiny-2m"), on_ranks(3));
  EXPECT_EQ(result.answer.chunk, Elems{2002002});  // 2,002,000 rounded up to the world size
  EXPECT_EQ(result.answer.chunk_count, 1);
  EXPECT_EQ(result.answer.waste, Elems{2});
  EXPECT_TRUE(result.answer.keep_gathered);
  EXPECT_EQ(result.rules[1]->chunk, Elems{2002000});  // gemini keeps it gathered and aligns nothing
}

TEST(ChunkSearch, VariableTakesExactsAnswerAsItsMaximum) {
  const ChunkSearchResult result = search(oracle_model("gpt2"), on_ranks(8, ChunkRule::variable));
  EXPECT_EQ(result.answer.max_chunk, result.rules[0]->chunk);
  Elems used;
  for (const VariableChunk& chunk : result.answer.chunks) {
    EXPECT_TRUE(chunk.elems <= result.answer.max_chunk || chunk.parameter_count == 1);
    EXPECT_EQ(chunk.elems.count() % 8, 0);
    used += chunk.used;
  }
  EXPECT_EQ(used, result.total);
}

TEST(ChunkSearch, JsonHasTheDocumentedKeys) {
  ChunkSearchOptions options = on_ranks(8, ChunkRule::variable);
  options.min_chunk = Elems{1 << 20};  // below gpt2's largest kept parameter: gemini-v0.1.9 cannot answer
  options.forecast = [](const ChunkCut& cut) -> std::optional<ChunkForecast> {
    if (!cut.starts.empty()) return ChunkForecast{Bytes{static_cast<std::int64_t>(cut.starts.size())}, Seconds{0.25}};
    return ChunkForecast{Bytes{cut.chunk.count() * 4}, Seconds{0.5}};
  };
  const nlohmann::ordered_json json = to_json(search(oracle_model("gpt2"), options));
  EXPECT_EQ(json.at("schema_version"), 1);
  EXPECT_EQ(json.at("rule"), "variable");
  for (const char* key : {"chunk_elements", "chunk_count", "waste_elements", "gather_working_set_elements"}) {
    EXPECT_TRUE(json.at("chunk").at(key).is_number_integer()) << key;
    EXPECT_TRUE(json.at("curve").at(0).at(key).is_number_integer()) << key;
    EXPECT_TRUE(json.at("rules").at("exact").at(key).is_number_integer()) << key;
  }
  EXPECT_TRUE(json.at("chunk").at("reported_waste_elements").is_null());
  EXPECT_TRUE(json.at("rules").at("gemini").at("reported_waste_elements").is_number_integer());
  EXPECT_TRUE(json.at("chunk").at("keep_gathered").is_boolean());
  EXPECT_EQ(json.at("chunks").size(), json.at("chunk").at("chunk_count").get<std::size_t>());
  EXPECT_EQ(json.at("curve").at(0).at("peak_device_bytes"),
            json.at("curve").at(0).at("chunk_elements").get<std::int64_t>() * 4);
  EXPECT_EQ(json.at("curve").at(0).at("step_seconds"), 0.5);
  // What chunks of their own sizes take is asked by where they begin, and is no point of the curve.
  EXPECT_EQ(json.at("chunk").at("peak_device_bytes"), json.at("chunk").at("chunk_count"));
  EXPECT_EQ(json.at("chunk").at("step_seconds"), 0.25);
  EXPECT_EQ(json.at("rules").at("variable"), json.at("chunk"));
  for (const char* rule : {"exact", "gemini"}) {
    const nlohmann::ordered_json& answer = json.at("rules").at(rule);
    EXPECT_EQ(answer.at("peak_device_bytes"), answer.at("chunk_elements").get<std::int64_t>() * 4) << rule;
  }
  EXPECT_THAT(json.at("rules").at("gemini-v0.1.9").at("error").get<std::string>(), HasSubstr("--min-chunk"));
  EXPECT_TRUE(json.at("seconds").is_number_float());
}

/// As if each layout took `ops` ops to plan.
ChunkSearchOptions counted(std::int64_t ops, std::vector<Elems>& asked) {
  ChunkSearchOptions options = on_ranks(8);
  options.forecast = [ops, &asked](const ChunkCut& cut) {
    asked.push_back(cut.chunk);
    return ChunkForecast{.peak_device_bytes = Bytes{1}, .step_seconds = Seconds{1}, .planned_ops = ops};
  };
  return options;
}

TEST(ChunkSearch, ForecastsEachLayoutOnceWhereOpsAreFew) {
  std::vector<Elems> asked;
  const ChunkSearchResult result = search(oracle_model("gpt2"), counted(10, asked));
  EXPECT_EQ(result.forecasts_left_out, 0);
  EXPECT_EQ(result.forecasts, static_cast<std::int64_t>(asked.size()));
  EXPECT_EQ(result.forecast_ops, 10 * result.forecasts);
  for (const ForecastCurvePoint& at : result.curve) EXPECT_TRUE(at.forecast) << at.point.chunk.count();
  // The variable answer is asked for by the size it was found under, which the curve has too.
  std::sort(asked.begin(), asked.end());
  EXPECT_EQ(asked.end() - std::unique(asked.begin(), asked.end()), 1);
}

TEST(ChunkSearch, ForecastsTheAnswerFirstAndNoMoreThanItsOpsAllow) {
  std::vector<Elems> all;
  const std::int64_t layouts = search(oracle_model("gpt2"), counted(0, all)).forecasts;
  ASSERT_GT(layouts, 10);
  for (const std::int64_t allowed : {1, 1'000, 2'999, 3'000, 10'000}) {
    std::vector<Elems> asked;
    ChunkSearchOptions options = counted(1'000, asked);
    options.forecast_ops = allowed;
    const ChunkSearchResult result = search(oracle_model("gpt2"), options);
    ASSERT_FALSE(asked.empty());
    EXPECT_EQ(asked.front(), result.answer.chunk);
    EXPECT_TRUE(result.answer.forecast);
    EXPECT_EQ(result.forecasts, std::max<std::int64_t>(1, allowed / 1'000));
    EXPECT_EQ(result.forecasts, static_cast<std::int64_t>(asked.size()));
    EXPECT_EQ(result.forecasts + result.forecasts_left_out, layouts);
    EXPECT_THAT(to_text(result), HasSubstr("--forecast-ops 0 plans all"));
    const nlohmann::ordered_json json = to_json(result);
    EXPECT_EQ(json.at("forecast").at("layouts"), result.forecasts);
    EXPECT_EQ(json.at("forecast").at("left_out_layouts"), result.forecasts_left_out);
    EXPECT_EQ(json.at("forecast").at("planned_ops"), result.forecast_ops);
  }
  std::vector<Elems> asked;
  ChunkSearchOptions options = counted(1'000'000'000, asked);
  options.forecast_ops = 0;
  EXPECT_EQ(search(oracle_model("gpt2"), options).forecasts_left_out, 0);
}

TEST(ChunkSearch, TextNamesTheAnswerItsSizeAndTheBytesAssumed) {
  ChunkSearchOptions options = on_ranks(8);
  options.bytes_per_element = Bytes{2};
  const std::string text = to_text(search(oracle_model("gpt2"), options));
  EXPECT_THAT(text, HasSubstr("62,418,432 elements (119.05 MiB) by rule exact"));
  EXPECT_THAT(text, HasSubstr("MiB at 2 bytes per element"));
  EXPECT_THAT(text, HasSubstr("gemini would take 43,313,152: 3 chunks, 5,499,648 elements (4.42 %) wasted."));
  for (const char* rule : {"exact", "gemini", "gemini-v0.1.9", "variable"}) EXPECT_THAT(text, HasSubstr(rule));
}

TEST(ChunkSearch, PlainTextHasOnlyAscii) {
  for (const char* name : {"gpt2", "tiny-2m", "huge-emb-tiny"}) {
    for (const char letter : to_text(search(oracle_model(name), on_ranks(3)), false)) {
      ASSERT_TRUE(letter == '\n' || (letter >= ' ' && letter <= '~'));
    }
  }
}

struct Contradiction {
  const char* what;  ///< part of the message
  std::function<void(ChunkSearchOptions&)> set;
};

TEST(ChunkSearch, ContradictingOptionsAreNamed) {
  const std::vector<Contradiction> cases{
      {"--world-size is 0", [](ChunkSearchOptions& o) { o.world_size = 0; }},
      {"--min-chunk 33554432 is above --max-chunk 1024", [](ChunkSearchOptions& o) { o.max_chunk = Elems{1024}; }},
      {"no multiple of --world-size 1000 lies between --min-chunk 1001 and --max-chunk 1999",
       [](ChunkSearchOptions& o) {
         o.world_size = 1000;
         o.min_chunk = Elems{1001};
         o.max_chunk = Elems{1999};
       }},
      {"--search-interval is 0", [](ChunkSearchOptions& o) { o.search_interval = Elems{0}; }},
      {"--search-range is -1", [](ChunkSearchOptions& o) { o.search_range = Elems{-1}; }},
      {"--min-chunk is -5", [](ChunkSearchOptions& o) { o.min_chunk = Elems{-5}; }},
      {"--search-range 33554432 is not divisible by --grids 33",
       [](ChunkSearchOptions& o) {
         o.rule = ChunkRule::gemini_v019;
         o.grids = 33;
       }},
      {"--grids is 0",
       [](ChunkSearchOptions& o) {
         o.rule = ChunkRule::gemini_v019;
         o.grids = 0;
       }},
      {"--min-chunk 1 is below the largest parameter that --rule gemini-v0.1.9 keeps, 2359296",
       [](ChunkSearchOptions& o) {
         o.rule = ChunkRule::gemini_v019;
         o.min_chunk = Elems{1};
       }},
      {"--max-chunk is 9223372036854775807",
       [](ChunkSearchOptions& o) { o.max_chunk = Elems{std::numeric_limits<std::int64_t>::max()}; }},
      {"rule variable allows a waste of 0.1 %", [](ChunkSearchOptions& o) {
         o.rule = ChunkRule::variable;
         o.world_size = 1000003;
       }}};
  for (const Contradiction& each : cases) {
    ChunkSearchOptions options = on_ranks(8);
    each.set(options);
    const Result<ChunkSearchResult> result = search_chunks(oracle_model("gpt2"), options);
    ASSERT_FALSE(result) << each.what;
    EXPECT_EQ(result.error().code, Errc::contradiction) << each.what;
    EXPECT_THAT(result.error().what, HasSubstr(each.what));
    EXPECT_FALSE(result.error().help.empty()) << each.what;
  }
}

TEST(ChunkSearch, ImpossibleParametersAreMalformed) {
  const ParameterList huge{{"a", {}, kMaxTotalElems}, {"b", {}, Elems{1}}};
  const ParameterList empty_parameter{{"a", {0}, Elems{0}}};
  for (const ParameterList& list : {ParameterList{}, huge, empty_parameter}) {
    const Result<ChunkSearchResult> result = search_chunks(list, on_ranks(2));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Errc::malformed);
  }
}

TEST(ChunkSearch, TheLargestModelAndSizesDoNotOverflow) {
  const ParameterList list{{"a", {}, Elems{(std::int64_t{1} << 60) - 7}}, {"b", {}, Elems{3}}, {"c", {}, Elems{4}}};
  for (const ChunkRule rule : kChunkRules) {
    ChunkSearchOptions options = on_ranks(8, rule);
    options.search_range = kMaxTotalElems;
    options.search_interval = Elems{std::int64_t{1} << 40};
    options.max_chunk = kMaxTotalElems;
    const Result<ChunkSearchResult> result = search_chunks(list, options);
    ASSERT_TRUE(result) << to_string(result.error());
    EXPECT_GE(result->answer.waste, Elems{0});
    EXPECT_LE(result->answer.waste.count(), std::int64_t{1} << 61);
  }
}

// Bounds that numpy 2.4 computes (mean + 3 * std): one value for each branch of its summation.
TEST(OutlierFilter, BoundIsNumpysToTheBit) {
  const auto bound = [](std::size_t count, std::int64_t step) {
    std::vector<std::int64_t> sizes;
    for (std::size_t index = 0; index < count; ++index) {
      sizes.push_back(1 + static_cast<std::int64_t>(index * index) * step % 100003);
    }
    return outlier_bound(sizes);
  };
  EXPECT_EQ(bound(7, 768), 0x1.2ed3e6cc316fdp+15);
  EXPECT_EQ(bound(100, 768), 0x1.078967f19a81ap+17);
  EXPECT_EQ(bound(1001, 2304), 0x1.051fa021ab57fp+17);
}

TEST(OutlierFilter, TheTenthOfNineEqualSizesLiesOnTheBoundAsRoundedByNumpy) {
  const auto kept = [](std::int64_t small, std::int64_t large) {
    std::vector<std::int64_t> sizes(9, small);
    sizes.push_back(large);
    return without_outliers(sizes).size();
  };
  EXPECT_EQ(kept(3992384, 83535301), 10U);
  EXPECT_EQ(kept(9130652, 26635704), 10U);
  EXPECT_EQ(kept(6206818, 87263594), 10U);
  EXPECT_EQ(kept(7953299, 91936057), 9U);
  EXPECT_EQ(kept(220923, 63200222), 9U);
  EXPECT_EQ(kept(6886407, 27121794), 9U);
}

}  // namespace
}  // namespace shard::testing
