// Looks for the library and binds its functions.
#include "profiler/cupti/functions.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "traces/base/nvidia_libraries.h"

namespace shard::profiler {
namespace {

std::vector<std::filesystem::path> folders() {
  std::vector<std::filesystem::path> found = cuda::library_folders();
  for (const char* const name : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* const toolkit = std::getenv(name))
      found.push_back(std::filesystem::path(toolkit) / "extras/CUPTI/lib64");
  found.emplace_back("/usr/local/cuda/extras/CUPTI/lib64");
  return found;
}

Result<cuda::OpenLibrary> open_library() {
  if (const char* const named = std::getenv(kCuptiVariable)) return cuda::open_library(named, {});
  const std::vector<std::filesystem::path> where = folders();
  const int major = CUPTI_API_VERSION / 10000;
  const auto name = [](int version) { return "libcupti.so." + std::to_string(version); };
  Result<cuda::OpenLibrary> library = cuda::open_library(name(major), where);
  if (!library) {
    Result<cuda::OpenLibrary> older = cuda::open_library(name(major - 1), where);
    if (older) return older;
  }
  return library;
}

}  // namespace

Result<CuptiFunctions> open_cupti() {
  const Result<cuda::OpenLibrary> library = open_library();
  if (!library) return library.error();
  CuptiFunctions f;
  f.path = library->path;
  Result<void> bound;
  const auto need = [&](const char* name, auto& function) {
    if (bound) bound = cuda::bind(*library, name, function);
  };
  need("cuptiGetVersion", f.get_version);
  need("cuptiGetResultString", f.result_string);
  need("cuptiGetTimestamp", f.timestamp);
  need("cuptiActivityRegisterCallbacks", f.register_callbacks);
  need("cuptiActivityEnable", f.enable);
  need("cuptiActivityDisable", f.disable);
  need("cuptiActivityGetNextRecord", f.next_record);
  need("cuptiActivityGetNumDroppedRecords", f.dropped_records);
  need("cuptiActivityFlushAll", f.flush_all);
  need("cuptiActivityPushExternalCorrelationId", f.push_external);
  need("cuptiActivityPopExternalCorrelationId", f.pop_external);
  need("cuptiSubscribe", f.subscribe);
  need("cuptiUnsubscribe", f.unsubscribe);
  need("cuptiEnableCallback", f.enable_callback);
  need("cuptiGetCallbackName", f.callback_name);
  need("cuptiGetGraphNodeId", f.graph_node_id);
  if (!bound) return bound.error();
  (void)cuda::bind(*library, "cuptiActivityFlushPeriod", f.flush_period).has_value();
  (void)cuda::bind(*library, "cuptiSetThreadIdType", f.thread_id_type).has_value();
  return f;
}

std::string said(const CuptiFunctions& cupti, const char* call, CUptiResult result) {
  const char* words = nullptr;
  if (cupti.result_string(result, &words) != CUPTI_SUCCESS || words == nullptr) words = "an unknown result";
  return std::string(call) + ": " + words;
}

}  // namespace shard::profiler
