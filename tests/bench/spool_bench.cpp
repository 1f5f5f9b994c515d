// What writing an event into a spool costs: from one thread and from several at once, in new blocks and in used ones.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "profiler/spool/spool.h"
#include "traces/base/scratch.h"

namespace {

using namespace shard;
using namespace shard::profiler;

std::optional<Scratch> folder;
std::unique_ptr<Spool> spool;

/// `range(0)` MiB of events at most: a spool that wraps, or one that never does.
void write_events(benchmark::State& state) {
  if (state.thread_index() == 0) {
    folder = Scratch::make(std::filesystem::temp_directory_path().string());
    if (folder) {
      auto made = Spool::create(folder->path() + "/events", {.most = Bytes{state.range(0) << 20}});
      if (made) spool = std::move(*made);
    }
  }
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

}  // namespace
