// CUPTI's callbacks, which know no object: the one collector is found through a pointer of the process.
#include "profiler/cupti/collector.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "profiler/cupti/convert.h"
#include "profiler/cupti/range_switch.h"

namespace shard::profiler {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
constexpr std::size_t kBufferAlignment = 8;
/// How often CUPTI looks for buffers that are complete.
constexpr std::uint32_t kFlushMilliseconds = 100;

std::atomic<Collector*> the_collector{nullptr};

/// What this thread pushed, for nodes of graphs that it captures.
thread_local std::vector<std::uint64_t> pushed;

std::int64_t host_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Kind {
  CUpti_ActivityKind kind;
  const char* name;
  bool CollectorOptions::*wanted;
  bool while_paused = false;
};
constexpr Kind kKinds[] = {
    {CUPTI_ACTIVITY_KIND_DEVICE, "devices", nullptr, true},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "kernels", nullptr},
    {CUPTI_ACTIVITY_KIND_MEMCPY, "copies", nullptr},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, "copies between devices", nullptr},
    {CUPTI_ACTIVITY_KIND_MEMSET, "fills", nullptr},
    {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, "external correlation", nullptr},
    {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, "waits", nullptr},
    {CUPTI_ACTIVITY_KIND_RUNTIME, "calls of the runtime", &CollectorOptions::calls},
    {CUPTI_ACTIVITY_KIND_DRIVER, "calls of the driver", &CollectorOptions::calls},
    {CUPTI_ACTIVITY_KIND_MEMORY2, "memory", &CollectorOptions::memory, true},
    {CUPTI_ACTIVITY_KIND_MEMORY_POOL, "memory pools", &CollectorOptions::memory, true},
    {CUPTI_ACTIVITY_KIND_MARKER, "ranges", &CollectorOptions::ranges},
    {CUPTI_ACTIVITY_KIND_ENVIRONMENT, "clocks and power", &CollectorOptions::environment},
};

Error refusal(const CuptiFunctions& cupti, const char* call, CUptiResult result) {
  Error error{Errc::unavailable, "nothing can be recorded (" + said(cupti, call, result) + ")", "CUPTI", ""};
  switch (static_cast<int>(result)) {
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      error.what = "another profiler holds CUPTI (" + said(cupti, call, result) + ")";
      error.help = "run without it: Nsight Systems, Nsight Compute, cuda-gdb, or PyTorch's profiler in the program";
      break;
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
      error.what = "this user may not profile (" + said(cupti, call, result) + ")";
      error.help = "the driver's option NVreg_RestrictProfilingToAdminUsers=0, or root";
      break;
    default: error.help = "a driver that fits this CUPTI: " + cupti.path; break;
  }
  return error;
}

}  // namespace

struct Collector::State {
  State(const CuptiFunctions& cupti, Spool& spool) : converter(cupti, spool), taken(spool), looks(spool), said(spool) {}

  std::atomic<std::int64_t> buffer_bytes{0};  ///< that CUPTI has
  std::mutex taking;                          ///< CUPTI's own threads deliver, seldom two at once
  Converter converter;
  Lane taken;
  std::mutex looking;
  Lane looks;
  std::mutex saying;
  Lane said;
  std::unique_ptr<RangeSwitch> ranges;    ///< none: recording does not go by ranges
  std::unordered_set<NameNumber> told{};  ///< names that `ranges` tells; under `saying`
  std::mutex switching;
  bool paused = false;
  bool inside = true;  ///< a wanted range
  bool on = false;
};

Collector::Collector(const CuptiFunctions& cupti, Spool& spool, const CollectorOptions& options)
    : cupti_(cupti), spool_(spool), options_(options), state_(std::make_unique<State>(cupti_, spool)) {}

Result<Collector*> Collector::start(const CuptiFunctions& cupti, Spool& spool, const CollectorOptions& options) {
  auto* const made = new Collector(cupti, spool, options);
  Collector* none = nullptr;
  if (!the_collector.compare_exchange_strong(none, made)) {
    delete made;
    return Error{Errc::unavailable, "this process is being profiled already", "CUPTI", ""};
  }
  if (Result<void> begun = made->begin(); !begun) {
    // It stays: CUPTI may know its functions by now.
    return begun.error();
  }
  return made;
}

