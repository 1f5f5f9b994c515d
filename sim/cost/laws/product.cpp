// The search over tiles and splits.
#include "sim/cost/laws/product.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sim/cost/laws/card_figures.h"

namespace shard::cost {
namespace {

struct Tile {
  double rows, columns;
};
constexpr std::array<Tile, 8> kTiles{
    {{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}, {64, 32}, {32, 64}}};
constexpr std::array<double, 4> kSplits{1, 2, 4, 8};
constexpr double kStep = 64;             ///< of k that a tile takes at once
constexpr double kShortestSplit = 256;   ///< shorter sums are not split
constexpr Seconds kSecondKernel{1e-6};   ///< which adds the parts up
constexpr double kShareOfTheSums = 0.5;  ///< of their traffic that is not hidden: caches hold the rest

}  // namespace

Seconds product_time(const ProductShape& shape, const cluster::ProductLaw& law, const cluster::Cluster& card) {
  const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n), k = static_cast<double>(shape.k);
  if (m * n * k == 0) return Seconds{0};
  const double processors = multiprocessors(card);
  const double peak = peak_of_16_bits(card);
  const double clocks = card.kernel_laws ? card.kernel_laws->clock_share : 1;
  const double of_one = peak * clocks * law.peak_share * shape.speed / processors;
  const double bandwidth = card.memory_bandwidth.count() * law.bandwidth_share;
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double reached = of_one / (1 + law.tile_traffic * (1 / tile.rows + 1 / tile.columns - 1.0 / 256 - 1.0 / 128));
    const double tiles = std::ceil(m / tile.rows) * std::ceil(n / tile.columns);
    for (const double split : kSplits) {
      const double depth = std::ceil(k / split / kStep) * kStep;
      if (split > 1 && depth < kShortestSplit) break;
      const double full = tiles * split / processors;
      const double waves = law.quantised_share * std::ceil(full) + (1 - law.quantised_share) * std::max(full, 1.0);
      double t = waves * 2 * tile.rows * tile.columns * (depth + law.ramp) / reached;
      if (split > 1) t += kShareOfTheSums * split * m * n * 8 / bandwidth + kSecondKernel.count();
      best = std::min(best, t);
    }
  }
  const double moved = (m * k + k * n) * shape.operand_bytes + m * n * shape.result_bytes;
  return Seconds{law.floor.count() + std::max(best, moved / bandwidth)};
}

Seconds vector_product_time(double batch, const ProductShape& shape, const cluster::Cluster& card) {
  constexpr double kReached = 0.8, kTileOfAll = 64, kStepOfAll = 8, kBytesOfFp32 = 4;
  const auto up = [](std::int64_t n, double to) { return std::ceil(static_cast<double>(n) / to) * to; };
  const double flops = 2 * batch * up(shape.m, kTileOfAll) * up(shape.n, kTileOfAll) * up(shape.k, kStepOfAll);
  const double peak = card.peak_fp32.count() * (shape.operand_bytes > kBytesOfFp32 ? 0.5 : 1);
  return Seconds{card.kernel_laws->product.floor.count() + flops / (kReached * peak)};
}

}  // namespace shard::cost
