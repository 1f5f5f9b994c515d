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

/// None where no law says anything, never zero. `card` has kernel_laws. Sizes are the operator's; where one operator
/// launches several kernels each is priced by its own part.
[[nodiscard]] std::optional<Priced> price(const KernelCall& call, const cluster::Cluster& card);

}  // namespace shard::price
