// What a frame of an allocator's memory costs: a PyTorch snapshot of 200,000 events, the whole of it in view and
// closer.
#include <benchmark/benchmark.h>

#include "tests/viewer/sample_snapshot.h"
#include "viewer/sink/software_sink.h"
#include "viewer/ui/derived.h"
#include "viewer/ui/view.h"

namespace {

using namespace shard;
using namespace shard::view;

constexpr int kWidth = 1600, kHeight = 1000;

/// The snapshot of some 200,000 events, opened once.
const Session& session() {
  static const Session kSession = snapshot_session({.layers = 48, .steps = 280});
  return kSession;
}

/// The memory pane alone, or all panes. Every frame shows something else: nothing drawn before can be used again.
void frames(benchmark::State& state, bool whole_window) {
  const Session& opened = session();
  ViewState view = initial_state(opened);
  if (!whole_window) view.only = Pane::memory;
  const TimeRange all = opened.documents[0].range();
  const std::int64_t length = all.length_ns() / state.range(0);
  const auto middle = all.begin_ns + all.length_ns() / 2;
  view.camera = fit(view.camera.origin_ns, state.range(0) == 1 ? all : TimeRange{middle, middle + length});
  view.memory_by = state.range(1) == 0 ? MemoryBy::site : MemoryBy::category;
  if (state.range(2) != 0) {
    const auto peak = static_cast<double>(opened.documents[0].highest_memory()->peak_bytes());
    view.bytes = ByteRange{peak / 2, peak / 2 + peak / static_cast<double>(state.range(2))};
  }
  Derived derived;
  SoftwareSink sink(kWidth, kHeight);
  const DrawFrame content = [&](const Frame& frame) { draw_view(opened, view, derived, frame); };
  for (int i = 0; i < 3; ++i) sink.build(view.theme, content);
  double build_seconds = 0, draw_seconds = 0;
  double direction = 1;
  for (auto _ : state) {
    view.camera = pan(view.camera, direction = -direction, kWidth);
    build_seconds += sink.build(view.theme, content);
    draw_seconds += sink.draw();
  }
  state.counters["events"] = static_cast<double>(opened.documents[0].snapshot()->events.size());
  state.counters["build_ms"] = benchmark::Counter(1e3 * build_seconds, benchmark::Counter::kAvgIterations);
  state.counters["draw_ms"] = benchmark::Counter(1e3 * draw_seconds, benchmark::Counter::kAvgIterations);
}

void memory_pane(benchmark::State& state) {
  frames(state, false);
}
void window(benchmark::State& state) {
  frames(state, true);
}

/// Blocks, classes and sites, which the first frame makes.
void first_frame(benchmark::State& state) {
  const Session& opened = session();
  for (auto _ : state) {
    ViewState view = initial_state(opened);
    view.only = Pane::memory;
    Derived derived;
    SoftwareSink sink(kWidth, kHeight);
    sink.build(view.theme, [&](const Frame& frame) { draw_view(opened, view, derived, frame); });
    sink.draw();
  }
}

void zooms(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"zoom", "category", "closer"})->Unit(benchmark::kMillisecond);
  for (const std::int64_t category : {0, 1}) {
    for (const std::int64_t zoom : {1, 20, 300, 5000}) benchmark->Args({zoom, category, 0});
  }
  for (const std::int64_t zoom : {1, 300}) benchmark->Args({zoom, 0, 50});
}

BENCHMARK(memory_pane)->Apply(zooms);
BENCHMARK(window)->Apply(zooms);
BENCHMARK(first_frame)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
