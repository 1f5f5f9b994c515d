// Functions of CUPTI's names, and a few of our own beside them.
#include "tests/profiler/fake_cupti.h"

// Its types, none of its functions.
#define NVTX_NO_IMPL
#include <generated_nvtx_meta.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace shard::fake_cupti {
namespace {

struct Buffer {
  std::uint8_t* bytes = nullptr;
  std::size_t size = 0, filled = 0;
};

struct State {
  std::map<std::string, CUptiResult> answers;
  std::function<std::uint64_t()> clock;
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  CUpti_CallbackFunc heard = nullptr;
  void* heard_by = nullptr;
  std::set<int> enabled;
  std::set<std::uint32_t> nvtx;  ///< functions that somebody wants to hear of
  std::vector<Buffer> kept;
  std::size_t dropped = 0;
  pid_t process = 0;  ///< that subscribed
};

/// Never destroyed: it delivers while the process ends.
State& state() {
  static auto* const made = new State;
  return *made;
}

thread_local std::vector<std::uint64_t> ids;

CUptiResult answered(const char* call) {
  // The real one hangs or dies in a forked child.
  if (state().process != 0 && state().process != ::getpid()) std::abort();
  const auto at = state().answers.find(call);
  return at == state().answers.end() ? CUPTI_SUCCESS : at->second;
}

std::size_t size_of(int kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_MEMORY2: return sizeof(CUpti_ActivityMemory4);
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL: return sizeof(CUpti_ActivityMemoryPool3);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_MARKER: return sizeof(CUpti_ActivityMarker2);
    case CUPTI_ACTIVITY_KIND_ENVIRONMENT: return sizeof(CUpti_ActivityEnvironment);
    case CUPTI_ACTIVITY_KIND_DEVICE: return sizeof(CUpti_ActivityDevice5);
    default: return 0;
  }
}

void hand_over(const Buffer& buffer) {
  state().complete(nullptr, 0, buffer.bytes, buffer.size, buffer.filled);
}

void tell(CUpti_CallbackId id, std::uint64_t node, std::uint64_t original) {
  CUpti_GraphData graph{};
  graph.node = reinterpret_cast<CUgraphNode>(node);
  graph.originalNode = reinterpret_cast<CUgraphNode>(original);
  CUpti_ResourceData data{};
  data.resourceDescriptor = &graph;
  if (state().heard != nullptr) state().heard(state().heard_by, CUPTI_CB_DOMAIN_RESOURCE, id, &data);
}

template <class Params>
void tell_nvtx(CUpti_nvtx_api_trace_cbid id, const Params& params, const void* returned = nullptr) {
  CUpti_NvtxData data{};
  data.functionParams = &params;
  data.functionReturnValue = returned;
  if (state().heard != nullptr && state().nvtx.contains(id))
    state().heard(state().heard_by, CUPTI_CB_DOMAIN_NVTX, id, &data);
}

nvtxDomainHandle_t a_domain() {
  static int place = 0;
  return reinterpret_cast<nvtxDomainHandle_t>(&place);
}

}  // namespace

void push_range(const char* name) {
  tell_nvtx(CUPTI_CBID_NVTX_nvtxRangePushA, nvtxRangePushA_params{name});
}
void pop_range() {
  tell_nvtx(CUPTI_CBID_NVTX_nvtxRangePop, nvtxRangePop_params{});
}
void push_registered_range(const char* name) {
  const auto handle = reinterpret_cast<nvtxStringHandle_t>(const_cast<char*>(name));
  tell_nvtx(CUPTI_CBID_NVTX_nvtxDomainRegisterStringA, nvtxDomainRegisterStringA_params{a_domain(), name}, &handle);
  nvtxEventAttributes_t attributes{};
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = handle;
  tell_nvtx(CUPTI_CBID_NVTX_nvtxDomainRangePushEx, nvtxDomainRangePushEx_params{a_domain(), {&attributes}});
}
void pop_registered_range() {
  tell_nvtx(CUPTI_CBID_NVTX_nvtxDomainRangePop, nvtxDomainRangePop_params{a_domain()});
}
void start_range(std::uint64_t id, const char* name) {
  tell_nvtx(CUPTI_CBID_NVTX_nvtxRangeStartA, nvtxRangeStartA_params{name}, &id);
}
void end_range(std::uint64_t id) {
  tell_nvtx(CUPTI_CBID_NVTX_nvtxRangeEnd, nvtxRangeEnd_params{id});
}

