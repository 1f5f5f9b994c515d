// cuBLAS, cuBLASLt and others: handles, and answers that need no device.
#include <cstddef>
#include <cstring>

#include "profiler/standin/behind.h"
#include "profiler/standin/card.h"
#include "profiler/standin/device_memory.h"
#include "profiler/standin/handles.h"

using namespace shard::standin;

namespace {

int hand_out(void** handle) {
  *handle = fresh_handle();
  return kSuccess;
}

int product(void* to) {
  behind().launch();
  written_by_kernel(to);
  return kSuccess;
}

}  // namespace

// --- cuBLAS ---

STANDIN int cublasCreate_v2(void** handle) {
  return hand_out(handle);
}
STANDIN int cublasGetMathMode(void*, int* mode) {
  *mode = 0;
  return kSuccess;
}
STANDIN int cublasGetPointerMode_v2(void*, int* mode) {
  *mode = 0;
  return kSuccess;
}
STANDIN int cublasLtCreate(void** handle) {
  return hand_out(handle);
}
STANDIN int cublasLtMatmulDescCreate(void** handle, int, int) {
  return hand_out(handle);
}
STANDIN int cublasLtMatmulPreferenceCreate(void** handle) {
  return hand_out(handle);
}
STANDIN int cublasLtMatrixLayoutCreate(void** handle, int, unsigned long long, unsigned long long, long long) {
  return hand_out(handle);
}
/// One algorithm that needs no workspace: PyTorch allocates its own before it asks.
STANDIN int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int, void* results,
                                           int* found) {
  constexpr std::size_t kBytesOfResult = 96;
  std::memset(results, 0, kBytesOfResult);
  *found = 1;
  return kSuccess;
}

// Products: what stood where they write is gone.

STANDIN int cublasLtMatmul(void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*,
                           void*, void* to) {
  return product(to);
}
STANDIN int cublasSgemm_v2(void*, int, int, int, int, int, const void*, const void*, int, const void*, int, const void*,
                           void* to) {
  return product(to);
}
STANDIN int cublasGemmEx(void*, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int,
                         const void*, void* to) {
  return product(to);
}
STANDIN int cublasSgemmStridedBatched(void*, int, int, int, int, int, const void*, const void*, int, long long,
                                      const void*, int, long long, const void*, void* to) {
  return product(to);
}
STANDIN int cublasGemmStridedBatchedEx(void*, int, int, int, int, int, const void*, const void*, int, int, long long,
                                       const void*, int, int, long long, const void*, void* to) {
  return product(to);
}

// --- Others: handles ---

STANDIN int cusparseCreate(void** handle) {
  return hand_out(handle);
}
STANDIN int cusolverDnCreate(void** handle) {
  return hand_out(handle);
}
