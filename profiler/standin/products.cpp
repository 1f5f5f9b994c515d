// Products of cuBLAS and cuBLASLt: what stood where they write is gone, and what was asked for is kept.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "profiler/standin/behind.h"
#include "profiler/standin/cuda_types.h"
#include "profiler/standin/device_memory.h"
#include "profiler/standin/handles.h"
#include "profiler/standin/work.h"

using namespace shard::standin;

namespace {

constexpr int kComputeFloat = 68;        // CUBLAS_COMPUTE_32F
constexpr int kNotTransposed = 0;        // CUBLAS_OP_N
constexpr int kTransposesA = 3;          // CUBLASLT_MATMUL_DESC_TRANSA
constexpr int kBatchCount = 5;           // CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT
constexpr int kRows = 2, kColumns = 3;   // CUBLASLT_MATRIX_LAYOUT_ROWS, _COLS
constexpr int kLeading = 4;              // CUBLASLT_MATRIX_LAYOUT_LD
constexpr int kTypeOfLayout = 0;         // CUBLASLT_MATRIX_LAYOUT_TYPE
constexpr int kComputeTensorFloat = 77;  // CUBLAS_COMPUTE_32F_FAST_TF32
constexpr int kMathModeTensorFloat = 3;  // CUBLAS_TF32_TENSOR_OP_MATH

/// What a caller told of a handle.
struct Told {
  std::mutex mutex;
  std::unordered_map<const void*, const void*> streams;
  std::unordered_map<const void*, int> math_modes;
};
Told& told() {
  static auto* const told = new Told;
  return *told;
}

struct Product {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  int a = kFloat, b = kFloat, result = kFloat, computes = kComputeFloat;
  std::int64_t leading = 0;  ///< elements of the result from one column's begin to the next one's; 0: not known
};

/// What is certainly written: all columns of one matrix where nothing lies between them, else the first.
std::size_t written_bytes(const Product& product) {
  const std::int64_t columns = product.leading == product.m ? product.n : 1;
  return static_cast<std::size_t>(std::max<std::int64_t>(product.m * columns, 1)) * bytes_of_cuda_type(product.result);
}

int done(const Product& product, const void* stream, void* to, const char* name) {
  keep_work(Work::product, stream,
            {product.m, product.n, product.k, product.batch, product.a, product.b, product.result, product.computes},
            name);
  behind().launch();
  written_by_kernel(to, written_bytes(product));
  return kSuccess;
}

/// By a handle of cuBLAS, which has a stream.
int done_by(const void* handle, Product product, void* to, const char* name) {
  const void* stream = nullptr;
  if (keeps_work()) {
    const std::lock_guard lock(told().mutex);
    if (const auto found = told().streams.find(handle); found != told().streams.end()) stream = found->second;
    const auto mode = told().math_modes.find(handle);
    if (product.a == kFloat && mode != told().math_modes.end() && (mode->second & 15) == kMathModeTensorFloat)
      product.computes = kComputeTensorFloat;
  }
  return done(product, stream, to, name);
}

/// The callers' structs of cuBLASLt, which they make room for or ask for; both fit into what they make room for.
struct Layout {
  std::uint64_t rows, columns;
  std::int32_t type, batch;
  std::int64_t leading;
};
struct Operation {
  std::int32_t computes, transposes_a;
};

/// What a handle points to, made by itself or in the caller's place.
template <class T>
T& read(const void* handle) {
  return *static_cast<T*>(const_cast<void*>(handle));
}

template <class T>
int make(void** handle, const T& value) {
  *handle = new T(value);
  return kSuccess;
}

}  // namespace

// --- cuBLAS ---

