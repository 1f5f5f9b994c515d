// cuSOLVER, cuSPARSE, cuSPARSELt and cuFFT: what the host asks them before anything runs, above all the sizes of
// workspaces, which nobody here knows and which count as none. Who asks leaves the place of the answer unwritten.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>

#include "profiler/standin/counters.h"
#include "profiler/standin/cuda_types.h"
#include "profiler/standin/handles.h"

using namespace shard::standin;

namespace {

template <class Size>
int none_needed(Library of, Size* size) {
  no_workspace(of, size);
  return kSuccess;
}
int none_needed(Library of, std::size_t* on_device, std::size_t* on_host) {
  *on_host = 0;
  return none_needed(of, on_device);
}

}  // namespace

// So many arguments that do not matter: pointers, numbers and enumerations, of which each takes one place.
#define ARGUMENTS_2 void*, void*
#define ARGUMENTS_3 ARGUMENTS_2, void*
#define ARGUMENTS_4 ARGUMENTS_3, void*
#define ARGUMENTS_5 ARGUMENTS_4, void*
#define ARGUMENTS_6 ARGUMENTS_5, void*
#define ARGUMENTS_7 ARGUMENTS_6, void*
#define ARGUMENTS_8 ARGUMENTS_7, void*
#define ARGUMENTS_9 ARGUMENTS_8, void*
#define ARGUMENTS_10 ARGUMENTS_9, void*
#define ARGUMENTS_11 ARGUMENTS_10, void*
#define ARGUMENTS_12 ARGUMENTS_11, void*
#define ARGUMENTS_13 ARGUMENTS_12, void*
#define ARGUMENTS_16 ARGUMENTS_13, void*, void*, void*
#define ARGUMENTS_17 ARGUMENTS_16, void*
#define ARGUMENTS_18 ARGUMENTS_17, void*
#define ARGUMENTS_19 ARGUMENTS_18, void*

