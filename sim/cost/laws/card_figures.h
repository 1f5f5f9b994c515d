// What laws of kernels need of a card's data sheet.
#pragma once

#include "sim/cluster/cluster.h"
#include "traces/base/units.h"

namespace shard::cost {

/// Of products in 16 bits, dense; of a card that has none that of fp32.
[[nodiscard]] inline double peak_of_16_bits(const cluster::Cluster& card) {
  return (card.peak_bf16 ? *card.peak_bf16 : card.peak_fp16.value_or(card.peak_fp32)).count();
}

/// Of products of fp32 on tensor cores; of a card that has no TF32 that of fp32.
[[nodiscard]] inline double peak_of_tf32(const cluster::Cluster& card) {
  return card.peak_tf32.value_or(card.peak_fp32).count();
}

/// Of a card that does not say, an A100's.
[[nodiscard]] inline double multiprocessors(const cluster::Cluster& card) {
  constexpr double kUsual = 108;
  return card.card && card.card->multiprocessors > 0 ? card.card->multiprocessors : kUsual;
}

}  // namespace shard::cost
