// Kernels whose time is that of the bytes they move: which bytes, by operator and kernel.
#pragma once

#include <optional>

#include "sim/price/kernel_call.h"

namespace shard::price {

struct Moved {
  double bytes = 0;      ///< read and written
  bool reduces = false;  ///< as norms do, whose passes do not overlap as well
  double doubt = 0.1;
  std::string_view law;  ///< a literal
};

/// Of one kernel. None where nobody knows what it moves.
[[nodiscard]] std::optional<Moved> moved_by(const KernelCall& call);

}  // namespace shard::price
