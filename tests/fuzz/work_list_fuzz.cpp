// Fuzz target: whatever a process left of its work, it is read or refused, and what is read has a time.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "profiler/steptime/forecast.h"
#include "sim/cluster/read_cluster.h"
#include "tests/fuzz/limits.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shard;
  static const cluster::Cluster card = *cluster::read_cluster("h100-80gb-x8");
  const fuzz::Limits limits(size);
  const Result<steptime::WorkList> work = steptime::parse_work({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!work) return 0;
  const auto made = steptime::forecast(*work, {}, {.cluster = &card, .world_size = 8});
  if (made && !(made->seconds.count() > 0 && std::isfinite(made->seconds.count()) && made->low <= made->seconds &&
                made->seconds <= made->high))
    std::abort();
  return 0;
}
