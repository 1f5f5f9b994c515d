// Fuzz target: no text makes parse_cluster crash or return a machine on which nothing can be priced.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sim/cluster/read_cluster.h"
#include "tests/fuzz/limits.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const shard::fuzz::Limits limits(size);
  const auto cluster = shard::cluster::parse_cluster({reinterpret_cast<const char*>(data), size}, "fuzz.json");
  if (!cluster) {
    if (cluster.error().what.empty() || cluster.error().where.empty()) std::abort();
    return 0;
  }
  if (!(cluster->memory_bandwidth.count() > 0)) std::abort();
  return 0;
}
