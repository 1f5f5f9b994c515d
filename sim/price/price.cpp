// Products, attention and convolutions by what they compute; everything else by what it moves.
#include "sim/price/price.h"

#include <algorithm>

#include "sim/cost/laws/card_figures.h"
#include "sim/cost/laws/moved.h"
#include "sim/cost/laws/product.h"
#include "sim/price/attention_call.h"
#include "sim/price/convolution_call.h"
#include "sim/price/moved_rules.h"
#include "sim/price/product_call.h"
#include "sim/price/tensors.h"

namespace shard::price {
namespace {

constexpr double kDoubtOfProducts = 0.08, kDoubtOfOtherProducts = 0.25, kDoubtOfConvolutions = 0.5;

/// Beside products in 16 bits: what the units that compute have at their peak.
double speed_of(double operand_bytes, bool tensor_cores, const cluster::Cluster& card) {
  if (operand_bytes < 1) return 4;
  if (operand_bytes < 2) return 2;
  if (operand_bytes < 4) return 1;
  const double peak = cost::peak_of_16_bits(card);
  const double vector = card.peak_fp32.count() / peak;
  if (operand_bytes > 4) return vector / 2;
  return tensor_cores && card.peak_tf32 ? card.peak_tf32->count() / peak : vector;
}

Priced product(const ProductCall& call, const cluster::Cluster& card) {
  // Tiles do not reach over products of a batch.
  constexpr std::int64_t kSmallestTile = 64;
  const std::int64_t rows = call.batch == 1 ? call.m : (call.m + kSmallestTile - 1) / kSmallestTile * kSmallestTile;
  const cost::ProductShape shape{.m = rows * call.batch,
                                 .n = call.n,
                                 .k = call.k,
                                 .operand_bytes = call.operand_bytes,
                                 .result_bytes = call.result_bytes,
                                 .speed = speed_of(call.operand_bytes, call.tensor_cores, card)};
  Seconds time = cost::product_time(shape, card.kernel_laws->sustained(), card);
  const auto m = static_cast<double>(call.m), n = static_cast<double>(call.n), k = static_cast<double>(call.k);
  const double moved =
      static_cast<double>(call.batch) * ((m * k + k * n) * call.operand_bytes + m * n * call.result_bytes);
  time = Seconds{std::max(time.count(), cost::moved_time(moved, card).count())};
  return {.time = time, .doubt = call.operand_bytes == 2 ? kDoubtOfProducts : kDoubtOfOtherProducts, .law = "products"};
}

Priced convolution(const ConvolutionCall& call, const cluster::Cluster& card) {
  const cost::ProductShape shape{.m = call.m,
                                 .n = call.n * call.groups,
                                 .k = call.k,
                                 .operand_bytes = 0,
                                 .result_bytes = 0,
                                 .speed = speed_of(call.element_bytes, true, card)};
  const double computes = cost::product_time(shape, card.kernel_laws->sustained(), card).count();
  const double moves = cost::moved_time(call.moved_bytes, card).count();
  return {.time = Seconds{std::max(computes, moves)}, .doubt = kDoubtOfConvolutions, .law = "convolutions"};
}

}  // namespace

std::optional<Priced> price(const KernelCall& call, const cluster::Cluster& card) {
  if (const std::optional<ProductCall> found = product_of(call)) return product(*found, card);
  if (const std::optional<AttentionCall> found = attention_of(call)) {
    if (found->is_main)
      return Priced{
          .time = cost::attention_time(found->shape, found->kernel, card), .doubt = found->doubt, .law = "attention"};
    const double one = call.op->inputs.empty() ? 0 : bytes(call.op->inputs.front());
    return Priced{.time = cost::moved_time(2 * one, card), .doubt = 0.5, .law = "attention"};
  }
  const bool beside = has_any(call.name, "elementwise", "nchwToNhwc", "nhwcToNchw", "reduce_kernel");
  if (const std::optional<ConvolutionCall> found = beside ? std::nullopt : convolution_of(call))
    return convolution(*found, card);
  if (const std::optional<Moved> moved = moved_by(call))
    return Priced{
        .time = cost::moved_time(moved->bytes, card, moved->reduces), .doubt = moved->doubt, .law = moved->law};
  return {};
}

}  // namespace shard::price
