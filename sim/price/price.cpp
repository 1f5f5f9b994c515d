// Products, attention and convolutions by what they compute; everything else by what it moves.
#include "sim/price/price.h"

#include <algorithm>
#include <cmath>

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

constexpr double kUnaligned = 0.23;  ///< of the speed on newer cards, where rows do not begin at 16 bytes
constexpr double kDoubtOfProducts = 0.08, kDoubtOfOtherProducts = 0.25, kDoubtOfConvolutions = 0.5;

/// Beside products in 16 bits: what the units that compute have at their peak.
double speed_of(double operand_bytes, bool tensor_cores, const cluster::Cluster& card) {
  if (operand_bytes < 1) return 4;
  if (operand_bytes < 2) return 2;
  if (operand_bytes < 4) return 1;
  const double peak = cost::peak_of_16_bits(card);
  const double vector = card.peak_fp32.count() / peak;
  if (operand_bytes > 4) return vector / 2;
  return tensor_cores ? cost::peak_of_tf32(card) / peak : vector;
}

bool is_newer(const cluster::Cluster& card) {
  constexpr int kHopper = 90;
  return card.card && card.card->compute_capability >= kHopper;
}

/// A kernel's floor is an A100's on all cards; on newer ones it is a microsecond less (recordings of H100).
Seconds alone(Seconds time, const cluster::Cluster& card) {
  constexpr double kLess = 1e-6, kLeast = 0.5e-6;
  return is_newer(card) ? Seconds{std::max(time.count() - kLess, kLeast)} : time;
}

/// Of the speed, where rows do not begin at 16 bytes and the newest units cannot be fed, or the kernel that was taken
/// is of an older card (recordings of H100).
double share_of_speed(const KernelCall& call, const ProductCall& product, const cluster::Cluster& card) {
  if (!is_newer(card) || product.operand_bytes != 2) return 1;
  constexpr double kPairs = 0.5, kOlder = 0.6;
  constexpr std::int64_t kPair = 2, kAligned = 8;
  if (has(call.name, "align1")) return kUnaligned;
  if (has(call.name, "align2")) return kPairs;
  if (has_any(call.name, "cutlass_80", "cutlass_75", "ampere_", "sm80_")) return kOlder;
  if (!call.name.starts_with("cublas") && !call.name.empty()) return 1;
  // Of one call it is not known which of its sizes is which row.
  const std::int64_t all = product.m | product.k;
  return all % kPair != 0 ? kUnaligned : all % kAligned != 0 ? kPairs : 1;
}

/// Of the speed in TF32, where rows do not begin at 16 bytes (recordings of A100: 53 to 64 Tflop/s).
double share_of_tf32(const KernelCall& call, const ProductCall& product) {
  constexpr double kUnalignedTf32 = 0.5;
  constexpr std::int64_t kAligned = 4;
  if (product.operand_bytes != 4 || !product.tensor_cores) return 1;
  if (call.name.empty() || call.name.starts_with("cublas"))
    return (product.m | product.k) % kAligned == 0 ? 1 : kUnalignedTf32;
  return has(call.name, "align1") && !has(call.name, "align16") ? kUnalignedTf32 : 1;
}

Priced product(const KernelCall& kernel, const ProductCall& call, const cluster::Cluster& card) {
  const auto m = static_cast<double>(call.m), n = static_cast<double>(call.n), k = static_cast<double>(call.k);
  const double moved =
      static_cast<double>(call.batch) * ((m * k + k * n) * call.operand_bytes + m * n * call.result_bytes);
  Seconds time{};
  if (call.operand_bytes >= 4 && !call.tensor_cores) {
    time =
        cost::vector_product_time(static_cast<double>(call.batch),
                                  {.m = call.m, .n = call.n, .k = call.k, .operand_bytes = call.operand_bytes}, card);
  } else {
    // Tiles do not reach over products of a batch.
    constexpr std::int64_t kTile = 64, kSmallTile = 16;
    const std::int64_t tile = call.m < kTile / 2 ? kSmallTile : kTile;
    const double share = share_of_speed(kernel, call, card) * share_of_tf32(kernel, call);
    // Kernels for rows that do not begin at 16 bytes have large tiles alone.
    constexpr std::int64_t kLargeTile = 128;
    const std::int64_t least = share <= kUnaligned ? kLargeTile : call.batch == 1 ? 1 : tile;
    const auto up = [least](std::int64_t size) { return (size + least - 1) / least * least; };
    const cost::ProductShape shape{.m = up(call.m) * call.batch,
                                   .n = share <= kUnaligned ? up(call.n) : call.n,
                                   .k = call.k,
                                   .operand_bytes = call.operand_bytes,
                                   .result_bytes = call.result_bytes,
                                   .speed = speed_of(call.operand_bytes, call.tensor_cores, card) * share};
    time = cost::product_time(shape, card.kernel_laws->sustained(), card) + kColdOperands;
  }
  time = Seconds{std::max(time.count(), cost::moved_time(moved, card).count())};
  return {.time = time, .doubt = call.operand_bytes == 2 ? kDoubtOfProducts : kDoubtOfOtherProducts, .law = "products"};
}

Priced convolution(const ConvolutionCall& call, const cluster::Cluster& card) {
  const cost::ProductShape shape{.m = call.m,
                                 .n = call.n * std::min(call.groups, kMostOfSize / std::max<std::int64_t>(1, call.n)),
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
  if (const std::optional<ProductCall> found = product_of(call)) return product(call, *found, card);
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
  if (!beside && is_convolution(call)) return {};
  if (const std::optional<Moved> moved = moved_by(call))
    return Priced{.time = moved->reduces
                              ? cost::moved_time(moved->bytes, card, true)  // whose parts wait for one another
                              : alone(cost::moved_time(moved->bytes, card), card),
                  .doubt = moved->doubt,
                  .law = moved->law};
  return {};
}

}  // namespace shard::price