STANDIN int cublasSetStream_v2(void* handle, void* stream) {
  const std::lock_guard lock(told().mutex);
  told().streams[handle] = stream;
  return kSuccess;
}
STANDIN int cublasSetMathMode(void* handle, int mode) {
  const std::lock_guard lock(told().mutex);
  told().math_modes[handle] = mode;
  return kSuccess;
}
STANDIN int cublasSgemm_v2(void* handle, int, int, int m, int n, int k, const void*, const void*, int, const void*, int,
                           const void*, void* to, int leading) {
  return done_by(handle, {.m = m, .n = n, .k = k, .leading = leading}, to, "cublasSgemm");
}
STANDIN int cublasGemmEx(void* handle, int, int, int m, int n, int k, const void*, const void*, int a, int, const void*,
                         int b, int, const void*, void* to, int result, int leading, int computes, int) {
  return done_by(handle,
                 {.m = m, .n = n, .k = k, .a = a, .b = b, .result = result, .computes = computes, .leading = leading},
                 to, "cublasGemmEx");
}
STANDIN int cublasSgemmStridedBatched(void* handle, int, int, int m, int n, int k, const void*, const void*, int,
                                      long long, const void*, int, long long, const void*, void* to, int, long long,
                                      int batch) {
  return done_by(handle, {.m = m, .n = n, .k = k, .batch = batch}, to, "cublasSgemmStridedBatched");
}
STANDIN int cublasGemmStridedBatchedEx(void* handle, int, int, int m, int n, int k, const void*, const void*, int a,
                                       int, long long, const void*, int b, int, long long, const void*, void* to,
                                       int result, int, long long, int batch, int computes, int) {
  return done_by(handle,
                 {.m = m, .n = n, .k = k, .batch = batch, .a = a, .b = b, .result = result, .computes = computes}, to,
                 "cublasGemmStridedBatchedEx");
}

// --- cuBLASLt ---

STANDIN int cublasLtMatmulDescCreate(void** handle, int computes, int) {
  return make(handle, Operation{.computes = computes, .transposes_a = kNotTransposed});
}
STANDIN int cublasLtMatmulDescInit_internal(void* place, std::size_t, int computes, int) {
  read<Operation>(place) = {.computes = computes, .transposes_a = kNotTransposed};
  return kSuccess;
}
STANDIN int cublasLtMatmulDescDestroy(void* handle) {
  delete static_cast<Operation*>(handle);
  return kSuccess;
}
STANDIN int cublasLtMatmulDescSetAttribute(void* handle, int which, const void* value, std::size_t bytes) {
  if (which == kTransposesA && bytes == sizeof(std::int32_t))
    std::memcpy(&read<Operation>(handle).transposes_a, value, sizeof(std::int32_t));
  return kSuccess;
}
STANDIN int cublasLtMatrixLayoutCreate(void** handle, int type, std::uint64_t rows, std::uint64_t columns,
                                       long long leading) {
  return make(handle, Layout{.rows = rows, .columns = columns, .type = type, .batch = 1, .leading = leading});
}
STANDIN int cublasLtMatrixLayoutInit_internal(void* place, std::size_t, int type, std::uint64_t rows,
                                              std::uint64_t columns, long long leading) {
  read<Layout>(place) = {.rows = rows, .columns = columns, .type = type, .batch = 1, .leading = leading};
  return kSuccess;
}
STANDIN int cublasLtMatrixLayoutDestroy(void* handle) {
  delete static_cast<Layout*>(handle);
  return kSuccess;
}
STANDIN int cublasLtMatrixLayoutSetAttribute(void* handle, int which, const void* value, std::size_t bytes) {
  Layout& layout = read<Layout>(handle);
  if (which == kBatchCount && bytes == sizeof(layout.batch)) std::memcpy(&layout.batch, value, bytes);
  if (which == kRows && bytes == sizeof(layout.rows)) std::memcpy(&layout.rows, value, bytes);
  if (which == kColumns && bytes == sizeof(layout.columns)) std::memcpy(&layout.columns, value, bytes);
  if (which == kLeading && bytes == sizeof(layout.leading)) std::memcpy(&layout.leading, value, bytes);
  if (which == kTypeOfLayout && bytes == sizeof(layout.type)) std::memcpy(&layout.type, value, bytes);
  return kSuccess;
}
STANDIN int cublasLtMatmul(void*, const void* operation, const void*, const void*, const void* a, const void*,
                           const void* b, const void*, const void*, const void*, void* to, const void* result,
                           const void*, void*, std::size_t, void* stream) {
  if (operation == nullptr || a == nullptr || b == nullptr || result == nullptr) return done({}, stream, to, "");
  const auto& does = read<const Operation>(operation);
  const auto &first = read<const Layout>(a), &second = read<const Layout>(b), &last = read<const Layout>(result);
  const std::uint64_t depth = does.transposes_a == kNotTransposed ? first.columns : first.rows;
  return done({.m = static_cast<std::int64_t>(last.rows),
               .n = static_cast<std::int64_t>(last.columns),
               .k = static_cast<std::int64_t>(depth),
               .batch = last.batch,
               .a = first.type,
               .b = second.type,
               .result = last.type,
               .computes = does.computes,
               .leading = last.leading},
              stream, to, "cublasLtMatmul");
}
