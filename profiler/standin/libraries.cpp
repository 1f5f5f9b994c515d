// cuBLAS, cuBLASLt and others: handles, and answers that need no device.
#include <dlfcn.h>

#include <cstddef>
#include <cstring>

#include "profiler/standin/card.h"
#include "profiler/standin/handles.h"

using namespace shard::standin;

namespace {

int hand_out(void** handle) {
  *handle = fresh_handle();
  return kSuccess;
}

/// Callers refuse a cuBLASLt that is too old for what they want. The real one, which the program has loaded, says which
/// it is; without one, the first of the CUDA that is meant.
std::size_t version_of_cublas() {
  static constexpr const char* kLibraries[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"};
  using Version = std::size_t (*)();
  for (const char* const name : kLibraries) {
    void* const library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    auto* const version = reinterpret_cast<Version>(dlsym(library, "cublasLtGetVersion"));
    dlclose(library);  // the program still holds it
    if (version != nullptr) return version();
  }
  return static_cast<std::size_t>(card().cuda_version / 1000 * 10000 + card().cuda_version % 1000 * 10);
}

}  // namespace

// --- cuBLAS ---

STANDIN std::size_t cublasLtGetVersion() {
  return version_of_cublas();
}
STANDIN std::size_t cublasLtGetCudartVersion() {
  return static_cast<std::size_t>(card().cuda_version);
}
STANDIN int cublasGetVersion_v2(void*, int* version) {
  *version = static_cast<int>(version_of_cublas());
  return kSuccess;
}
/// Of the major version (0), the minor one (1) and the patch (2).
STANDIN int cublasGetProperty(int which, int* value) {
  const auto version = static_cast<int>(version_of_cublas());
  *value = which == 0 ? version / 10000 : which == 1 ? version / 100 % 100 : version % 100;
  return kSuccess;
}
STANDIN int cublasLtGetProperty(int which, int* value) {
  return cublasGetProperty(which, value);
}

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
STANDIN int cublasLtMatmulPreferenceCreate(void** handle) {
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

// --- Others: handles ---

STANDIN int cusparseCreate(void** handle) {
  return hand_out(handle);
}
STANDIN int cusolverDnCreate(void** handle) {
  return hand_out(handle);
}
