// Cards by name.
#include "sim/validate/machine.h"

#include <array>
#include <string_view>

namespace shard::validate {
namespace {

struct Known {
  std::string_view words;    ///< its name
  std::string_view cluster;  ///< an example; empty: none
  double gib;                ///< usable, as CUDA reports it; 0: the row's
  cluster::Card card;
  bool alike;  ///< the example is this card, not a neighbour of its generation
};
// Usable memory as PyTorch's messages of running out print it, remembered and not looked up: A100 39.39 and 79.15,
// H100 79.11, V100 31.74, RTX 3090 and 4090 23.6, B200 178.4. Multiprocessors and threads: NVIDIA's white papers.
constexpr std::array kCards{
    Known{"h100-sxm-96", "h100-80gb-x8", 94.99, {90, 132, 2048}, false},
    Known{"h100", "h100-80gb-x8", 79.11, {90, 132, 2048}, true},
    Known{"h800", "h100-80gb-x8", 79.11, {90, 132, 2048}, false},
    Known{"h200", "h200-141gb-x8", 139.8, {90, 132, 2048}, true},
    Known{"gb200", "b200-180gb-x8", 184.0, {100, 148, 2048}, false},
    Known{"gb300", "", 276.6, {103, 148, 2048}, false},
    Known{"b200", "b200-180gb-x8", 178.36, {100, 148, 2048}, true},
    Known{"a100-sxm-40", "a100-40gb-x8", 39.39, {80, 108, 2048}, true},
    Known{"a800", "a800-80gb-x8", 79.15, {80, 108, 2048}, true},
    Known{"a100", "a100-80gb-x8", 79.15, {80, 108, 2048}, true},
    Known{"v100-32", "v100-32gb-x8", 31.74, {70, 80, 2048}, true},
    Known{"v100", "v100-16gb-x8", 15.77, {70, 80, 2048}, true},
    Known{"rtx3090", "rtx3090-24gb-x1", 23.68, {86, 82, 1536}, true},
    Known{"rtx4090", "rtx4090-24gb-x1", 23.64, {89, 128, 1536}, true},
    Known{"rtx 5090", "", 31.36, {120, 170, 1536}, false},
    Known{"a6000", "", 47.53, {86, 84, 1536}, false},
};

}  // namespace

RunMachine machine_of(const PublishedRun& run) {
  constexpr double kGib = 1073741824.0;
  RunMachine m;
  if (run.gpu_bytes > 0) m.device_memory = Bytes{run.gpu_bytes};
  for (const Known& k : kCards) {
    if (run.gpu != k.words) continue;
    m = {.cluster = std::string(k.cluster),
         .card = k.card,
         .device_memory = Bytes{static_cast<std::int64_t>(k.gib * kGib)},
         .alike = k.alike};
    // A card sold in two sizes: the row's own, if it states one that is smaller.
    const auto stated = static_cast<double>(run.gpu_bytes);
    if (stated > 0 && stated < 0.9 * k.gib * kGib) m.device_memory = Bytes{static_cast<std::int64_t>(stated * 0.985)};
  }
  return m;
}

Bytes outside_allocator(const PublishedRun& run, const RunMachine& machine) {
  // Estimates, measured by nobody here: a process with PyTorch and cuBLAS loaded, and NCCL's buffers of 16 to 24
  // channels with their peers (NCCL_BUFFSIZE is 4 MiB). Only figures of nvidia-smi rest on them; docs/validation.md
  // lists them as such.
  const std::int64_t mib = 1048576;
  const std::int64_t context = machine.card && machine.card->compute_capability >= 90 ? 620 : 520;
  return Bytes{(context + (run.ranks > 1 ? 600 : 0)) * mib};
}

}  // namespace shard::validate
