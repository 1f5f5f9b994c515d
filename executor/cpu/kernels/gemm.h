// Single-precision matrix product with bits that depend on the shape alone.
#pragma once

#include <cstdint>

#include "executor/cpu/kernels/store.h"
#include "executor/cpu/kernels/threads.h"

namespace shard::cpu {

/// Row-major operand: element (r, c) is data[r * stride + c], or data[c * stride + r] if transposed.
struct MatrixView {
  const float* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;
};

/// C[M,N] = A[M,K] * B[K,N] (Store::write) or += (Store::add), then + bias[N] on every row if bias is not null.
/// C is row-major with `c_stride`, and overlaps no operand. Computed by oneDNN's sgemm, single-threaded on tiles of C
/// whose edges depend on (M, N, K) only: the inner dimension is never split between threads. Store::add rounds once per
/// block of the inner dimension, so its bits differ from a product that is added afterwards.
/// The library packs operands into buffers of its own, freed when the call ends: at most 1.7 MiB per thread (measured,
/// oneDNN 2.6.3, layers of gpt2 and llama-7b), which the C library keeps for the next call.
void gemm(ThreadPool& pool, std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b, float* c,
          std::int64_t c_stride, Store store, const float* bias = nullptr);

/// C = alpha A B + beta C on the calling thread only, as one call of the library: for kernels that are inside a task.
/// Sets the calling thread's OpenMP team size to 1.
void gemm_tile(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, MatrixView a, MatrixView b, float beta,
               float* c, std::int64_t c_stride);

/// Makes the library generate its code and every thread of the pool hold its packing buffers, so that what the process
/// occupies no longer grows. The only function here that allocates (8 MiB, freed again).
void warm_up(ThreadPool& pool);

}  // namespace shard::cpu
