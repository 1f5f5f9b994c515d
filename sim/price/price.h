// The time of a kernel by the law that it obeys.
#pragma once

#include <optional>
#include <string_view>

#include "sim/cluster/cluster.h"
#include "sim/price/kernel_call.h"
#include "traces/base/units.h"

namespace shard::price {

struct Priced {
  Seconds time;
  double doubt = 0;      ///< relative: what the law is off by on data that it was not made from (sim/cost/MODELS.md)
  std::string_view law;  ///< "products", "attention", "elementwise", ...: a literal
};

/// What a product takes more in a program, whose operands are not in the cache, than where it is repeated, as the law
/// has it (sim/cost/MODELS.md#kernels-of-recordings).
inline constexpr Seconds kColdOperands{2.2e-6};

/// None where no law says anything, never zero. `card` has kernel_laws. Sizes are the operator's; where one operator
/// launches several kernels each is priced by its own part.
[[nodiscard]] std::optional<Priced> price(const KernelCall& call, const cluster::Cluster& card);

}  // namespace shard::price
