// Measured bounds by card, each with where it was measured.
#include "sim/cluster/outside.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace shard::cluster {
namespace {

constexpr std::int32_t kAnyCard = 999;

constexpr ByteRange mib(std::int64_t low, std::int64_t high) {
  return {Bytes{low << 20}, Bytes{high << 20}};
}

// "In use" is what PyTorch's message of running out calls "this process has ... memory in use", less what it says is
// allocated and what is reserved. cuBLAS's workspaces are inside of the allocator, cuDNN's and the handles are in it.
// Where a message does not name its card, the capacity that it prints stands for it. Bounds are rounded away from what
// was seen: few runs, no two of one card with one driver.
constexpr std::array kRows{
    OutsideRow{"context", KernelLoading::lazy, 0, 79, mib(192, 512),
               "in use, card of 10.74 GiB: 0.19 GiB (github.com/lllyasviel/FramePack/issues/369); about 400 MB "
               "(github.com/pytorch/pytorch/issues/109888)"},
    OutsideRow{"context", KernelLoading::lazy, 80, 89, mib(300, 640),
               "300-odd MB, card not said (github.com/pytorch/pytorch/issues/107667); in use, A100 of 39.50 GiB: 0.49 "
               "GiB (github.com/TianheWu/CoSeR/issues/10); cards of 79.25 GiB: 0.48 and 0.52 GiB, messages in files "
               "whose repository is not known"},
    OutsideRow{"context", KernelLoading::lazy, 90, 99, mib(512, 800),
               "in use: 0.50 GiB, card of 79.33 GiB (github.com/Tianhao-Qi/Mask2DiT/issues/4); H100 PCIe 0.59 GiB, "
               "H100 0.74 GiB, messages in files whose repository is not known"},
    OutsideRow{"context", KernelLoading::lazy, 100, kAnyCard, mib(300, 800),
               "in use, card of 31.47 GiB: 0.30 GiB (github.com/murong-xu/CADS/issues/4); card of 31.36 GiB: 0.58 GiB, "
               "a message in a file whose repository is not known; the high bound as of 9.0"},
    OutsideRow{"context", KernelLoading::all, 0, kAnyCard, mib(860, 1520),
               "nvidia-smi less the tensor: PyTorch 1.6 on an RTX 2080 Ti 0.86 GiB, 1.7.1 on an RTX 3090 1.45 GiB "
               "(github.com/pytorch/pytorch/issues/49877); 1.3 on a Titan V 1005 MiB (28394)"},
    OutsideRow{"nccl", KernelLoading::lazy, 0, 89, mib(256, 1024),
               "two ranks on cards of 81,050 MiB: 789 MiB with the context "
               "(github.com/meta-pytorch/torchrec/pull/3580); 4 x A100, NVLink: 688 MB a group "
               "(github.com/NVIDIA/nccl/issues/964); in use, several ranks on cards of 63.29 GiB: 1.49 GiB with the "
               "context (github.com/minerva4ai-eu/minerva-benchmarks/issues/42)"},
    OutsideRow{
        "nccl", KernelLoading::lazy, 90, kAnyCard, mib(384, 1280),
        "8 x H100: 1.06 GB before the first all-to-all, PyTorch's allocator left out "
        "(github.com/NVIDIA/nccl/issues/1685); about 1.6 GB with one communicator, card not said (864); the high "
        "bound is an estimate: NVLS's buffers were not seen"},
};

/// Of all rows that hold: one for a card that is known.
ByteRange bounds(std::string_view what, KernelLoading loading, const std::optional<Card>& card) {
  std::optional<ByteRange> bytes;
  for (const OutsideRow& row : kRows) {
    if (row.what != what || row.loading != loading) continue;
    if (card && (card->compute_capability < row.from || card->compute_capability > row.to)) continue;
    bytes = bytes ? ByteRange{std::min(bytes->low, row.bytes.low), std::max(bytes->high, row.bytes.high)} : row.bytes;
  }
  return bytes.value_or(ByteRange{});
}

}  // namespace

std::span<const OutsideRow> outside_rows() {
  return kRows;
}

ByteRange outside_allocator(const Cluster& cluster, std::int32_t ranks, KernelLoading loading) {
  if (cluster.device != DeviceKind::cuda) return {};
  const bool without_context = cluster.device_overhead > Bytes{0};
  const ByteRange context = without_context ? ByteRange{} : bounds("context", loading, cluster.card);
  return ranks > 1 ? context + bounds("nccl", KernelLoading::lazy, cluster.card) : context;
}

}  // namespace shard::cluster
