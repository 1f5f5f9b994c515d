// How fast is the chunk search, and how much faster than the peers' own? `chunk_search_bench --ratios` prints the
// latter.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sim/search/chunk_search.h"
#include "tests/search/oracle_options.h"

namespace shard {
namespace {

using Json = nlohmann::json;

const ParameterList& model(const std::string& name) {
  static std::map<std::string, ParameterList> models;
  const auto found = models.find(name);
  if (found != models.end()) return found->second;
  return models[name] = *read_parameter_list(TEST_DATA "/data/chunk_oracle/models/" + name + ".json");
}

/// Seconds of the search alone, median of `runs`.
double median_seconds(const ParameterList& parameters, const ChunkSearchOptions& options, int runs) {
  std::vector<double> seconds;
  for (int run = 0; run < runs; ++run) {
    seconds.push_back(choose_chunk(parameters, options)->seconds.count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + runs / 2, seconds.end());
  return seconds[static_cast<std::size_t>(runs / 2)];
}

struct Ratio {
  std::string row;
  double peer = 0;
  double ours = 0;
  double exact = 0;  ///< rule exact with the same options
};

/// Every recorded row on which the peer took over 50 ms, the worst ratios first.
int print_ratios() {
  std::vector<Ratio> ratios;
  const Json oracle = Json::parse(std::ifstream(TEST_DATA "/data/chunk_oracle/chunk_search.json"));
  for (const Json& row : oracle.at("rows")) {
    double peer = row.value("search_seconds", 0.0);
    for (const char* key : {"search_seconds_median3", "search_seconds_median3_ws1"}) peer = row.value(key, peer);
    if (peer <= 0.05) continue;
    ChunkSearchOptions options = testing::options_of(row);
    Ratio ratio{row.at("model").get<std::string>() + " " + row.at("algo").get<std::string>() + " N=" +
                    std::to_string(options.world_size) + " range " + std::to_string(options.search_range.count()) +
                    " interval " + std::to_string(options.search_interval.count()),
                peer, median_seconds(model(row.at("model")), options, 21)};
    options.rule = ChunkRule::exact;
    ratio.exact = median_seconds(model(row.at("model")), options, 5);
    ratios.push_back(ratio);
  }
  const auto worst_first = [&](auto&& of) {
    std::sort(ratios.begin(), ratios.end(), [&](const Ratio& a, const Ratio& b) { return of(a) < of(b); });
  };
  const auto print = [&](const char* title) {
    std::printf("%s (%zu rows over 50 ms)\n%10s %10s %8s %10s %8s  row\n", title, ratios.size(), "peer ms", "ours us",
                "ratio", "exact us", "ratio");
    for (std::size_t at = 0; at < std::min<std::size_t>(10, ratios.size()); ++at) {
      const Ratio& ratio = ratios[at];
      std::printf("%10.1f %10.1f %8.0f %10.1f %8.0f  %s\n", ratio.peer * 1e3, ratio.ours * 1e6, ratio.peer / ratio.ours,
                  ratio.exact * 1e6, ratio.peer / ratio.exact, ratio.row.c_str());
    }
  };
  worst_first([](const Ratio& ratio) { return ratio.peer / ratio.ours; });
  print("worst ratios of the peers' rules");
  worst_first([](const Ratio& ratio) { return ratio.peer / ratio.exact; });
  print("worst ratios of rule exact against the peer's grid");
  return 0;
}

void search(benchmark::State& state, const std::string& name, ChunkRule rule, std::int64_t min_chunk) {
  ChunkSearchOptions options;
  options.rule = rule;
  options.world_size = 8;
  if (rule != ChunkRule::gemini_v019) options.min_chunk = Elems{min_chunk};
  options.search_range = Elems{128 << 20};
  for (auto _ : state) {
    Result<RuleAnswer> answer = choose_chunk(model(name), options);
    benchmark::DoNotOptimize(answer);
  }
}

void whole_result(benchmark::State& state, const std::string& name) {
  ChunkSearchOptions options;
  options.world_size = 8;
  for (auto _ : state) {
    Result<ChunkSearchResult> result = search_chunks(model(name), options);
    benchmark::DoNotOptimize(result);
  }
}

}  // namespace
}  // namespace shard

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--ratios") return shard::print_ratios();
  for (const char* name : {"gpt2", "gpt2-xl", "llama-7b", "t5-large"}) {
    for (const shard::ChunkRule rule : shard::kChunkRules) {
      for (const std::int64_t min_chunk : {8 << 20, 32 << 20}) {
        const std::string label = std::string("search/") + name + "/" + shard::to_string(rule) +
                                  "/min:" + std::to_string(min_chunk >> 20) + "Mi";
        benchmark::RegisterBenchmark(label.c_str(), [=](benchmark::State& state) {
          shard::search(state, name, rule, min_chunk);
        })->Unit(benchmark::kMicrosecond);
      }
    }
    benchmark::RegisterBenchmark((std::string("search_all_rules_and_curve/") + name).c_str(),
                                 [=](benchmark::State& state) { shard::whole_result(state, name); })
        ->Unit(benchmark::kMicrosecond);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