Result<void> Collector::begin() {
  if (const CUptiResult r = cupti_.subscribe(&subscriber_, &Collector::heard, this); r != CUPTI_SUCCESS)
    return refusal(cupti_, "cuptiSubscribe", r);
  if (const CUptiResult r = cupti_.register_callbacks(&Collector::give_buffer, &Collector::take_buffer);
      r != CUPTI_SUCCESS)
    return refusal(cupti_, "cuptiActivityRegisterCallbacks", r);
  for (const CUpti_CallbackId id : {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED})
    if (const CUptiResult r = cupti_.enable_callback(1, subscriber_, CUPTI_CB_DOMAIN_RESOURCE, id); r != CUPTI_SUCCESS)
      left_out_.push_back("nodes of graphs: " + said(cupti_, "cuptiEnableCallback", r));
  if (cupti_.thread_id_type != nullptr) (void)cupti_.thread_id_type(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  if (const CUptiResult r = cupti_.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL); r != CUPTI_SUCCESS)
    return refusal(cupti_, "cuptiActivityEnable", r);
  if (options_.paused || options_.wanted.any()) (void)cupti_.disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  enable_kinds(true);
  if (options_.wanted.any()) listen_to_ranges();
  state_->paused = options_.paused;
  if (!state_->paused && state_->inside) switch_on();
  if (cupti_.flush_period != nullptr) (void)cupti_.flush_period(kFlushMilliseconds);
  look_at_clocks();
  return {};
}

void Collector::enable_kinds(bool paused) {
  for (const Kind& kind : kKinds) {
    if (kind.while_paused != paused || (kind.wanted != nullptr && !(options_.*kind.wanted))) continue;
    const CUptiResult r = cupti_.enable(kind.kind);
    if (r == CUPTI_SUCCESS) continue;
    std::string why = std::string(kind.name) + ": " + said(cupti_, "cuptiActivityEnable", r);
    if (std::ranges::find(left_out_, why) == left_out_.end()) left_out_.push_back(std::move(why));
  }
}

void Collector::listen_to_ranges() {
  const auto ended = [this](const EndedRange& range) {
    const Event event{.kind = EventKind::range,
                      .name = spool_.name(range.name),
                      .begin_ns = range.begin_ns,
                      .end_ns = range.end_ns,
                      .thread = static_cast<std::uint32_t>(::syscall(SYS_gettid)),
                      .extra = static_cast<std::uint64_t>(range.step)};
    const std::lock_guard lock(state_->saying);
    state_->said.add(event);
  };
  const auto now = [this] {
    std::uint64_t time = 0;
    (void)cupti_.timestamp(&time);
    return static_cast<std::int64_t>(time);
  };
  const auto begun = [this](const std::string& name) {
    const NameNumber number = spool_.name(name);
    const std::lock_guard lock(state_->saying);
    state_->told.insert(number);
  };
  state_->inside = false;
  state_->ranges = std::make_unique<RangeSwitch>(
      options_.wanted,
      RangeSwitch::Hooks{.turn = [this](bool inside) { turn(inside); }, .now = now, .begun = begun, .ended = ended});
  for (const CUpti_CallbackId id : RangeSwitch::functions())
    if (const CUptiResult r = cupti_.enable_callback(1, subscriber_, CUPTI_CB_DOMAIN_NVTX, id); r != CUPTI_SUCCESS) {
      // Everything is recorded, and whoever reads it keeps what lies in ranges.
      left_out_.push_back("switching by ranges: " + said(cupti_, "cuptiEnableCallback", r));
      state_->ranges.reset();
      state_->inside = true;
      return;
    }
}

void Collector::turn(bool inside) {
  const std::lock_guard lock(state_->switching);
  state_->inside = inside;
  if (inside && !state_->paused && !state_->on) switch_on();
}

void Collector::switch_on() {
  enable_kinds(false);
  state_->on = true;
  look_at_clocks();
}

void Collector::switch_off() {
  for (const Kind& kind : kKinds)
    if (!kind.while_paused && (kind.wanted == nullptr || options_.*kind.wanted)) (void)cupti_.disable(kind.kind);
  state_->on = false;
}

