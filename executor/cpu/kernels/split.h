// What tensor-parallel ranks do with parts of values: columns joined and taken, a bias added after a sum over ranks.
#pragma once

#include <cstdint>

#include "executor/cpu/kernels/threads.h"
#include "executor/kernels/elements.h"
#include "executor/kernels/shapes.h"

namespace shard::cpu {

/// y [rows, parts * columns]: part p of x [parts, rows, columns] becomes columns p * columns and following.
void join_columns(ThreadPool& pool, const ColumnParts& shape, ConstElements x, Elements y);
/// y [rows, columns]: part `part` of the columns of x [rows, parts * columns].
void take_columns(ThreadPool& pool, const ColumnParts& shape, std::int64_t part, ConstElements x, Elements y);

/// y [rows, columns] += bias [columns].
void add_bias(ThreadPool& pool, std::int64_t rows, std::int64_t columns, ConstElements bias, Elements y);

}  // namespace shard::cpu
