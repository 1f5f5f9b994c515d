// What a profiled program did, one event at a time: what the driver says of it, and what its own threads say.
#pragma once

#include <cstdint>
#include <type_traits>

namespace shard::profiler {

/// A text that was given to a spool; 0 is none.
using NameNumber = std::uint32_t;

/// What an event is. Values are stored in files: append only.
enum class EventKind : std::uint8_t {
  none = 0,
  kernel = 1,        ///< ran on a device
  copy = 2,          ///< between memories; detail: CopyKind
  fill = 3,          ///< of device memory
  acquired = 4,      ///< memory by a call; detail: MemoryPlace; id: address
  released = 5,      ///< likewise
  pool = 6,          ///< detail: PoolChange; id: address of the pool, bytes: what it holds now
  call = 7,          ///< of the runtime or the driver; thread
  external = 8,      ///< the calls of `correlation` belong to `id`, which the program pushed; detail: whose ids
  node_made = 9,     ///< graph node `id` was made while `extra` was the program's pushed id
  node_cloned = 10,  ///< graph node `id` is a copy of node `extra`, as instantiating a graph makes them
  wait = 11,         ///< the host, or a stream, waits; detail: WaitKind; thread or stream
  range = 12,        ///< a stretch of a host thread that somebody named (NVTX, or our own); detail: RangeOf
  mark = 13,         ///< a moment that somebody named
  sample = 14,       ///< a value of the device; detail: SampleKind; bytes: the value
  clocks = 15,       ///< one look at both clocks: begin: the device's; end and bytes: the host's before and behind it
  lost = 16,         ///< whoever delivers the events dropped `bytes` of them
  device = 17,       ///< `device` is a GPU called `name`, with `bytes` of memory
};
inline constexpr int kEventKindCount = 18;

enum class CopyKind : std::uint8_t { other, to_device, to_host, on_device, between_devices, on_host };
enum class MemoryPlace : std::uint8_t { other, pageable, pinned, device, array, managed, code };
enum class PoolChange : std::uint8_t { created, destroyed, trimmed };
enum class WaitKind : std::uint8_t { other, event, stream, device, stream_for_event };
/// Of what a range is. Of a phase and of an op, `id` is what our own programs push (PushedOp), and `extra` of a phase
/// which one it is (PhaseStep); of other ranges `id` only tells them apart.
enum class RangeOf : std::uint8_t { others, phase, op };
enum class SampleKind : std::uint8_t { clock_mhz, memory_clock_mhz, temperature_c, power_mw, fan_percent };

/// Plain, and a cache line long, so that writing one is one copy. Times: of the device's clock as CUPTI tells it, or
/// with kFromHost of the host's steady clock.
struct Event {
  EventKind kind = EventKind::none;
  std::uint8_t detail = 0;
  std::uint16_t flags = 0;  ///< kFromHost
  NameNumber name = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t id = 0;
  std::int64_t bytes = 0;
  std::uint32_t correlation = 0;  ///< of the call that caused it; 0: none
  std::uint32_t device = 0;
  std::uint32_t stream = 0;
  std::uint32_t thread = 0;
  std::uint64_t extra = 0;  ///< graph node of kernel, copy and fill; of a range its step, of a phase PhaseStep

  friend bool operator==(const Event&, const Event&) = default;
};
static_assert(sizeof(Event) == 64 && std::is_trivially_copyable_v<Event>);

/// In `flags`: times are of the host's steady clock.
inline constexpr std::uint16_t kFromHost = 1;

}  // namespace shard::profiler
