// How long a trace of 1e5 to 1e7 spans takes to open, and each pane's data for a picture 1600 pixels wide.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "tests/bench/synthetic_trace.h"
#include "viewer/index/document.h"
#include "viewer/index/search.h"
#include "viewer/index/statistics.h"

namespace {

using namespace shard;
using namespace shard::view;

/// A trace file of so many spans, a fifth as many memory events, and 100,000 chunks; removed with the program.
class File {
 public:
  explicit File(std::int64_t spans)
      : path_(std::filesystem::temp_directory_path() / ("viewer_index_bench." + std::to_string(getpid()) + ".sst")) {
    const SyntheticTrace options{.spans = spans,
                                 .memory_events = spans / 5,
                                 .chunks = 100'000,
                                 .chunk_states = std::max<std::int64_t>(400'000, spans / 10)};
    const Result<void> written = write_synthetic_trace(path_, options);
    ok_ = written.has_value();
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  [[nodiscard]] Document open() const { return Document::build(load(path_).value(), path_.string()); }
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  std::filesystem::path path_;
  bool ok_ = false;
};

/// The document of a size; only the last one is kept.
const Document& document_of(std::int64_t spans) {
  static std::pair<std::int64_t, std::unique_ptr<Document>> kept;
  if (kept.first != spans) {
    kept.second.reset();
    kept = {spans, std::make_unique<Document>(File(spans).open())};
  }
  return *kept.second;
}

double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  double total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

/// The view that shows 1/range(1) of the trace.
PixelRange view_of(const Document& document, const benchmark::State& state) {
  const TimeRange all = document.range();
  return {{all.begin_ns, all.begin_ns + all.length_ns() / state.range(1)}, 1600};
}

void open(benchmark::State& state) {
  const File file(state.range(0));
  if (!file.ok()) return state.SkipWithError("cannot write the trace");
  for (auto _ : state) {
    const Document document = file.open();
    benchmark::DoNotOptimize(document.rows().data());
    state.counters["resident_bytes"] = resident_bytes();
  }
}

void lanes(benchmark::State& state) {
  const Document& document = document_of(state.range(0));
  const PixelRange view = view_of(document, state);
  RowPicture picture;
  for (auto _ : state) {
    for (std::size_t row = 0; row < document.rows().size(); ++row) {
      document.draw(row, view, wide_at_least(view, 3), picture);
      benchmark::DoNotOptimize(picture.columns.data());
    }
  }
  state.counters["rows"] = static_cast<double>(document.rows().size());
}

void memory(benchmark::State& state) {
  const Document& document = document_of(state.range(0));
  const PixelRange view = view_of(document, state);
  std::vector<MemoryColumn> columns;
  for (auto _ : state) {
    document.memory()[0].columns(document.trace().memory, view, columns);
    benchmark::DoNotOptimize(columns.data());
  }
}

void chunks(benchmark::State& state) {
  const Document& document = document_of(state.range(0));
  const PixelRange view = view_of(document, state);
  const std::size_t units = document.chunks().units(Rank{0}).size();
  std::vector<ChunkRun> runs;
  for (auto _ : state) {
    document.chunks().draw(Rank{0}, {0, (units + 199) / 200, 200}, view, runs);
    benchmark::DoNotOptimize(runs.data());
  }
  state.counters["units"] = static_cast<double>(units);
}

void live_table(benchmark::State& state) {
  const Document& document = document_of(state.range(0));
  const MemorySeries& series = document.memory()[0];
  for (auto _ : state) benchmark::DoNotOptimize(series.live_at(document.trace().memory, series.peak_moment()));
}

void statistics_of_everything(benchmark::State& state) {
  const Document& document = document_of(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(span_statistics(document, document.range(), GroupBy::name));
}

void search_and_step(benchmark::State& state) {
  const Document& document = document_of(state.range(0));
  for (auto _ : state) {
    const NameMatch match = find_names(document, "mlp.down backward");
    benchmark::DoNotOptimize(next_match(document, match, document.range().begin_ns));
  }
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Arg(100'000)->Arg(1'000'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond);
}
void sizes_and_zooms(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"spans", "zoom"})->Unit(benchmark::kMillisecond);
  for (const std::int64_t spans : {100'000, 1'000'000, 10'000'000}) {
    for (const std::int64_t zoom : {1, 10, 1000}) benchmark->Args({spans, zoom});
  }
}

BENCHMARK(open)->Apply(sizes)->UseRealTime()->Iterations(3);
BENCHMARK(lanes)->Apply(sizes_and_zooms);
BENCHMARK(memory)->Apply(sizes_and_zooms);
BENCHMARK(chunks)->Apply(sizes_and_zooms);
BENCHMARK(live_table)->Apply(sizes);
BENCHMARK(statistics_of_everything)->Apply(sizes);
BENCHMARK(search_and_step)->Apply(sizes);

}  // namespace

BENCHMARK_MAIN();
