// cuDNN: one way to do everything, which needs no workspace. What the real one would choose nobody here knows.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "profiler/standin/card.h"
#include "profiler/standin/counters.h"
#include "profiler/standin/handles.h"
#include "profiler/standin/work.h"

using namespace shard::standin;

namespace {

int hand_out(void** handle) {
  *handle = fresh_handle();
  return kSuccess;
}
int none_needed(std::size_t* bytes) {
  no_workspace(Library::cudnn, bytes);
  return kSuccess;
}

/// cudnnConvolution*AlgoPerf_t, which differ in the type of their first field alone.
struct Found {
  int algorithm, status;
  float time;
  std::size_t memory;
  int determinism, math, reserved[3];
};
int one_algorithm(int* count, void* found) {
  const Found best{};
  std::memcpy(found, &best, sizeof(best));
  *count = 1;
  return kSuccess;
}

// cudnnBackendAttributeType_t and cudnnBackendAttributeName_t (cudnn_graph.h).
constexpr int kTypeInt64 = 3, kTypeDescriptor = 15, kTypeInt32 = 23;
constexpr int kHeuristicResults = 202;

}  // namespace

/// PyTorch refuses a cuDNN that is older than the one it was built with. The real one, which it has loaded, says which
/// it is.
STANDIN std::size_t cudnnGetVersion() {
  static constexpr const char* kLibraries[] = {"libcudnn.so.9", "libcudnn.so.8"};
  using Version = std::size_t (*)();
  for (const char* const name : kLibraries) {
    void* const library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    if (auto* const version = reinterpret_cast<Version>(dlsym(library, "cudnnGetVersion"))) return version();
  }
  return 90100;
}
STANDIN int cudnnGetProperty(int which, int* value) {
  const auto version = static_cast<int>(cudnnGetVersion());
  const int major = version >= 90000 ? version / 10000 : version / 1000;
  const int minor = version >= 90000 ? version / 100 % 100 : version / 100 % 10;
  *value = which == 0 ? major : which == 1 ? minor : version % 100;
  return kSuccess;
}
STANDIN std::size_t cudnnGetCudartVersion() {
  return static_cast<std::size_t>(card().cuda_version);
}
STANDIN const char* cudnnGetErrorString(int) {
  return "CUDNN_STATUS_SUCCESS";
}
STANDIN int cudnnCreate(void** handle) {
  return hand_out(handle);
}

// --- What launches kernels ---

namespace {

/// Handles' streams.
struct Streams {
  std::mutex mutex;
  std::unordered_map<const void*, void*> of;
};
Streams& streams() {
  static auto* const streams = new Streams;
  return *streams;
}

int launched(const void* handle, const char* name) {
  if (!keeps_work()) return kSuccess;
  const void* stream = nullptr;
  {
    const std::lock_guard lock(streams().mutex);
    if (const auto found = streams().of.find(handle); found != streams().of.end()) stream = found->second;
  }
  keep_work(Work::library, stream, {}, name);
  return kSuccess;
}

}  // namespace

STANDIN int cudnnSetStream(void* handle, void* stream) {
  const std::lock_guard lock(streams().mutex);
  streams().of[handle] = stream;
  return kSuccess;
}
STANDIN int cudnnGetStream(void* handle, void** stream) {
  const std::lock_guard lock(streams().mutex);
  const auto found = streams().of.find(handle);
  *stream = found == streams().of.end() ? nullptr : found->second;
  return kSuccess;
}
/// Whatever follows the handle is not looked at.
#define LAUNCHES(NAME)                   \
  STANDIN int NAME(const void* handle) { \
    return launched(handle, #NAME);      \
  }
LAUNCHES(cudnnBackendExecute)
LAUNCHES(cudnnBatchNormalizationBackwardEx)
LAUNCHES(cudnnBatchNormalizationForwardInference)
LAUNCHES(cudnnBatchNormalizationForwardTrainingEx)
LAUNCHES(cudnnConvolutionBackwardData)
LAUNCHES(cudnnConvolutionBackwardFilter)
LAUNCHES(cudnnConvolutionBiasActivationForward)
LAUNCHES(cudnnConvolutionForward)
LAUNCHES(cudnnRNNBackwardData_v8)
LAUNCHES(cudnnRNNBackwardWeights_v8)
LAUNCHES(cudnnRNNForward)

#define DESCRIPTOR(NAME)                                \
  STANDIN int cudnnCreate##NAME##Descriptor(void** d) { \
    return hand_out(d);                                 \
  }
DESCRIPTOR(Activation)
DESCRIPTOR(CTCLoss)
DESCRIPTOR(Convolution)
DESCRIPTOR(Dropout)
DESCRIPTOR(Filter)
DESCRIPTOR(Pooling)
DESCRIPTOR(SpatialTransformer)

// --- The backend of graphs: engines found by heuristics, plans made of them ---

STANDIN int cudnnBackendCreateDescriptor(int, void** descriptor) {
  return hand_out(descriptor);
}
STANDIN int cudnnBackendGetAttribute(void*, int name, int type, std::int64_t requested, std::int64_t* count,
                                     void* values) {
  // Descriptors are the caller's, to be filled in. Of heuristics' results there is one. Single numbers are sizes.
  const bool is_size = requested == 1 && (type == kTypeInt64 || type == kTypeInt32);
  const bool is_one = type == kTypeDescriptor || name == kHeuristicResults || is_size;
  if (count != nullptr) *count = is_one ? 1 : 0;
  if (is_size && values != nullptr)
    std::memset(values, 0, type == kTypeInt64 ? sizeof(std::int64_t) : sizeof(std::int32_t));
  if (is_size && type == kTypeInt64) count_unknown_workspace(Library::cudnn);
  return kSuccess;
}

// --- Convolutions by algorithm ---

#define CONVOLUTION(DIRECTION)                                                                                     \
  STANDIN int cudnnGetConvolution##DIRECTION##Algorithm_v7(void*, void*, void*, void*, void*, int, int* count,     \
                                                           void* found) {                                          \
    return one_algorithm(count, found);                                                                            \
  }                                                                                                                \
  STANDIN int cudnnFindConvolution##DIRECTION##AlgorithmEx(void*, void*, void*, void*, void*, void*, void*, void*, \
                                                           int, int* count, void* found, void*, std::size_t) {     \
    return one_algorithm(count, found);                                                                            \
  }                                                                                                                \
  STANDIN int cudnnGetConvolution##DIRECTION##WorkspaceSize(void*, void*, void*, void*, void*, int,                \
                                                            std::size_t* bytes) {                                  \
    return none_needed(bytes);                                                                                     \
  }
CONVOLUTION(Forward)
CONVOLUTION(BackwardData)
CONVOLUTION(BackwardFilter)

// --- Normalisation, dropout: sizes (recurrence: cudnn_recurrent.cpp) ---

STANDIN int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(void*, int, int, void*, void*, void*, void*, void*,
                                                                     std::size_t* bytes) {
  return none_needed(bytes);
}
STANDIN int cudnnGetBatchNormalizationBackwardExWorkspaceSize(void*, int, int, void*, void*, void*, void*, void*, void*,
                                                              void*, std::size_t* bytes) {
  return none_needed(bytes);
}
STANDIN int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void*, int, int, void*, void*, std::size_t* bytes) {
  return none_needed(bytes);
}
STANDIN int cudnnDropoutGetStatesSize(void*, std::size_t* bytes) {
  return none_needed(bytes);
}