void Collector::settle() {
  {
    const std::lock_guard lock(state_->switching);
    if (!state_->on || (state_->inside && !state_->paused)) return;
    switch_off();
  }
  flush();
}

void Collector::look_at_clocks() {
  std::uint64_t device = 0;
  const std::int64_t before = host_now();
  if (cupti_.timestamp(&device) != CUPTI_SUCCESS) return;
  const std::int64_t behind = host_now();
  const std::lock_guard lock(state_->looking);
  state_->looks.add(
      {.kind = EventKind::clocks, .begin_ns = static_cast<std::int64_t>(device), .end_ns = before, .bytes = behind});
}

void Collector::flush(bool all) {
  (void)cupti_.flush_all(all ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
  look_at_clocks();
}

void Collector::pause() {
  {
    const std::lock_guard lock(state_->switching);
    state_->paused = true;
  }
  settle();
}

void Collector::resume() {
  const std::lock_guard lock(state_->switching);
  state_->paused = false;
  if (state_->inside && !state_->on) switch_on();
}

void Collector::push(std::uint64_t id) {
  pushed.push_back(id);
  (void)cupti_.push_external(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, id);
}

void Collector::pop() {
  if (pushed.empty()) return;
  pushed.pop_back();
  std::uint64_t last = 0;
  (void)cupti_.pop_external(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
}

void Collector::give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* records) {
  *buffer = nullptr;
  *size = 0;
  *records = 0;  // as many as fit
  Collector* const self = the_collector.load();
  if (self == nullptr) return;
  std::atomic<std::int64_t>& bytes = self->state_->buffer_bytes;
  if (bytes.fetch_add(kBufferBytes) + static_cast<std::int64_t>(kBufferBytes) <= self->options_.most_buffer_bytes)
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kBufferAlignment, kBufferBytes));
  if (*buffer == nullptr) {
    bytes.fetch_sub(kBufferBytes);
    return;
  }
  *size = kBufferBytes;
}

void Collector::take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                            std::size_t filled) {
  if (Collector* const self = the_collector.load(); self != nullptr && buffer != nullptr) {
    self->take(context, stream, buffer, filled);
    self->state_->buffer_bytes.fetch_sub(kBufferBytes);
  }
  std::free(buffer);
}

void Collector::take(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t filled) {
  look_at_clocks();
  const std::lock_guard lock(state_->taking);
  CUpti_Activity* record = nullptr;
  while (filled > 0 && cupti_.next_record(buffer, filled, &record) == CUPTI_SUCCESS && record != nullptr)
    if (const std::optional<Event> event = state_->converter.event_of(*record); event && !is_told(*event))
      state_->taken.add(*event);
  std::size_t dropped = 0;
  if (cupti_.dropped_records(context, stream, &dropped) == CUPTI_SUCCESS && dropped > 0)
    state_->taken.add({.kind = EventKind::lost, .bytes = static_cast<std::int64_t>(dropped)});
}

bool Collector::is_told(const Event& event) const {
  if (event.kind != EventKind::range || state_->ranges == nullptr) return false;
  const std::lock_guard lock(state_->saying);
  return state_->told.contains(event.name);
}

void Collector::heard(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  if (data == nullptr) return;
  auto& collector = *static_cast<Collector*>(self);
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) collector.node(id, *static_cast<const CUpti_ResourceData*>(data));
  if (domain == CUPTI_CB_DOMAIN_NVTX && collector.state_->ranges != nullptr && collector.spool_.is_own())
    collector.state_->ranges->heard(id, *static_cast<const CUpti_NvtxData*>(data));
}

void Collector::node(CUpti_CallbackId id, const CUpti_ResourceData& data) {
  const auto* const graph = static_cast<const CUpti_GraphData*>(data.resourceDescriptor);
  if (graph == nullptr) return;
  Event event;
  if (cupti_.graph_node_id(graph->node, &event.id) != CUPTI_SUCCESS) return;
  if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) {
    if (pushed.empty()) return;
    event.kind = EventKind::node_made;
    event.extra = pushed.back();
  } else {
    event.kind = EventKind::node_cloned;
    if (cupti_.graph_node_id(graph->originalNode, &event.extra) != CUPTI_SUCCESS) return;
  }
  const std::lock_guard lock(state_->saying);
  state_->said.add(event);
}

}  // namespace shard::profiler
