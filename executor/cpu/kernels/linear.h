// Linear layers: y = x W^T + b, and its gradients, for both weight layouts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "executor/cpu/kernels/threads.h"
#include "executor/kernels/elements.h"
#include "executor/kernels/shapes.h"
#include "executor/kernels/store.h"

namespace shard::cpu {

// `workspace`: at least plan::compute_workspace() bytes for this pool's threads, 64-byte aligned; none in fp32. Sums
// are those of gemm() in fp32, of gemm_widened() in 16 bits.

/// x [T,I], bias [O] or null -> y [T,O].
void linear_forward(ThreadPool& pool, const LinearShape& shape, ConstElements x, ConstElements weight,
                    ConstElements bias, Elements y, std::span<std::byte> workspace = {});

/// dx [T,I] = (or +=) dy [T,O] * W.
void linear_backward_input(ThreadPool& pool, const LinearShape& shape, ConstElements dy, ConstElements weight,
                           Elements dx, Store store, std::span<std::byte> workspace = {});

/// dweight (laid out as weight) = (or +=) the sum over rows of dy (x) x; dbias [O] = (or +=) the sum over rows of dy,
/// unless null. The bias sum adds blocks of 32 rows in order of rows.
void linear_backward_weight(ThreadPool& pool, const LinearShape& shape, ConstElements x, ConstElements dy,
                            Elements dweight, Elements dbias, Store store, std::span<std::byte> workspace = {});

/// dbias [O] = (or +=) the sum over rows of dy [T,O], as linear_backward_weight sums it.
void bias_gradient(ThreadPool& pool, std::int64_t rows, std::int64_t columns, ConstElements dy, Elements dbias,
                   Store store);

}  // namespace shard::cpu
