// Field by field, by the record's kind.
#include "profiler/cupti/convert.h"

#include <array>

namespace shard::profiler {
namespace {

std::int64_t ns(std::uint64_t time) {
  return static_cast<std::int64_t>(time);
}
std::int64_t size(std::uint64_t bytes) {
  return static_cast<std::int64_t>(bytes);
}

CopyKind copy_kind(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA: return CopyKind::to_device;
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH: return CopyKind::to_host;
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOA:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOA:
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD: return CopyKind::on_device;
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP: return CopyKind::between_devices;
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH: return CopyKind::on_host;
    default: return CopyKind::other;
  }
}

MemoryPlace memory_place(std::uint32_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE: return MemoryPlace::pageable;
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED: return MemoryPlace::pinned;
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE: return MemoryPlace::device;
    case CUPTI_ACTIVITY_MEMORY_KIND_ARRAY: return MemoryPlace::array;
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED: return MemoryPlace::managed;
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC:
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC: return MemoryPlace::code;
    default: return MemoryPlace::other;
  }
}

WaitKind wait_kind(std::uint32_t type) {
  switch (type) {
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE: return WaitKind::event;
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT: return WaitKind::stream_for_event;
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE: return WaitKind::stream;
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE: return WaitKind::device;
    default: return WaitKind::other;
  }
}

PoolChange pool_change(std::uint32_t operation) {
  if (operation == CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED) return PoolChange::created;
  if (operation == CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED) return PoolChange::destroyed;
  return PoolChange::trimmed;
}

template <class Record>
const Record& as(const CUpti_Activity& record) {
  return reinterpret_cast<const Record&>(record);
}

/// What kernels, copies and fills have in common.
template <class Work>
Event work(const Work& w, EventKind kind) {
  return {.kind = kind,
          .begin_ns = ns(w.start),
          .end_ns = ns(w.end),
          .correlation = w.correlationId,
          .device = w.deviceId,
          .stream = w.streamId,
          .extra = w.graphNodeId};
}

template <class Copy>
Event copy(const Copy& c) {
  Event event = work(c, EventKind::copy);
  event.detail = static_cast<std::uint8_t>(copy_kind(c.copyKind));
  event.bytes = size(c.bytes);
  return event;
}

}  // namespace

NameNumber Converter::name(const char* text) {
  if (text == nullptr || *text == '\0') return 0;
  const auto [at, added] = names_.try_emplace(text);
  if (added || at->second.text != text) at->second = {spool_.name(text), text};
  return at->second.number;
}

NameNumber Converter::call_name(CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  const auto [at, added] = calls_.try_emplace(std::uint64_t{static_cast<std::uint32_t>(domain)} << 32 | id, 0);
  if (!added) return at->second;
  const char* text = nullptr;
  if (cupti_.callback_name(domain, id, &text) != CUPTI_SUCCESS || text == nullptr) return 0;
  // "cudaLaunchKernel_v7000": which version of a function a program calls is of no use to people.
  std::string_view called = text;
  if (const std::size_t version = called.rfind("_v");
      version != std::string_view::npos && version + 2 < called.size() &&
      called.find_first_not_of("0123456789", version + 2) == std::string_view::npos)
    called = called.substr(0, version);
  return at->second = spool_.name(called);
}

std::optional<Event> Converter::range(const CUpti_ActivityMarker2& marker) {
  const std::uint32_t thread = marker.objectKind == CUPTI_ACTIVITY_OBJECT_THREAD ? marker.objectId.pt.threadId : 0;
  if ((marker.flags & CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS) != 0)
    return Event{
        .kind = EventKind::mark, .name = name(marker.name), .begin_ns = ns(marker.timestamp), .thread = thread};
  if ((marker.flags & CUPTI_ACTIVITY_FLAG_MARKER_START) != 0) {
    ranges_[marker.id] = {ns(marker.timestamp), name(marker.name), thread};
    return std::nullopt;
  }
  const auto begun = ranges_.find(marker.id);
  if ((marker.flags & CUPTI_ACTIVITY_FLAG_MARKER_END) == 0 || begun == ranges_.end()) return std::nullopt;
  const Event event{.kind = EventKind::range,
                    .name = begun->second.name,
                    .begin_ns = begun->second.begin_ns,
                    .end_ns = ns(marker.timestamp),
                    .id = marker.id,
                    .thread = begun->second.thread};
  ranges_.erase(begun);
  return event;
}

