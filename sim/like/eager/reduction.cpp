// setReduceConfig of PyTorch, as far as it decides memory.
#include "sim/like/eager/reduction.h"

#include <algorithm>
#include <bit>

#include "traces/base/division.h"

namespace shard::like::eager {
namespace {

constexpr std::int64_t kWarp = 32;
constexpr std::int64_t kMostThreads = 512;
constexpr std::int64_t kVector = 4;
constexpr std::int64_t kAccumulatorBytes = 4;
constexpr std::int64_t kLeastValues = 16;  ///< per thread
constexpr std::int64_t kMostValues = 256;

std::int64_t last_power_of_2(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1))));
}

/// Dimensions of one kind, innermost first, those that lie one in the other together.
struct Merged {
  Dims sizes, strides;

  void add(std::int64_t size, std::int64_t stride) {
    if (size == 1) return;
    std::size_t at = sizes.rank;
    sizes.push(size);
    strides.push(stride);
    for (; at > 0 && strides[at - 1] > strides[at]; --at) {
      std::swap(sizes[at - 1], sizes[at]);
      std::swap(strides[at - 1], strides[at]);
    }
  }
  void merge() {
    std::size_t last = 0;
    for (std::size_t i = 1; i < sizes.rank; ++i) {
      if (strides[i] == strides[last] * sizes[last]) {
        sizes[last] *= sizes[i];
      } else {
        ++last;
        sizes[last] = sizes[i];
        strides[last] = strides[i];
      }
    }
    if (sizes.rank > 0) sizes.rank = strides.rank = last + 1;
  }
};

struct Blocks {
  std::int64_t width = 1, height = 1;
  Blocks(std::int64_t dim0, std::int64_t dim1, std::int64_t vector) {
    const std::int64_t most = kMostThreads / vector;
    const std::int64_t a = dim0 < most ? last_power_of_2(dim0) : most;
    const std::int64_t b = dim1 < most ? last_power_of_2(dim1) : most;
    width = std::min(a, kWarp);
    height = std::min(b, most / width);
    width = std::min(a, most / height);
  }
};

/// How many elements of the outputs are loaded at once.
std::int64_t output_vector(const Merged& kept, const Merged& reduced) {
  std::int64_t vector = kVector;
  const auto fit = [&](std::int64_t n) {
    while (n % vector != 0) vector /= 2;
  };
  fit(kept.sizes[0]);
  for (std::size_t i = 1; i < kept.strides.rank; ++i) fit(kept.strides[i]);
  for (std::size_t i = 0; i < reduced.strides.rank; ++i) fit(reduced.strides[i]);
  return vector;
}

}  // namespace

ReductionBuffers reduction_buffers(const Dims& sizes, const Dims& strides, std::uint32_t reduced_bits,
                                   const Machine& machine) {
  Merged reduced, kept;
  for (std::size_t i = 0; i < sizes.rank; ++i)
    ((reduced_bits >> i & 1U) != 0 ? reduced : kept).add(sizes[i], strides[i]);
  reduced.merge();
  kept.merge();
  const std::int64_t outputs = kept.sizes.product(), inputs = reduced.sizes.product();
  if (inputs == 1) return {};
  const bool along = kept.sizes.rank == 0 || reduced.strides[0] < kept.strides[0];
  std::int64_t dim0 = along ? inputs : outputs;
  const std::int64_t dim1 = along ? outputs : inputs;
  std::int64_t vector = 1;
  if ((along ? reduced.strides[0] : kept.strides[0]) == 1) {
    if (along && dim0 > 128 && kept.sizes.rank + reduced.sizes.rank == 1) dim0 /= kVector;
    if (!along) dim0 /= vector = output_vector(kept, reduced);
  }
  const Blocks block(dim0, dim1, vector);
  std::int64_t step_input = 1, step_output = 1;
  (along ? step_input : step_output) *= block.width;
  const auto values = [&] { return divide_up(inputs, step_input); };
  const bool across_warps = values() >= std::min(block.height * kLeastValues, kMostValues);
  (across_warps ? step_input : step_output) *= block.height;
  const std::int64_t target =
      machine.multiprocessors * (machine.threads_per_multiprocessor / (block.width * block.height));
  const std::int64_t grid = divide_up(outputs / vector, step_output);
  if (!across_warps || values() < kMostValues || grid > target) return {};
  const std::int64_t parts =
      std::max(std::min(divide_up(target, grid), divide_up(values(), kLeastValues)), divide_up(values(), kMostValues));
  if (parts <= 1) return {};
  std::int64_t partial = kAccumulatorBytes * outputs * parts;
  if (!along) partial *= block.width * vector;
  return {.partial = Bytes{partial}, .semaphores = Bytes{4 * grid}};
}

}  // namespace shard::like::eager
