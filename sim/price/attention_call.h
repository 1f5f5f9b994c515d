// Attention in one kernel: which operators it is, and what they were called with.
#pragma once

#include <optional>

#include "sim/cluster/cluster.h"
#include "sim/cost/laws/attention.h"
#include "sim/price/kernel_call.h"

namespace shard::price {

struct AttentionCall {
  cost::AttentionShape shape;
  cluster::AttentionKernel kernel = cluster::AttentionKernel::flash_2;
  double doubt = 0.2;
  bool is_main = false;  ///< false: a kernel before or behind the one that computes
};

/// None of another operator.
[[nodiscard]] std::optional<AttentionCall> attention_of(const KernelCall& call);

}  // namespace shard::price
