// Matrix products in single precision, of operands of any type, with bits that depend on the shape alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "executor/cpu/kernels/threads.h"
#include "executor/kernels/elements.h"
#include "executor/kernels/store.h"

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

/// MatrixView of elements that are widened to fp32.
struct StoredMatrix {
  ConstElements data;
  std::int64_t stride = 0;
  bool transposed = false;
};

/// gemm() of widened operands, its result rounded once per element; A, B, C and bias may each have a type of its own.
/// Each tile is widened, multiplied and rounded by one thread, plan::kGemmInner of the inner dimension at a time: up to
/// there the result is gemm()'s, rounded, wherever the library computes alike for the strides of the operands and of
/// the widened panels; beyond it the order of the sum is another one.
/// workspace: at least the panels (plan::gemm_panels) of min(tiles, threads), 64-byte aligned.
void gemm_widened(ThreadPool& pool, std::int64_t m, std::int64_t n, std::int64_t k, StoredMatrix a, StoredMatrix b,
                  Elements c, std::int64_t c_stride, Store store, ConstElements bias, std::span<std::byte> workspace);

/// C = alpha A B + beta C on the calling thread only, as one call of the library: for kernels that are inside a task.
/// Sets the calling thread's OpenMP team size to 1.
void gemm_tile(std::int64_t m, std::int64_t n, std::int64_t k, float alpha, MatrixView a, MatrixView b, float beta,
               float* c, std::int64_t c_stride);

/// Makes the library generate its code and every thread of the pool hold its packing buffers, so that what the process
/// occupies no longer grows. The only function here that allocates (8 MiB, freed again).
void warm_up(ThreadPool& pool);

}  // namespace shard::cpu
