// Cards by name.
#include "sim/validate/machine.h"

#include <array>
#include <cassert>

#include "sim/cluster/outside.h"
#include "sim/cluster/read_cluster.h"

namespace shard::validate {
namespace {

struct Known {
  std::string_view words;    ///< its name
  std::string_view cluster;  ///< an example; empty: none
  bool alike;                ///< the example is this card, not a neighbour of its generation
  double gib = 0;            ///< of cards that no example has: usable, as CUDA reports it
  cluster::Card card{};
};
// examples/clusters say what CUDA reports of their cards, each with its source; drivers differ by up to 0.1 GiB. Of the
// others usable memory is remembered and not looked up; multiprocessors and threads: NVIDIA's white papers.
constexpr std::array kCards{
    Known{"h100-sxm-96", "h100-80gb-x8", false, 94.99, {90, 132, 2048}},
    Known{"h100", "h100-80gb-x8", true},
    Known{"h800", "h100-80gb-x8", false, 79.11, {90, 132, 2048}},
    Known{"h200", "h200-141gb-x8", true},
    Known{"gb200", "gb200-186gb-x4", true},
    Known{"gb300", "gb300-279gb-x4", true},
    Known{"b200", "b200-180gb-x8", true},
    Known{"a100-sxm-40", "a100-40gb-x8", true},
    Known{"a800", "a800-80gb-x8", true},
    Known{"a100", "a100-80gb-x8", true},
    Known{"v100-32", "v100-32gb-x8", true},
    Known{"v100", "v100-16gb-x8", true},
    Known{"rtx3090", "rtx3090-24gb-x1", true},
    Known{"rtx4090", "rtx4090-24gb-x1", true},
    Known{"rtx 5090", "", false, 31.36, {120, 170, 1536}},
    Known{"a6000", "", false, 47.53, {86, 84, 1536}},
};

struct CardFacts {
  Bytes memory;
  cluster::Card card;
};

CardFacts facts_of(const Known& known) {
  if (!known.alike) return {Bytes{static_cast<std::int64_t>(known.gib * 1073741824.0)}, known.card};
  const Result<cluster::Cluster> example = cluster::read_cluster(known.cluster);
  assert(example && example->device_memory && example->card && "an example with its card");
  return {*example->device_memory, *example->card};
}

}  // namespace

RunMachine machine_of(const PublishedRun& run) {
  RunMachine m;
  if (run.gpu_bytes > 0) m.device_memory = Bytes{run.gpu_bytes};
  for (const Known& k : kCards) {
    if (run.gpu != k.words) continue;
    const CardFacts facts = facts_of(k);
    m = {.cluster = std::string(k.cluster), .card = facts.card, .device_memory = facts.memory, .alike = k.alike};
    // A card sold in two sizes: the row's own, if it states one that is smaller.
    const auto stated = static_cast<double>(run.gpu_bytes);
    if (stated > 0 && stated < 0.9 * static_cast<double>(facts.memory.count()))
      m.device_memory = Bytes{static_cast<std::int64_t>(stated * 0.985)};
    break;
  }
  return m;
}

Bytes outside_allocator(const PublishedRun& run, const RunMachine& machine) {
  // The middle of what was seen. Only figures of nvidia-smi rest on it; docs/validation.md lists it.
  cluster::Cluster one;
  one.card = machine.card;
  const cluster::ByteRange range = cluster::outside_allocator(one, static_cast<std::int32_t>(run.ranks));
  return Bytes{(range.low + range.high).count() / 2};
}

}  // namespace shard::validate
