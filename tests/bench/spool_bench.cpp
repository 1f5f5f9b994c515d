// What writing an event into a spool costs: from one thread and from several at once, in used blocks, in new ones and
// in new ones that somebody else has prepared.
#include <benchmark/benchmark.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "profiler/spool/spool.h"
#include "traces/base/scratch.h"

namespace {

using namespace shard;
using namespace shard::profiler;

std::optional<Scratch> folder;
std::unique_ptr<Spool> spool;

void make_spool(std::int64_t mebibytes) {
  spool.reset();
  folder = Scratch::make(std::filesystem::temp_directory_path().string());
  if (!folder) return;
  auto made = Spool::create(folder->path() + "/events", {.most = Bytes{mebibytes << 20}});
  if (made) spool = std::move(*made);
}

/// `range(0)` MiB of events at most: a spool that wraps, or one that never does.
void write_events(benchmark::State& state) {
  if (state.thread_index() == 0) make_spool(state.range(0));
  std::optional<Lane> lane;
  Event event{.kind = EventKind::kernel, .name = 1, .correlation = 7};
  for (auto _ : state) {
    if (!lane) lane.emplace(*spool);
    event.begin_ns += 10;
    event.end_ns = event.begin_ns + 5;
    lane->add(event);
  }
  state.SetItemsProcessed(state.iterations());
  lane.reset();
}
BENCHMARK(write_events)->ArgName("MiB")->Arg(8)->Arg(16384)->ThreadRange(1, 8)->Iterations(4'000'000)->UseRealTime();

/// Bursts, and between them the time in which the recorder's own thread makes new blocks ready.
void write_prepared_events(benchmark::State& state) {
  static std::atomic<std::int64_t> rounds;  // of preparing that began and ended
  if (state.thread_index() == 0) {
    rounds = 0;
    make_spool(16384);
  }
  std::optional<Lane> lane;
  Event event{.kind = EventKind::kernel, .name = 1, .correlation = 7};
  const std::int64_t burst = Spool::kAhead * static_cast<std::int64_t>(kEventsPerBlock) / state.threads();
  std::int64_t round = 0;
  for (auto _ : state) {
    state.PauseTiming();
    if (!lane) lane.emplace(*spool);
    ++round;
    // All have written before anybody prepares, and all wait until it is done.
    if (rounds.fetch_add(1) + 1 == round * (state.threads() + 1) - 1) {
      (void)spool->prepare();
      rounds.fetch_add(1);
    }
    while (rounds.load() < round * (state.threads() + 1)) std::this_thread::yield();
    state.ResumeTiming();
    for (std::int64_t i = 0; i < burst; ++i) {
      event.begin_ns += 10;
      event.end_ns = event.begin_ns + 5;
      lane->add(event);
    }
  }
  state.SetItemsProcessed(state.iterations() * burst);
  lane.reset();
}
BENCHMARK(write_prepared_events)->ThreadRange(1, 8)->Iterations(50)->UseRealTime();

}  // namespace
