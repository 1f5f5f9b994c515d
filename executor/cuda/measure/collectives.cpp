// Rows of equal calls between two meetings of all ranks.
#include "executor/cuda/measure/collectives.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <string>

#include "sim/target/comm_workspace.h"
#include "traces/base/units.h"

namespace shard::cuda {
namespace {

constexpr std::array kMeasuredKinds{Collective::all_gather, Collective::reduce_scatter, Collective::all_reduce,
                                    Collective::broadcast};
/// Started before the first is waited for; below CommLimits::in_flight.
constexpr int kInFlight = 8;

/// What moves over the bus, as a share of the full buffer (nccl-tests, doc/PERFORMANCE.md).
double bus_share(Collective kind, double n) {
  switch (kind) {
    case Collective::all_gather:
    case Collective::reduce_scatter: return (n - 1) / n;
    case Collective::all_reduce: return 2 * (n - 1) / n;
    case Collective::broadcast:
    case Collective::reduce: return 1;
  }
  return 1;
}

/// Full buffer, shard, workspace.
struct Place {
  std::int64_t shard = 0;
  std::int64_t workspace = 0;
  Bytes arena{};
};

Bytes workspace_of(const Communicator& communicator, Collective kind, Bytes full) {
  return communicator.needs_workspace() ? comm_workspace_bytes(kind, full, communicator.size()) : Bytes{0};
}

Place place_for(const Communicator& communicator, Bytes full) {
  constexpr std::int64_t kApart = 4096;
  Place p{.shard = round_up(full, kApart).count()};
  p.workspace = p.shard + round_up(full, kApart).count();
  Bytes workspace;
  for (const Collective kind : kMeasuredKinds) workspace = std::max(workspace, workspace_of(communicator, kind, full));
  p.arena = Bytes{p.workspace} + workspace;
  return p;
}

/// Seconds of one call, in rows of kInFlight.
Result<double> seconds_of(const CollectiveEnd& end, const Place& place, Collective kind, Bytes full, int rows) {
  using Clock = std::chrono::steady_clock;
  const CommSegment segment{.shard_offset = place.shard, .full_offset = 0, .elems = Elems{full.count() / 4}};
  const CollectiveRequest request{.op = OpId{0},
                                  .kind = kind,
                                  .segments = {&segment, 1},
                                  .dtype = Dtype::f32,
                                  .workspace_offset = place.workspace,
                                  .workspace = workspace_of(end.communicator, kind, full)};
  // With a workspace calls are in flight one by one: they would share it.
  const int at_once = request.workspace.count() > 0 ? 1 : kInFlight;
  if (const auto met = end.communicator.exchange({}); !met) return met.error();
  const auto begin = Clock::now();
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < at_once; ++i)
      if (const Result<Ticket> started = end.communicator.start(request); !started) return started.error();
    if (Result<void> r = end.finish(); !r) return r.error();
  }
  return std::chrono::duration<double>(Clock::now() - begin).count() / (rows * at_once);
}

/// As many rows as rank 0 says, which is what fills the time.
Result<int> agreed_rows(const CollectiveEnd& end, double once, double least) {
  constexpr double kMost = 1000;
  const int own = static_cast<int>(std::clamp(least / std::max(once * kInFlight, 1e-9), 1.0, kMost));
  const auto all = end.communicator.exchange(std::to_string(own));
  if (!all) return all.error();
  return std::max(1, std::atoi(all->front().c_str()));
}

}  // namespace

Result<CollectiveRates> measure_collectives(const CollectiveEnd& end, std::span<const Bytes> sizes, double least,
                                            Measurements& into) {
  const Place place = place_for(end.communicator, sizes.back());
  if (const auto arena = end.communicator.make_arena(place.arena); !arena) return arena.error();
  const int ranks = end.communicator.size();
  CollectiveRates rates;
  for (const Collective kind : kMeasuredKinds)
    for (const Bytes full : sizes) {
      const Result<double> once = seconds_of(end, place, kind, full, 1);
      if (!once) return once.error();
      const Result<int> rows = agreed_rows(end, *once, least);
      if (!rows) return rows.error();
      const Result<double> took = seconds_of(end, place, kind, full, *rows);
      if (!took) return took.error();
      const double rate = *took > 0 ? bus_share(kind, ranks) * static_cast<double>(full.count()) / *took : 0;
      if (kind == Collective::all_gather && full == sizes.front()) rates.latency = *took;
      if (kind == Collective::all_gather && full == sizes.back()) rates.bandwidth = rate;
      if (end.communicator.rank().value != 0) continue;
      const std::string name =
          std::string(to_string(kind)) + " of " + end.between + ", " + std::to_string(full.count()) + " bytes";
      const std::string how = "calls through the communicator '" + std::string(end.communicator.name()) +
                              "', up to eight at once, between two meetings of all ranks, by the host's clock";
      into.push_back({name + ", time", *took, "seconds", how});
      into.push_back({name + ", bus bandwidth", rate, "bytes/s", how});
    }
  return rates;
}

}  // namespace shard::cuda
