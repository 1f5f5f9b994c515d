// Do the fast searches answer as their definitions do, candidate by candidate, on thousands of random small models?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "sim/search/curve.h"
#include "sim/search/exact.h"
#include "sim/search/gemini.h"
#include "sim/search/gemini_v019.h"
#include "sim/search/outlier_filter.h"
#include "sim/search/variable.h"
#include "tests/search/models.h"

namespace shard::testing {
namespace {

struct Placed {
  std::int64_t elems;
  std::vector<std::size_t> parameters;
};

/// Next-fit as the peer's chunk manager does it, one parameter after the other.
std::vector<Placed> plain_next_fit(const ParameterList& list, std::int64_t chunk, std::int64_t world) {
  std::vector<Placed> chunks;
  std::int64_t left = 0;
  for (std::size_t index = 0; index < list.size(); ++index) {
    const std::int64_t size = list[index].elems.count();
    if (chunks.empty() || size > left) {
      chunks.push_back({size > chunk ? (size + world - 1) / world * world : chunk, {}});
      left = chunks.back().elems;
    }
    chunks.back().parameters.push_back(index);
    left -= size;
  }
  return chunks;
}

std::int64_t waste_of(const ParameterList& list, const std::vector<Placed>& chunks) {
  std::int64_t waste = -total_elems(list).count();
  for (const Placed& chunk : chunks) waste += chunk.elems;
  return waste;
}

std::int64_t working_set_of(const ParameterList& list, const std::vector<Placed>& chunks) {
  std::map<std::string, std::int64_t> sums;
  for (const Placed& chunk : chunks) {
    std::set<std::string> modules;
    for (const std::size_t index : chunk.parameters) modules.emplace(module_name(list[index].name));
    for (const std::string& module : modules) sums[module] += chunk.elems;
  }
  std::int64_t largest = 0;
  for (const auto& [module, sum] : sums) largest = std::max(largest, sum);
  return largest;
}

/// The peers' score of a candidate.
std::int64_t plain_score(const std::vector<std::int64_t>& kept, std::int64_t chunk) {
  std::int64_t waste = 0;
  std::int64_t left = 0;
  for (const std::int64_t size : kept) {
    if (size > left) {
      waste += left;
      left = chunk;
    }
    left -= size;
  }
  return waste + left;
}

std::int64_t draw(std::mt19937_64& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}

TEST(ChunkBruteForce, ExactOverEverySizeWithItsTieRules) {
  std::mt19937_64 random(1);
  int ties = 0;
  for (int round = 0; round < 4000; ++round) {
    const ParameterList list = random_list(random, 24, draw(random, 1, 60));
    const std::int64_t world = draw(random, 1, 9);
    const std::int64_t low = draw(random, 0, 80);
    const std::int64_t high = std::max<std::int64_t>(low + draw(random, 0, 300), (low + world) / world * world);
    const SearchModel model = search_model(list);
    const Result<ExactAnswer> answer = search_exact(model, {world, Elems{low}, Elems{high}});
    ASSERT_TRUE(answer) << to_string(answer.error());
    if (model.total < low) {
      EXPECT_TRUE(answer->one_chunk);
      EXPECT_EQ(answer->chunk, round_up(Elems{model.total}, world));
      continue;
    }
    using Score = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // waste, working set, size
    std::optional<Score> best;
    for (std::int64_t size = world; size <= high; size += world) {
      if (size < low) continue;
      const std::vector<Placed> chunks = plain_next_fit(list, size, world);
      const Score score{waste_of(list, chunks), working_set_of(list, chunks), size};
      ties += best && std::get<0>(score) == std::get<0>(*best) ? 1 : 0;
      best = best ? std::min(*best, score) : score;
    }
    ASSERT_EQ(answer->chunk.count(), std::get<2>(*best)) << "round " << round;
    const CurvePoint point = curve_point(model, world, answer->chunk);
    ASSERT_EQ(point.waste.count(), std::get<0>(*best)) << "round " << round;
    ASSERT_EQ(point.gather_working_set.count(), std::get<1>(*best)) << "round " << round;
  }
  EXPECT_GT(ties, 500);  // the tie rules were at work
}

TEST(ChunkBruteForce, GeminiCandidateByCandidate) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 4000; ++round) {
    const ParameterList list = random_list(random, 40, draw(random, 1, 500));
    const SearchModel model = search_model(list);
    GeminiOptions options;
    options.world_size = draw(random, 1, 9);
    options.range = Elems{draw(random, 0, 2000)};
    options.interval = Elems{draw(random, 1, 40)};
    options.min_chunk = Elems{draw(random, 0, 600)};
    options.filter = draw(random, 0, 1) == 1;
    const Result<GeminiAnswer> answer = search_gemini(model.sizes, options);
    ASSERT_TRUE(answer);
    if (model.total < options.min_chunk.count()) {
      EXPECT_TRUE(answer->keep_gathered);
      EXPECT_EQ(answer->chunk.count(), model.total);
      continue;
    }
    const auto kept = options.filter ? without_outliers(model.sizes) : model.sizes;
    const std::int64_t interval = options.interval.count();
    const std::int64_t largest = std::max(options.min_chunk.count(), *std::max_element(kept.begin(), kept.end()));
    const std::int64_t first = (largest + interval - 1) / interval * interval;
    std::int64_t best = first;
    for (std::int64_t size = first; size <= first + options.range.count(); size += interval) {
      if (plain_score(kept, size) < plain_score(kept, best)) best = size;
    }
    ASSERT_EQ(answer->reported_waste.count(), plain_score(kept, best)) << "round " << round;
    ASSERT_EQ(answer->chunk, round_up(Elems{best}, options.world_size)) << "round " << round;
  }
}

