// Exact sum of squares over any number of parts, and the first element that is not finite: order and cut never matter.
#pragma once

#include <cstdint>
#include <limits>

#include "executor/cpu/kernels/threads.h"
#include "executor/kernels/elements.h"
#include "executor/kernels/gradient_facts.h"

namespace shard::cpu {

/// Adds the squares of n elements; element i has the key first_key + i. Bits of `facts` do not depend on threads.
void square_sum_add(ThreadPool& pool, ConstElements x, std::int64_t n, std::int64_t first_key, GradientFacts& facts);

/// `into` becomes what is known of both. Plain additions and a minimum.
void combine(const GradientFacts& other, GradientFacts& into);

/// The sum of the squares of the finite elements, rounded once to the nearest double, ties to even.
[[nodiscard]] double square_sum(const GradientFacts& facts);

}  // namespace shard::cpu
