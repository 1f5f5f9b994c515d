// Inside of a host, and between hosts.
#include "sim/cost/laws/exchange.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shard::cost {
namespace {

constexpr double kShareOfAdapters = 0.92;
constexpr double kHop = 4.5e-6;
constexpr double kStart = 20e-6;
constexpr double kLevelsOfATree = 4;          ///< hops of a level: up and down, in two halves
constexpr double kHostsShareOfATree = 60e-6;  ///< what the ranks of a host do before and behind it

double fastest(const std::vector<cluster::NcclProtocol>& protocols, double ranks, double steps, double moved) {
  double best = std::numeric_limits<double>::infinity();
  for (const cluster::NcclProtocol& p : protocols)
    best = std::min(best, p.base.count() + p.per_rank.count() * steps * (ranks - 1) + moved / p.bandwidth.count());
  return best;
}

double inside(bool all_reduce, double ranks, double moved, const cluster::Cluster& c) {
  const cluster::ExchangeLaw& law = c.kernel_laws->exchange;
  // Two and three ranks do not gain by what the switch adds up.
  const auto& protocols = all_reduce && ranks >= 4 && !law.all_reduce.empty() ? law.all_reduce : law.gather;
  if (!protocols.empty()) return fastest(protocols, ranks, all_reduce ? 2 : 1, moved);
  return c.intra_host.base.count() + c.intra_host.latency.count() * (ranks - 1) * (all_reduce ? 2 : 1) +
         moved / c.intra_host.bus_bandwidth.count();
}

double fastest_bus(const cluster::Cluster& c) {
  double bus = c.intra_host.bus_bandwidth.count();
  for (const cluster::NcclProtocol& p : c.kernel_laws->exchange.gather) bus = std::max(bus, p.bandwidth.count());
  return bus;
}

}  // namespace

Seconds exchange_time(Collective kind, double bytes, Members members, const cluster::Cluster& c) {
  const auto n = static_cast<double>(members.ranks);
  if (members.ranks <= 1 || bytes <= 0) return Seconds{0};
  const bool all_reduce = kind == Collective::all_reduce;
  const double moved = bytes * (n - 1) / n * (all_reduce ? 2 : 1);
  const std::int64_t of_a_host = c.devices_per_host;
  if (members.ranks * members.stride <= of_a_host || !c.inter_host) return Seconds{inside(all_reduce, n, moved, c)};
  const double hosts = std::ceil(n * static_cast<double>(members.stride) / static_cast<double>(of_a_host));
  const double beside = std::max<double>(1, static_cast<double>(of_a_host / members.stride));
  const double adapter = c.inter_host->bus_bandwidth.count() / static_cast<double>(of_a_host) * kShareOfAdapters;
  const double bus = beside > 1 ? std::min(fastest_bus(c), adapter * beside) : adapter;
  double hops = (n - 1) * kHop;
  if (all_reduce)
    hops = std::min(2 * hops, 2 * kHop * kLevelsOfATree * std::log2(std::max(2.0, hosts)) + kHostsShareOfATree);
  return Seconds{kStart + hops + moved / bus};
}

}  // namespace shard::cost
