// Which class and which phase decide.
#include "sim/engine/simulation.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace shard::engine {

const PhaseResult* ClassResult::peak_phase() const {
  const auto size = [](const PhaseResult& p) { return std::pair(p.memory[0].peak, p.memory[0].live_peak); };
  const PhaseResult* most = nullptr;
  for (const PhaseResult& p : phases) {
    if (p.in_run && (most == nullptr || size(p) > size(*most))) most = &p;
  }
  return most;
}

const ClassResult& Simulation::largest() const {
  assert(!classes.empty());
  return *std::max_element(classes.begin(), classes.end(),
                           [](const ClassResult& a, const ClassResult& b) { return a.peak[0] < b.peak[0]; });
}

}  // namespace shard::engine
