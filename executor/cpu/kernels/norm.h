// Layer norm and RMS norm over the last dimension, forward and backward.
#pragma once

#include <cstdint>

#include "executor/cpu/kernels/threads.h"
#include "executor/kernels/elements.h"
#include "executor/kernels/shapes.h"
#include "executor/kernels/store.h"

namespace shard::cpu {

// Statistics (mean, rstd) are fp32, whatever the type of the rest.

/// mean [T] = E[x], rstd [T] = 1 / sqrt(Var[x] + epsilon) (biased variance, two passes), y = (x - mean) rstd weight +
/// bias. y may be x.
void layer_norm_forward(ThreadPool& pool, const NormShape& shape, float epsilon, ConstElements x, ConstElements weight,
                        ConstElements bias, Elements y, float* mean, float* rstd);

/// dx [T,C] = or += (dx_store); dweight, dbias [C] = or += (parameter_store). With h = (x - mean) rstd and g = dy
/// weight: dx = rstd (g - E[g] - h E[g h]), dweight = sum over rows of dy h, dbias = sum over rows of dy. With
/// Store::write dx may be dy. Sums over rows go by blocks of 32 rows in order of rows. Any of dx, dweight and dbias may
/// be null: then it is not computed.
void layer_norm_backward(ThreadPool& pool, const NormShape& shape, ConstElements x, ConstElements weight,
                         const float* mean, const float* rstd, ConstElements dy, Elements dx, Store dx_store,
                         Elements dweight, Elements dbias, Store parameter_store = Store::write);

/// rstd [T] = 1 / sqrt(E[x^2] + epsilon), y = x rstd (weight_offset + weight). y may be x.
void rms_norm_forward(ThreadPool& pool, const NormShape& shape, float epsilon, ConstElements x, ConstElements weight,
                      Elements y, float* rstd);

/// As layer_norm_backward with mean 0 and no E[g] term.
void rms_norm_backward(ThreadPool& pool, const NormShape& shape, ConstElements x, ConstElements weight,
                       const float* rstd, ConstElements dy, Elements dx, Store dx_store, Elements dweight,
                       Store parameter_store = Store::write);

}  // namespace shard::cpu
