// Rows of small kernels on a stream, and the same row as a graph.
#include "executor/cuda/measure/launches.h"

#include <array>
#include <chrono>
#include <functional>
#include <string>

namespace shard::cuda {
namespace {

/// A kernel's own time is nothing beside its launch.
constexpr std::int64_t kElements = 64;

/// Seconds that the host takes to enqueue a row.
Result<double> host_seconds(const Stopwatch& watch, const std::function<Result<void>()>& row) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  if (Result<void> r = row(); !r) return r.error();
  const double took = std::chrono::duration<double>(Clock::now() - begin).count();
  if (Result<void> r = watch.finish(); !r) return r.error();
  return took;
}

Result<double> graph_seconds(Api& api, const Stopwatch& watch, const std::function<Result<void>()>& row, double least) {
  if (Result<void> r = api.begin_capture(watch.stream()); !r) return r.error();
  if (Result<void> r = row(); !r) return r.error();
  const Result<Graph> graph = api.end_capture(watch.stream());
  if (!graph) return graph.error();
  const Result<double> took = watch.seconds([&] { return api.launch_graph(*graph, watch.stream()); }, least);
  api.destroy_graph(*graph);
  return took;
}

}  // namespace

Result<LaunchTimes> measure_launches(Api& api, const Kernels& kernels, int launches, double least, Measurements& into) {
  const Result<Stopwatch> watch = Stopwatch::make(api);
  if (!watch) return watch.error();
  const Result<std::byte*> memory = api.allocate(Bytes{3 * 4 * kElements});
  if (!memory) return memory.error();
  const auto floats = [&](std::int64_t i) { return Elements(*memory + 4 * kElements * i, Dtype::f32); };
  if (Result<void> r = api.fill(watch->stream(), *memory, 0, 3 * 4 * kElements); !r) return r.error();
  const std::array ranges{Range{.begin = *memory, .bytes = 3 * 4 * kElements, .access = model::Access::update}};
  const auto launch = [&](Stream stream) {
    kernels.add(stream, kElements, floats(0), floats(1), floats(2));
    return Result<void>();
  };
  const auto row = [&]() -> Result<void> {
    for (int i = 0; i < launches; ++i)
      if (Result<void> r = watch->op(ranges, launch); !r) return r;
    return {};
  };
  const Result<double> each = watch->seconds(row, least);
  if (!each) return each.error();
  const Result<double> host = host_seconds(*watch, row);
  if (!host) return host.error();
  const Result<double> graph = graph_seconds(api, *watch, row, least);
  if (!graph) return graph.error();
  api.free(*memory);
  const LaunchTimes times{.host = *host / launches, .each = *each / launches, .graph = *graph / launches};
  const std::string row_of = "a row of " + std::to_string(launches) + " kernels over 64 elements, ";
  into.push_back({"launch, the host's part", times.host, "seconds", row_of + "until the last call had returned"});
  into.push_back({"launch, op by op", times.each, "seconds", row_of + "between two events"});
  into.push_back(
      {"launch, node of a graph", times.graph, "seconds", row_of + "captured as a graph, between two events"});
  return times;
}

}  // namespace shard::cuda