Event Converter::memory(const CUpti_ActivityMemory4& m) {
  const bool acquired = m.memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
  return {.kind = acquired ? EventKind::acquired : EventKind::released,
          .detail = static_cast<std::uint8_t>(memory_place(m.memoryKind)),
          .name = name(m.name),
          .begin_ns = ns(m.timestamp),
          .id = m.address,
          .bytes = size(m.bytes),
          .correlation = m.correlationId,
          .device = m.deviceId,
          .stream = m.streamId,
          .extra = m.PC};
}

std::optional<Event> Converter::sample(const CUpti_ActivityEnvironment& e) const {
  Event event{.kind = EventKind::sample, .begin_ns = ns(e.timestamp), .device = e.deviceId};
  const auto value = [&](SampleKind kind, std::uint32_t number) {
    event.detail = static_cast<std::uint8_t>(kind);
    event.bytes = number;
    return event;
  };
  switch (static_cast<int>(e.environmentKind)) {
    case CUPTI_ACTIVITY_ENVIRONMENT_SPEED: return value(SampleKind::clock_mhz, e.data.speed.smClock);
    case CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE:
      return value(SampleKind::temperature_c, e.data.temperature.gpuTemperature);
    case CUPTI_ACTIVITY_ENVIRONMENT_POWER: return value(SampleKind::power_mw, e.data.power.power);
    case CUPTI_ACTIVITY_ENVIRONMENT_COOLING: return value(SampleKind::fan_percent, e.data.cooling.fanSpeed);
    default: return std::nullopt;
  }
}

std::optional<Event> Converter::event_of(const CUpti_Activity& record) {
  switch (static_cast<int>(record.kind)) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& k = as<CUpti_ActivityKernel10>(record);
      Event event = work(k, EventKind::kernel);
      event.name = name(k.name);
      return event;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: return copy(as<CUpti_ActivityMemcpy6>(record));
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return copy(as<CUpti_ActivityMemcpyPtoP4>(record));
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& f = as<CUpti_ActivityMemset4>(record);
      Event event = work(f, EventKind::fill);
      event.bytes = size(f.bytes);
      return event;
    }
    case CUPTI_ACTIVITY_KIND_MEMORY2: return memory(as<CUpti_ActivityMemory4>(record));
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL: {
      const auto& p = as<CUpti_ActivityMemoryPool3>(record);
      return Event{.kind = EventKind::pool,
                   .detail = static_cast<std::uint8_t>(pool_change(p.memoryPoolOperationType)),
                   .begin_ns = ns(p.timestamp),
                   .id = p.address,
                   .bytes = size(p.size),
                   .correlation = p.correlationId,
                   .device = p.deviceId};
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: {
      const auto& c = as<CUpti_ActivityAPI>(record);
      const bool runtime = record.kind == CUPTI_ACTIVITY_KIND_RUNTIME;
      return Event{.kind = EventKind::call,
                   .name = call_name(runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, c.cbid),
                   .begin_ns = ns(c.start),
                   .end_ns = ns(c.end),
                   .id = c.returnValue,
                   .correlation = c.correlationId,
                   .thread = c.threadId};
    }
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& e = as<CUpti_ActivityExternalCorrelation>(record);
      return Event{.kind = EventKind::external,
                   .detail = static_cast<std::uint8_t>(e.externalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0),
                   .id = e.externalId,
                   .correlation = e.correlationId};
    }
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
      const auto& s = as<CUpti_ActivitySynchronization2>(record);
      return Event{.kind = EventKind::wait,
                   .detail = static_cast<std::uint8_t>(wait_kind(s.type)),
                   .begin_ns = ns(s.start),
                   .end_ns = ns(s.end),
                   .correlation = s.correlationId,
                   .stream = s.streamId};
    }
    case CUPTI_ACTIVITY_KIND_MARKER: return range(as<CUpti_ActivityMarker2>(record));
    case CUPTI_ACTIVITY_KIND_ENVIRONMENT: return sample(as<CUpti_ActivityEnvironment>(record));
    case CUPTI_ACTIVITY_KIND_DEVICE: {
      const auto& d = as<CUpti_ActivityDevice5>(record);
      return Event{.kind = EventKind::device, .name = name(d.name), .bytes = size(d.globalMemorySize), .device = d.id};
    }
    default: return std::nullopt;
  }
}

}  // namespace shard::profiler
