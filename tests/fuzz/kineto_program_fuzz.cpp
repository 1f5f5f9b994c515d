// Fuzz target: no bytes make the reader of a profiler's operators and kernels crash, or a kernel take no time or less.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "sim/cluster/read_cluster.h"
#include "sim/price/recording.h"
#include "tests/fuzz/limits.h"
#include "traces/import/kineto_program.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shard;
  static const cluster::Cluster card = *cluster::read_cluster("h100-80gb-x8");
  const fuzz::Limits limits(size);
  import::ByteSource source =
      import::ByteSource::memory(std::span(reinterpret_cast<const std::byte*>(data), size), "fuzz");
  const Result<import::KinetoProgram> read = import::read_kineto_program(source);
  if (!read) return 0;
  const price::LawsBeside beside = price::laws_beside(*read, card);
  for (const price::Beside& law : beside.laws)
    if (!(law.by_law.count() > 0) || !std::isfinite(law.by_law.count())) std::abort();
  return 0;
}
