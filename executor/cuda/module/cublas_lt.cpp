// Opens cuBLASLt.
#include "executor/cuda/module/cublas_lt.h"

#include "traces/base/nvidia_libraries.h"

namespace shard::cuda {

Result<CublasLt> load_cublas_lt() {
  const Result<OpenLibrary> library =
      open_library("libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR), library_folders());
  if (!library) return library.error();
  CublasLt table{.path = library->path};
  Result<void> bound;
  const auto load = [&](const char* symbol, auto& target) {
    if (bound) bound = bind(*library, symbol, target);
  };
  load("cublasLtCreate", table.create);
  load("cublasLtDestroy", table.destroy);
  load("cublasLtGetVersion", table.get_version);
  load("cublasLtGetStatusName", table.get_status_name);
  load("cublasLtGetStatusString", table.get_status_string);
  load("cublasLtMatmulDescCreate", table.desc_create);
  load("cublasLtMatmulDescDestroy", table.desc_destroy);
  load("cublasLtMatmulDescSetAttribute", table.desc_set);
  load("cublasLtMatrixLayoutCreate", table.layout_create);
  load("cublasLtMatrixLayoutDestroy", table.layout_destroy);
  load("cublasLtMatmulPreferenceCreate", table.preference_create);
  load("cublasLtMatmulPreferenceDestroy", table.preference_destroy);
  load("cublasLtMatmulPreferenceSetAttribute", table.preference_set);
  load("cublasLtMatmulAlgoGetHeuristic", table.get_heuristic);
  load("cublasLtMatmul", table.matmul);
  if (!bound) return bound.error();
  return table;
}

}  // namespace shard::cuda
