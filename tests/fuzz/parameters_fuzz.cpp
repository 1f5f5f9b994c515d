// Fuzz target: no text makes parse_parameter_list crash or return a list that breaks its own invariants.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sim/model/parameters.h"
#include "tests/fuzz/limits.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const shard::fuzz::Limits limits(size);
  const auto list = shard::parse_parameter_list({reinterpret_cast<const char*>(data), size}, "fuzz.json");
  if (!list) {
    if (list.error().what.empty() || list.error().where.empty()) std::abort();
    return 0;
  }
  for (const shard::Parameter& p : *list) {
    std::int64_t elems = 1;
    for (const std::int64_t d : p.shape) elems *= d;
    if (p.name.empty() || elems != p.elems.count() || elems < 1) std::abort();
  }
  return 0;
}
