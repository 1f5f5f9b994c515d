// What DeepSpeed's stages have in common.
#pragma once

#include <string_view>

#include "sim/like/eager/optimizers.h"
#include "sim/like/eager/sharding.h"

namespace shard::like::eager {

/// The norm of so many elements, computed of a copy in fp64.
[[nodiscard]] Tensor wide_norm(Runtime& r, std::int64_t elements);

/// A vector in the host's memory, which is pageable where it is not said otherwise.
[[nodiscard]] Tensor host_vector(Runtime& r, std::string_view name, Category category, std::int64_t elements,
                                 Scalar scalar, bool pinned = false);
/// The same, made pageable and then copied into pinned memory where that is wanted.
[[nodiscard]] Tensor pinned_copy(Runtime& r, std::string_view name, Category category, std::int64_t elements,
                                 Scalar scalar, bool pinned);
/// DeepSpeedCPUAdam's.
[[nodiscard]] Tensors states_on_host(Runtime& r, Rule rule, std::int64_t elements, Scalar scalar);

[[nodiscard]] std::unique_ptr<Sharding> deepspeed_stage3(Runtime& runtime, const ShardingOptions& options);

}  // namespace shard::like::eager