TEST(ChunkBruteForce, GeminiV019GridPointByGridPoint) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 4000; ++round) {
    const ParameterList list = random_list(random, 40, draw(random, 1, 500));
    const SearchModel model = search_model(list);
    GeminiV019Options options;
    options.grids = draw(random, 1, 60);
    options.range = Elems{options.grids * draw(random, 1, 40)};
    options.filter = draw(random, 0, 1) == 1;
    const auto kept = options.filter ? without_outliers(model.sizes) : model.sizes;
    std::int64_t low = *std::max_element(kept.begin(), kept.end());
    if (draw(random, 0, 1) == 1) {
      low += draw(random, 0, 100);
      options.min_chunk = Elems{low};
    }
    const Result<GeminiV019Answer> answer = search_gemini_v019(model.sizes, options);
    ASSERT_TRUE(answer);
    std::int64_t sum = 0;
    for (const std::int64_t size : kept) sum += size;
    double best_use = -1;
    std::int64_t best = 0;
    for (std::int64_t size = low; size <= low + options.range.count(); size += options.range.count() / options.grids) {
      const std::int64_t capacity = plain_score(kept, size) + sum;
      const double use = static_cast<double>(sum) / static_cast<double>(capacity);
      if (use > best_use) {
        best_use = use;
        best = size;
      }
    }
    ASSERT_EQ(answer->chunk.count(), best) << "round " << round;
    ASSERT_EQ(answer->reported_waste.count(), plain_score(kept, best)) << "round " << round;
  }
}

TEST(ChunkBruteForce, TheCurveTellsEverySize) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 400; ++round) {
    const ParameterList list = random_list(random, 24, draw(random, 1, 60));
    const SearchModel model = search_model(list);
    const std::int64_t world = draw(random, 1, 9);
    const Elems first{world * draw(random, 1, 10)};
    const Elems last = first + Elems{world * draw(random, 0, 60)};
    const std::vector<CurvePoint> curve = chunk_curve(model, world, first, last);
    ASSERT_EQ(curve.front().chunk, first);
    std::size_t at = 0;
    for (Elems size = first; size <= last; size += Elems{world}) {
      if (at + 1 < curve.size() && curve[at + 1].chunk == size) ++at;
      const CurvePoint& point = curve[at];
      const std::vector<Placed> chunks = plain_next_fit(list, size.count(), world);
      ASSERT_EQ(static_cast<std::int64_t>(chunks.size()), point.chunk_count);
      ASSERT_EQ(waste_of(list, chunks), (point.waste + point.uniform_chunks * (size - point.chunk)).count());
      if (size != point.chunk) continue;
      ASSERT_EQ(working_set_of(list, chunks), point.gather_working_set.count());
    }
    ASSERT_EQ(at + 1, curve.size());
  }
}

