// What a whole step adds to its kernels, and how far its time may be off whatever they are.
#pragma once

#include <algorithm>
#include <cmath>

#include "sim/cluster/cluster.h"

namespace shard::cost {

/// Products beside an exchange take so much longer: Galvatron's coefficient, 1.126.
inline constexpr double kContention = 0.126;

/// By how much the laws of kernels are off for a run of the kind that they know best, relative; two strategies on one
/// card whose times are nearer than that cannot be told apart.
inline constexpr double kLawError = 0.1;

/// Of a step, how long the slowest of so many ranks is waited for: 0.03 sqrt(2 ln n). Selected on published rows
/// (tests/validation), not measured.
[[nodiscard]] inline double share_of_waiting(double ranks) {
  constexpr double kStragglers = 0.03;
  return ranks > 1 ? kStragglers * std::sqrt(2 * std::log(ranks)) : 0;
}

/// By which machines of the card differ, relative; of one that was not measured more. `cluster` has kernel_laws.
[[nodiscard]] inline double doubt_of_card(const cluster::Cluster& cluster) {
  constexpr double kNotMeasured = 0.3;
  const cluster::KernelLaws& laws = *cluster.kernel_laws;
  return laws.measured ? laws.spread : std::max(laws.spread, kNotMeasured);
}

/// Networks differ, and how many wait for the slowest: with every doubling of the hosts.
[[nodiscard]] inline double doubt_of_network(const cluster::Cluster& cluster, double ranks) {
  constexpr double kOfDoubling = 0.03;
  const double hosts = ranks / cluster.devices_per_host;
  return hosts > 1 ? kOfDoubling * std::log2(hosts) : 0;
}

}  // namespace shard::cost
