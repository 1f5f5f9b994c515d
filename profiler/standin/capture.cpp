// Capture of CUDA graphs: which streams are being captured. A captured graph holds nothing, and its replay does
// nothing.
#include "profiler/standin/capture.h"

#include <cstddef>
#include <map>
#include <mutex>

#include "profiler/standin/behind.h"
#include "profiler/standin/handles.h"
#include "profiler/standin/work.h"

using namespace shard::standin;

namespace {

constexpr int kNotCapturing = 0, kActive = 1;
constexpr int kIllegal = 900;  // cudaErrorStreamCaptureUnsupported

/// A stream's capture goes on to streams that wait for its events (CUDA C++ Programming Guide, cross-stream
/// dependencies).
struct Captures {
  std::mutex mutex;
  unsigned long long last = 0;
  std::map<const void*, unsigned long long> streams, events, graphs;  ///< the capture that each belongs to
};
Captures& captures() {
  static auto* const captures = new Captures;
  return *captures;
}

int hand_out(void** handle) {
  *handle = fresh_handle();
  return kSuccess;
}

int instantiate(void** executable, const void* graph) {
  hand_out(executable);
  std::int64_t id = 0;
  {
    const std::lock_guard lock(captures().mutex);
    if (const auto found = captures().graphs.find(graph); found != captures().graphs.end())
      id = static_cast<std::int64_t>(found->second);
  }
  keep_work(Work::instance, nullptr, {number_of(*executable), id});
  return kSuccess;
}

}  // namespace

unsigned long long shard::standin::capture_of(const void* stream) {
  const std::lock_guard lock(captures().mutex);
  const auto found = captures().streams.find(stream);
  return found == captures().streams.end() ? 0 : found->second;
}

STANDIN int cudaStreamBeginCapture(void* stream, int) {
  const std::lock_guard lock(captures().mutex);
  if (captures().streams.contains(stream)) return kIllegal;
  captures().streams[stream] = ++captures().last;
  return kSuccess;
}
STANDIN int cudaStreamBeginCaptureToGraph(void* stream, void*, const void*, const void*, std::size_t, int mode) {
  return cudaStreamBeginCapture(stream, mode);
}
STANDIN int cudaStreamEndCapture(void* stream, void** graph) {
  const unsigned long long id = capture_of(stream);
  if (id == 0) return kIllegal;
  const std::lock_guard lock(captures().mutex);
  std::erase_if(captures().streams, [id](const auto& each) { return each.second == id; });
  std::erase_if(captures().events, [id](const auto& each) { return each.second == id; });
  hand_out(graph);
  captures().graphs[*graph] = id;
  return kSuccess;
}
STANDIN int cudaStreamIsCapturing(void* stream, int* status) {
  *status = capture_of(stream) != 0 ? kActive : kNotCapturing;
  return kSuccess;
}
STANDIN int cudaStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id) {
  const unsigned long long found = capture_of(stream);
  *status = found != 0 ? kActive : kNotCapturing;
  if (id != nullptr) *id = found;
  return kSuccess;
}
STANDIN int cudaStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id, void** graph, void*** from,
                                        std::size_t* count) {
  if (graph != nullptr) *graph = nullptr;
  if (from != nullptr) *from = nullptr;
  if (count != nullptr) *count = 0;
  return cudaStreamGetCaptureInfo(stream, status, id);
}
STANDIN int cudaStreamGetCaptureInfo_v3(void* stream, int* status, unsigned long long* id, void** graph, void*** from,
                                        void** edges, std::size_t* count) {
  if (edges != nullptr) *edges = nullptr;
  return cudaStreamGetCaptureInfo_v2(stream, status, id, graph, from, count);
}

STANDIN int cudaEventRecord(void* event, void* stream) {
  behind().record(event);
  keep_work(Work::record, stream, {number_of(event)});
  const unsigned long long id = capture_of(stream);
  const std::lock_guard lock(captures().mutex);
  if (id != 0) {
    captures().events[event] = id;
  } else {
    captures().events.erase(event);
  }
  return kSuccess;
}
STANDIN int cudaEventRecordWithFlags(void* event, void* stream, unsigned) {
  return cudaEventRecord(event, stream);
}
STANDIN int cudaStreamWaitEvent(void* stream, void* event, unsigned) {
  {
    const std::lock_guard lock(captures().mutex);
    if (const auto found = captures().events.find(event); found != captures().events.end())
      captures().streams[stream] = found->second;
  }
  keep_work(Work::wait, stream, {number_of(event)});
  return kSuccess;
}

STANDIN int cudaGraphCreate(void** graph, unsigned) {
  return hand_out(graph);
}
STANDIN int cudaGraphInstantiate(void** executable, void* graph, unsigned long long) {
  return instantiate(executable, graph);
}
STANDIN int cudaGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  return instantiate(executable, graph);
}
STANDIN int cudaGraphLaunch(void* executable, void* stream) {
  keep_work(Work::graph, stream, {number_of(executable)});
  return kSuccess;
}
STANDIN int cudaGraphGetNodes(void*, void**, std::size_t* count) {
  *count = 1;  // of none PyTorch warns
  return kSuccess;
}
