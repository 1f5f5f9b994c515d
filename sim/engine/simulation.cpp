// Which class and which phase decide.
#include "sim/engine/simulation.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace shard::engine {

const PhaseResult* ClassResult::peak_phase(Memory memory) const {
  const auto size = [m = static_cast<std::size_t>(memory)](const PhaseResult& p) {
    return std::pair(p.memory[m].peak, p.memory[m].live_peak);
  };
  const PhaseResult* most = nullptr;
  for (const PhaseResult& p : phases) {
    if (p.in_run && (most == nullptr || size(p) > size(*most))) most = &p;
  }
  return most;
}

const ClassResult& Simulation::largest(Memory memory) const {
  assert(!classes.empty());
  return *std::max_element(classes.begin(), classes.end(),
                           [m = static_cast<std::size_t>(memory)](const ClassResult& a, const ClassResult& b) {
                             return a.peak[m] < b.peak[m];
                           });
}

std::optional<Memory> Simulation::short_of() const {
  const Bytes peak = largest().peak[static_cast<std::size_t>(Memory::device)];
  if (cluster::verdict_of(peak, room()) == cluster::Verdict::does_not_fit) return Memory::device;
  if (!host.holds(host_peak)) {
    const auto most = [&](Memory memory) { return largest(memory).peak[static_cast<std::size_t>(memory)]; };
    return most(Memory::pinned) > most(Memory::host) ? Memory::pinned : Memory::host;
  }
  return std::nullopt;
}

cluster::Verdict Simulation::verdict() const {
  if (short_of()) return cluster::Verdict::does_not_fit;
  return cluster::verdict_of(largest().peak[static_cast<std::size_t>(Memory::device)], room());
}

}  // namespace shard::engine