void reset() {
  give_back();
  state().answers.clear();
  state().clock = nullptr;
  state().dropped = 0;
}

void answer(const char* call, CUptiResult result) {
  state().answers[call] = result;
}

void set_clock(std::function<std::uint64_t()> clock) {
  state().clock = std::move(clock);
}

void deliver(Records records, bool keep) {
  State& s = state();
  Buffer buffer;
  const auto done = [&] {
    if (buffer.bytes == nullptr) return;
    if (keep) {
      s.kept.push_back(buffer);
    } else {
      hand_over(buffer);
    }
    buffer = {};
  };
  for (const std::vector<std::uint8_t>& record : records.list()) {
    if (buffer.bytes != nullptr && buffer.size - buffer.filled < record.size()) done();
    if (buffer.bytes == nullptr) {
      std::size_t most = 0;
      s.request(&buffer.bytes, &buffer.size, &most);
      if (buffer.bytes == nullptr) {
        ++s.dropped;
        continue;
      }
    }
    std::memcpy(buffer.bytes + buffer.filled, record.data(), record.size());
    buffer.filled += record.size();
  }
  done();
}

void give_back() {
  for (const Buffer& buffer : std::exchange(state().kept, {})) hand_over(buffer);
}

bool is_enabled(CUpti_ActivityKind kind) {
  return state().enabled.contains(static_cast<int>(kind));
}

void make_node(std::uint64_t node) {
  tell(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, node, 0);
}

void clone_node(std::uint64_t node, std::uint64_t original) {
  tell(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, node, original);
}

std::uint64_t pushed() {
  return ids.empty() ? 0 : ids.back();
}

}  // namespace shard::fake_cupti

using namespace shard::fake_cupti;

extern "C" {

CUptiResult cuptiGetVersion(std::uint32_t* version) {
  *version = CUPTI_API_VERSION;
  return answered("cuptiGetVersion");
}
CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  static std::map<int, std::string> names;
  *text = names.try_emplace(result, "CUPTI_ERROR " + std::to_string(result)).first->second.c_str();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetTimestamp(std::uint64_t* time) {
  *time = state().clock ? state().clock()
                        : static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                         std::chrono::steady_clock::now().time_since_epoch())
                                                         .count());
  return answered("cuptiGetTimestamp");
}
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  state().request = request;
  state().complete = complete;
  return answered("cuptiActivityRegisterCallbacks");
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  const CUptiResult result = answered("cuptiActivityEnable");
  if (result == CUPTI_SUCCESS) state().enabled.insert(static_cast<int>(kind));
  return result;
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  state().enabled.erase(static_cast<int>(kind));
  return answered("cuptiActivityDisable");
}
CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t filled, CUpti_Activity** record) {
  std::uint8_t* next = buffer;
  if (*record != nullptr) {
    const auto kind = static_cast<int>((*record)->kind);
    next = reinterpret_cast<std::uint8_t*>(*record) + size_of(kind);
  }
  if (next >= buffer + filled) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
  *dropped = std::exchange(state().dropped, 0);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  give_back();
  return answered("cuptiActivityFlushAll");
}
CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind, std::uint64_t id) {
  ids.push_back(id);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind, std::uint64_t* last) {
  if (ids.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
  *last = ids.back();
  ids.pop_back();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc heard, void* by) {
  const CUptiResult result = answered("cuptiSubscribe");
  if (result != CUPTI_SUCCESS) return result;
  state().heard = heard;
  state().heard_by = by;
  state().process = ::getpid();
  *handle = reinterpret_cast<CUpti_SubscriberHandle>(&state());
  return result;
}
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle) {
  state().heard = nullptr;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiEnableCallback(std::uint32_t on, CUpti_SubscriberHandle, CUpti_CallbackDomain domain,
                                CUpti_CallbackId id) {
  if (domain == CUPTI_CB_DOMAIN_NVTX && on != 0) state().nvtx.insert(id);
  return answered("cuptiEnableCallback");
}
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, std::uint32_t id, const char** name) {
  static std::map<std::pair<int, std::uint32_t>, std::string> names;
  *name = names.try_emplace({domain, id}, "cudaCall" + std::to_string(id) + "_v7000").first->second.c_str();
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetGraphNodeId(CUgraphNode node, std::uint64_t* id) {
  *id = reinterpret_cast<std::uint64_t>(node);
  return CUPTI_SUCCESS;
}
}