TEST(ChunkBruteForce, ALongCurveIsSampledWithinItsLimit) {
  std::mt19937_64 random(6);
  std::vector<std::int64_t> sizes(400);
  for (std::int64_t& size : sizes) size = draw(random, 1, 1000000);
  const SearchModel model = search_model(make_list(sizes, std::vector<std::string>(sizes.size(), "m")));
  const std::vector<CurvePoint> curve = chunk_curve(model, 4, Elems{1000000}, Elems{20000000});
  EXPECT_LE(curve.size(), kMaxCurvePoints);
  EXPECT_GT(curve.size(), kMaxCurvePoints / 2);
  for (std::size_t at = 0; at < curve.size(); at += 50) {
    EXPECT_EQ(curve[at].waste, curve_point(model, 4, curve[at].chunk).waste);
    EXPECT_EQ(curve[at].chunk.count() % 4, 0);
  }
}

/// The best partition by trying all: fewest chunks within the waste limit, then most module cuts, then smallest
/// largest.
struct BestPartition {
  using Score = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  // chunks, -module cuts, largest
  const SearchModel& model;
  std::int64_t world, max_chunk, limit;
  std::optional<Score> best;

  void extend(std::size_t first, std::int64_t waste, const Score& score) {
    if (waste > limit) return;
    if (first == model.sizes.size()) {
      best = best ? std::min(*best, score) : score;
      return;
    }
    std::int64_t used = 0;
    for (std::size_t last = first + 1; last <= model.sizes.size(); ++last) {
      used += model.sizes[last - 1];
      const std::int64_t elems = (used + world - 1) / world * world;
      if (elems > max_chunk && last > first + 1) return;
      const bool cut = last < model.sizes.size() && model.module[last - 1] != model.module[last];
      extend(last, waste + elems - used,
             {std::get<0>(score) + 1, std::get<1>(score) - (cut ? 1 : 0), std::max(std::get<2>(score), elems)});
    }
  }
};

TEST(ChunkBruteForce, VariableOverAllPartitions) {
  std::mt19937_64 random(5);
  int feasible = 0;
  int binding = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::int64_t scale = draw(random, 0, 1) == 1 ? 4000 : 300;
    const ParameterList list = random_list(random, 12, scale);
    const SearchModel model = search_model(list);
    const std::int64_t world = draw(random, 1, 12);
    const std::int64_t max_chunk = draw(random, 1, 4 * scale);
    BestPartition plain{model, world, max_chunk, model.total / 1000, {}};
    plain.extend(0, 0, {0, 0, 0});
    const Result<VariableAnswer> answer = search_variable(model, {world, Elems{max_chunk}});
    ASSERT_EQ(answer.has_value(), plain.best.has_value()) << "round " << round;
    if (!answer) continue;
    ++feasible;
    BestPartition unlimited{model, world, max_chunk, model.total * world, {}};
    unlimited.extend(0, 0, {0, 0, 0});
    binding += *unlimited.best != *plain.best ? 1 : 0;
    ASSERT_EQ(static_cast<std::int64_t>(answer->chunk_starts.size()), std::get<0>(*plain.best)) << "round " << round;
    ASSERT_EQ(answer->module_boundaries, -std::get<1>(*plain.best)) << "round " << round;
    ASSERT_EQ(answer->largest_chunk.count(), std::get<2>(*plain.best)) << "round " << round;
    ASSERT_LE(answer->waste.count() * 1000, model.total);
  }
  EXPECT_GT(feasible, 1000);
  EXPECT_GT(binding, 50);  // the waste limit decided some of them
}

}  // namespace
}  // namespace shard::testing
