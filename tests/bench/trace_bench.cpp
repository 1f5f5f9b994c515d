// Writing and loading traces, from 1e5 to 1e7 spans: seconds, bytes of file per span.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "traces/reader.h"
#include "traces/writer.h"

namespace {

using namespace shard;
using benchmark::Counter;

/// A step of a training run over and over: 300 ops in order on two streams, of 10 us to 2 ms.
class Steps {
 public:
  explicit Steps(Writer& writer) : writer_(writer) {
    tracks_ = {writer.track({.rank = Rank{0}, .stream = Stream::compute}),
               writer.track({.rank = Rank{0}, .stream = Stream::communication})};
    for (int op = 0; op < kOps; ++op) names_.push_back(writer.name("transformer.h." + std::to_string(op) + ".mlp"));
  }

  void write(std::int64_t spans) {
    for (std::int64_t i = 0; i < spans; ++i) {
      const auto op = static_cast<std::size_t>(i % kOps);
      const std::size_t stream = op % 3 == 0 ? 1 : 0;
      const std::int64_t duration = length_(random_);
      writer_.add(Span{.track = tracks_[stream],
                       .begin_ns = clock_,
                       .duration_ns = duration,
                       .op = OpId{static_cast<std::int32_t>(op)},
                       .name = names_[op],
                       .step = static_cast<std::int32_t>(i / kOps),
                       .bytes = stream == 1 ? 28'000'000 : 0,
                       .unit = UnitId{static_cast<std::int32_t>(op / 12)}});
      clock_ += duration + 500;
    }
  }

 private:
  static constexpr int kOps = 300;

  Writer& writer_;
  std::array<TrackId, 2> tracks_;
  std::vector<NameId> names_;
  std::mt19937_64 random_{1};
  std::uniform_int_distribution<std::int64_t> length_{10'000, 2'000'000};
  std::int64_t clock_ = 0;
};

/// A file of this process, gone at the end.
struct Scratch {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("trace_bench_" + std::to_string(std::random_device{}()) + ".sst");
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

bool write_file(const std::filesystem::path& path, std::int64_t spans) {
  Result<Writer> writer = Writer::create(path, {.kind = TraceKind::measured});
  if (!writer) return false;
  Steps(*writer).write(spans);
  return static_cast<bool>(writer->close());
}

void report(benchmark::State& state, const std::filesystem::path& path) {
  const auto spans = static_cast<double>(state.range(0));
  state.counters["spans/s"] = Counter(spans, Counter::kIsIterationInvariantRate);
  state.counters["file_bytes/span"] = static_cast<double>(std::filesystem::file_size(path)) / spans;
}

void write_trace(benchmark::State& state) {
  const Scratch file;
  for (auto _ : state)
    if (!write_file(file.path, state.range(0))) return state.SkipWithError("cannot write a trace");
  report(state, file.path);
}

void load_trace(benchmark::State& state) {
  const Scratch file;
  if (!write_file(file.path, state.range(0))) return state.SkipWithError("cannot write a trace");
  for (auto _ : state) {
    Result<Trace> trace = load(file.path);
    if (!trace || !trace->complete()) return state.SkipWithError("cannot load the trace");
    benchmark::DoNotOptimize(trace->spans.begin_ns.data());
  }
  report(state, file.path);
}

BENCHMARK(write_trace)->RangeMultiplier(10)->Range(100'000, 10'000'000)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(load_trace)->RangeMultiplier(10)->Range(100'000, 10'000'000)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
