// What DeepSpeed's stages have in common.
#pragma once

#include "sim/like/eager/runtime.h"

namespace shard::like::eager {

/// The norm of so many elements, computed of a copy in fp64.
[[nodiscard]] Tensor wide_norm(Runtime& r, std::int64_t elements);

}  // namespace shard::like::eager
