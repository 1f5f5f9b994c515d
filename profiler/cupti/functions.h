// CUPTI's functions that the collector calls, opened at run time; with the other files of this folder that include
// CUPTI's headers, the one place that knows them.
#pragma once

#include <cupti.h>

#include <string>

#include "traces/base/result.h"

namespace shard::profiler {

/// Of one library, by their names there. Optional ones may be null: what they add is left out.
struct CuptiFunctions {
  decltype(&cuptiGetVersion) get_version = nullptr;
  decltype(&cuptiGetResultString) result_string = nullptr;
  decltype(&cuptiGetTimestamp) timestamp = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped_records = nullptr;
  decltype(&cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&cuptiActivityPushExternalCorrelationId) push_external = nullptr;
  decltype(&cuptiActivityPopExternalCorrelationId) pop_external = nullptr;
  decltype(&cuptiSubscribe) subscribe = nullptr;
  decltype(&cuptiUnsubscribe) unsubscribe = nullptr;
  decltype(&cuptiEnableCallback) enable_callback = nullptr;
  decltype(&cuptiGetCallbackName) callback_name = nullptr;
  decltype(&cuptiGetGraphNodeId) graph_node_id = nullptr;
  decltype(&cuptiActivityFlushPeriod) flush_period = nullptr;  ///< optional
  decltype(&cuptiSetThreadIdType) thread_id_type = nullptr;    ///< optional

  std::string path;  ///< of the library
};

/// The variable that names a library to open instead of the one that is found.
inline constexpr const char* kCuptiVariable = "SHARDSCOPE_CUPTI";

/// The library of this major version or of the one before, from SHARDSCOPE_CUPTI, the loader's path, CUDA_HOME or
/// Python's packages. Errc::unavailable, with what to install.
[[nodiscard]] Result<CuptiFunctions> open_cupti();

/// What a call answered, in CUPTI's words: "cuptiActivityEnable: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES".
[[nodiscard]] std::string said(const CuptiFunctions& cupti, const char* call, CUptiResult result);

}  // namespace shard::profiler