// Functions that there are of each type, by the first letter of the name; DEFINE makes one.
#define FOR_EACH_TYPE(DEFINE, COUNT, NAME, ...)     \
  DEFINE(COUNT, S##NAME __VA_OPT__(, ) __VA_ARGS__) \
  DEFINE(COUNT, D##NAME __VA_OPT__(, ) __VA_ARGS__) \
  DEFINE(COUNT, C##NAME __VA_OPT__(, ) __VA_ARGS__) \
  DEFINE(COUNT, Z##NAME __VA_OPT__(, ) __VA_ARGS__)

// --- cuSOLVER (cusolverDn.h): behind so many arguments the size, an int, or two, of the device and of the host ---

#define SIZE_BEHIND(COUNT, NAME)                               \
  STANDIN int cusolverDn##NAME(ARGUMENTS_##COUNT, int* size) { \
    return none_needed(Library::cusolver, size);               \
  }
#define SIZES_BEHIND(COUNT, NAME)                                                                 \
  STANDIN int cusolverDn##NAME(ARGUMENTS_##COUNT, std::size_t* on_device, std::size_t* on_host) { \
    return none_needed(Library::cusolver, on_device, on_host);                                    \
  }
#define OF_REAL_AND_COMPLEX(COUNT, REAL, COMPLEX) \
  SIZE_BEHIND(COUNT, S##REAL)                     \
  SIZE_BEHIND(COUNT, D##REAL)                     \
  SIZE_BEHIND(COUNT, C##COMPLEX)                  \
  SIZE_BEHIND(COUNT, Z##COMPLEX)

FOR_EACH_TYPE(SIZE_BEHIND, 5, geqrf_bufferSize)
FOR_EACH_TYPE(SIZE_BEHIND, 5, getrf_bufferSize)
FOR_EACH_TYPE(SIZE_BEHIND, 5, potrf_bufferSize)
FOR_EACH_TYPE(SIZE_BEHIND, 4, sytrf_bufferSize)
FOR_EACH_TYPE(SIZE_BEHIND, 3, gesvd_bufferSize)
FOR_EACH_TYPE(SIZE_BEHIND, 12, gesvdj_bufferSize)
FOR_EACH_TYPE(SIZE_BEHIND, 11, gesvdjBatched_bufferSize)
FOR_EACH_TYPE(SIZE_BEHIND, 16, gesvdaStridedBatched_bufferSize)
OF_REAL_AND_COMPLEX(7, orgqr_bufferSize, ungqr_bufferSize)
OF_REAL_AND_COMPLEX(11, ormqr_bufferSize, unmqr_bufferSize)
OF_REAL_AND_COMPLEX(7, syevd_bufferSize, heevd_bufferSize)
OF_REAL_AND_COMPLEX(7, syevj_bufferSize, heevj_bufferSize)
OF_REAL_AND_COMPLEX(7, syevjBatched_bufferSize, heevjBatched_bufferSize)
SIZES_BEHIND(10, Xgeqrf_bufferSize)
SIZES_BEHIND(8, Xgetrf_bufferSize)
SIZES_BEHIND(8, Xpotrf_bufferSize)
SIZES_BEHIND(11, Xsyevd_bufferSize)
SIZES_BEHIND(11, XsyevBatched_bufferSize)
SIZES_BEHIND(17, Xgeev_bufferSize)
SIZES_BEHIND(18, Xgesvd_bufferSize)
SIZES_BEHIND(11, Xsytrs_bufferSize)

// --- cuBLAS: what says on the host that the arguments of a batch were right ---

#define ALL_RIGHT_BEHIND(COUNT, NAME)                      \
  STANDIN int cublas##NAME(ARGUMENTS_##COUNT, int* info) { \
    *info = 0;                                             \
    return kSuccess;                                       \
  }
FOR_EACH_TYPE(ALL_RIGHT_BEHIND, 6, geqrfBatched)
FOR_EACH_TYPE(ALL_RIGHT_BEHIND, 9, gelsBatched)

// --- cuSPARSE (cusparse.h) ---

#define SPARSE_SIZE_BEHIND(COUNT, NAME, SIZE)                 \
  STANDIN int cusparse##NAME(ARGUMENTS_##COUNT, SIZE* size) { \
    return none_needed(Library::cusparse, size);              \
  }
SPARSE_SIZE_BEHIND(10, SpMM_bufferSize, std::size_t)
SPARSE_SIZE_BEHIND(9, SpMV_bufferSize, std::size_t)
SPARSE_SIZE_BEHIND(10, SDDMM_bufferSize, std::size_t)
SPARSE_SIZE_BEHIND(9, SpSV_bufferSize, std::size_t)
SPARSE_SIZE_BEHIND(10, SpSM_bufferSize, std::size_t)
SPARSE_SIZE_BEHIND(11, SpGEMM_workEstimation, std::size_t)
SPARSE_SIZE_BEHIND(11, SpGEMM_compute, std::size_t)
SPARSE_SIZE_BEHIND(6, Xcoosort_bufferSizeExt, std::size_t)
SPARSE_SIZE_BEHIND(6, Xcsrsort_bufferSizeExt, std::size_t)
FOR_EACH_TYPE(SPARSE_SIZE_BEHIND, 19, csrgeam2_bufferSizeExt, std::size_t)
FOR_EACH_TYPE(SPARSE_SIZE_BEHIND, 11, bsrsv2_bufferSize, int)
FOR_EACH_TYPE(SPARSE_SIZE_BEHIND, 13, bsrsm2_bufferSize, int)

/// How many elements a sum or a product of sparse matrices has, its kernels find out: none here, as zeros that are
/// read.
STANDIN int cusparseXcsrgeam2Nnz(ARGUMENTS_13, int* elements) {
  *elements = 0;
  count_read();
  return kSuccess;
}
STANDIN int cusparseSpMatGetSize(void*, std::int64_t* rows, std::int64_t* columns, std::int64_t* elements) {
  *rows = *columns = *elements = 0;
  count_read();
  return kSuccess;
}

// --- cuSPARSELt (cusparseLt.h): matrices of which half the elements are zeros ---

namespace {

/// Bytes of the matrices that are described, by their descriptors.
std::mutex structured_mutex;
std::map<const void*, std::size_t>& structured() {
  static auto* const all = new std::map<const void*, std::size_t>;
  return *all;
}

}  // namespace

/// Half the elements, and two bits for each of those that say where it was (four bits of a pair of 32).
STANDIN int cusparseLtStructuredDescriptorInit(const void*, void* matrix, std::int64_t rows, std::int64_t columns,
                                               std::int64_t, std::uint32_t, int type, int, int) {
  const std::lock_guard lock(structured_mutex);
  const auto kept = static_cast<std::size_t>(rows * columns) / 2;
  structured()[matrix] = kept * bytes_of_cuda_type(type) + kept / 4;
  return kSuccess;
}
STANDIN int cusparseLtSpMMACompressedSize2(const void*, const void* matrix, std::size_t* compressed,
                                           std::size_t* workspace) {
  const std::lock_guard lock(structured_mutex);
  *compressed = structured()[matrix];
  return none_needed(Library::cusparse, workspace);
}
STANDIN int cusparseLtMatmulGetWorkspace(const void*, const void*, std::size_t* size) {
  return none_needed(Library::cusparse, size);
}
STANDIN int cusparseLtMatmulAlgGetAttribute(const void*, const void*, int, void* value, std::size_t bytes) {
  std::memset(value, 0, bytes);
  return kSuccess;
}

// --- cuFFT (cufft.h, cufftXt.h) ---

STANDIN int cufftCreate(int* plan) {
  static int next = 0;
  *plan = __atomic_add_fetch(&next, 1, __ATOMIC_RELAXED);
  return kSuccess;
}
STANDIN int cufftXtMakePlanMany(ARGUMENTS_12, std::size_t* size, int) {
  return none_needed(Library::cufft, size);
}
STANDIN int cufftGetSize(int, std::size_t* size) {
  return none_needed(Library::cufft, size);
}
