// cuBLAS, cuBLASLt, NCCL: handles, and results of what a single rank could know.
#include <cstddef>
#include <cstring>

#include "profiler/standin/card.h"
#include "profiler/standin/device_memory.h"
#include "profiler/standin/handles.h"

using namespace shard::standin;

namespace {

int hand_out(void** handle) {
  *handle = fresh_handle();
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

// --- Others: handles ---

STANDIN int cusparseCreate(void** handle) {
  return hand_out(handle);
}
STANDIN int cusolverDnCreate(void** handle) {
  return hand_out(handle);
}

// --- NCCL: this rank among others that hold the same ---

namespace {

struct Communicator {
  int ranks, rank;
};

/// ncclUniqueId, which is given by value.
struct UniqueId {
  char bytes[128];
};

int join(void** communicator, int ranks, int rank) {
  *communicator = new Communicator{ranks, rank};
  return kSuccess;
}

/// Of ncclDataType_t: int8, uint8, int32, uint32, int64, uint64, fp16, fp32, fp64, bf16, fp8s.
std::size_t bytes_of(int type) {
  constexpr std::size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type >= 0 && type < 12 ? kBytes[type] : 4;
}

}  // namespace

STANDIN int ncclGetVersion(int* version) {
  *version = 22005;
  return kSuccess;
}
STANDIN int ncclGetUniqueId(UniqueId* id) {
  std::memset(id, 0, sizeof(*id));
  return kSuccess;
}
STANDIN int ncclCommInitRank(void** communicator, int ranks, UniqueId, int rank) {
  return join(communicator, ranks, rank);
}
STANDIN int ncclCommInitRankConfig(void** communicator, int ranks, UniqueId, int rank, void*) {
  return join(communicator, ranks, rank);
}
STANDIN int ncclCommInitRankScalable(void** communicator, int ranks, int rank, int, UniqueId*, void*) {
  return join(communicator, ranks, rank);
}
STANDIN int ncclCommSplit(void* communicator, int, int key, void** made, void*) {
  const auto* const from = static_cast<const Communicator*>(communicator);
  return join(made, from->ranks, key < from->ranks ? key : from->rank);
}
STANDIN int ncclCommInitAll(void** communicators, int count, const int*) {
  for (int i = 0; i < count; ++i) join(communicators + i, count, i);
  return kSuccess;
}
STANDIN int ncclCommCount(const void* communicator, int* ranks) {
  *ranks = static_cast<const Communicator*>(communicator)->ranks;
  return kSuccess;
}
STANDIN int ncclCommUserRank(const void* communicator, int* rank) {
  *rank = static_cast<const Communicator*>(communicator)->rank;
  return kSuccess;
}
STANDIN int ncclCommGetAsyncError(void*, int* error) {
  *error = 0;
  return kSuccess;
}
STANDIN const char* ncclGetErrorString(int) {
  return "no error";
}
STANDIN const char* ncclGetLastError(void*) {
  return "";
}
STANDIN int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int, void*, void*) {
  copy(to, from, count * bytes_of(type));
  return kSuccess;
}
STANDIN int ncclReduce(const void* from, void* to, std::size_t count, int type, int, int, void*, void*) {
  copy(to, from, count * bytes_of(type));
  return kSuccess;
}
STANDIN int ncclBroadcast(const void* from, void* to, std::size_t count, int type, int root, void* communicator,
                          void*) {
  if (root == static_cast<const Communicator*>(communicator)->rank) copy(to, from, count * bytes_of(type));
  return kSuccess;
}
STANDIN int ncclBcast(void*, std::size_t, int, int, void*, void*) {
  return kSuccess;
}
/// As if every rank had sent the same.
STANDIN int ncclAllGather(const void* from, void* to, std::size_t count, int type, void* communicator, void*) {
  const std::size_t bytes = count * bytes_of(type);
  const int ranks = static_cast<const Communicator*>(communicator)->ranks;
  for (int rank = 0; rank < ranks; ++rank)
    copy(static_cast<char*>(to) + static_cast<std::size_t>(rank) * bytes, from, bytes);
  return kSuccess;
}
STANDIN int ncclReduceScatter(const void* from, void* to, std::size_t count, int type, int, void* communicator, void*) {
  const std::size_t bytes = count * bytes_of(type);
  const auto rank = static_cast<std::size_t>(static_cast<const Communicator*>(communicator)->rank);
  copy(to, static_cast<const char*>(from) + rank * bytes, bytes);
  return kSuccess;
}
