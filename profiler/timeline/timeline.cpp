// Rows for streams and threads, spans, memory by call, arrows from call to work.
#include "profiler/timeline/timeline.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "profiler/timeline/idle.h"
#include "profiler/timeline/process_events.h"
#include "traces/import/builder.h"
#include "traces/import/kineto.h"
#include "traces/import/kineto_calls.h"
#include "traces/import/names.h"

namespace shard::profiler {
namespace {

using import::Builder;
using import::RowId;

Memory memory_of(std::uint8_t place) {
  const auto known = static_cast<MemoryPlace>(place);
  if (known == MemoryPlace::pinned) return Memory::pinned;
  return known == MemoryPlace::pageable ? Memory::host : Memory::device;
}

const char* name_of_copy(std::uint8_t detail) {
  switch (static_cast<CopyKind>(detail)) {
    case CopyKind::to_device: return "Memcpy HtoD";
    case CopyKind::to_host: return "Memcpy DtoH";
    case CopyKind::on_device: return "Memcpy DtoD";
    case CopyKind::between_devices: return "Memcpy PtoP";
    case CopyKind::on_host: return "Memcpy HtoH";
    case CopyKind::other: break;
  }
  return "Memcpy";
}

const char* name_of_sample(std::uint8_t detail) {
  switch (static_cast<SampleKind>(detail)) {
    case SampleKind::clock_mhz: return "clock_mhz";
    case SampleKind::memory_clock_mhz: return "memory_clock_mhz";
    case SampleKind::temperature_c: return "temperature_c";
    case SampleKind::power_mw: return "power_mw";
    case SampleKind::fan_percent: return "fan_percent";
  }
  return "value";
}

const char* name_of_wait(std::uint8_t detail) {
  switch (static_cast<WaitKind>(detail)) {
    case WaitKind::event: return "wait for an event";
    case WaitKind::stream: return "wait for a stream";
    case WaitKind::device: return "wait for the device";
    case WaitKind::stream_for_event: return "stream waits for an event";
    case WaitKind::other: break;
  }
  return "wait";
}

/// One process's part of the trace.
class Part {
 public:
  Part(const Process& process, std::size_t number, std::int64_t shift_ns, Builder& builder, Timeline& timeline,
       std::vector<import::StepRange>& steps)
      : content_(process.content),
        rank_(process.rank),
        number_(number),
        shift_ns_(shift_ns),
        builder_(builder),
        joined_(timeline.joined),
        idle_(timeline.idle),
        steps_(steps),
        events_(process.content) {}

  void add() {
    joined_.twice += events_.twice();
    joined_.clock_bound_ns = std::max(joined_.clock_bound_ns, events_.clock_bound_ns());
    for (const Event& event : events_.events()) add(event);
    for (Idle idle : idle_of(events_, content_, shift_ns_)) {
      idle.rank = rank_of(idle.device);
      idle_.push_back(idle);
    }
    std::set<Rank> ranks{host_rank()};
    for (const auto& [place, row] : streams_) ranks.insert(std::get<Rank>(place));
    for (const Rank rank : ranks)
      for (import::StepRange step : own_steps_) {
        step.rank = rank;
        steps_.push_back(step);
      }
  }

 private:
  /// Of what is joined to one of our ranks, that; else the process's, or the device's number.
  [[nodiscard]] Rank rank_of(std::uint32_t device, const std::optional<WorkOf>& owner) const {
    return owner && owner->pushed.rank >= 0 ? Rank{std::min(owner->pushed.rank, 1 << 20)} : rank_of(device);
  }
  [[nodiscard]] Rank rank_of(std::uint32_t device) const {
    return rank_.valid() ? rank_ : Rank{static_cast<std::int32_t>(std::min(device, 4095u))};
  }
  [[nodiscard]] Rank host_rank() const { return rank_.valid() ? rank_ : Rank{0}; }
  [[nodiscard]] NameId name(NameNumber number) { return builder_.name(content_.name_of(number)); }

  using StreamRow = std::pair<RowId, import::StreamVotes>;
  StreamRow& stream_of(const Event& event, Rank rank) {
    const auto [at, added] = streams_.try_emplace({rank, event.device, event.stream});
    if (added) {
      at->second.first =
          builder_.add_row({.rank = rank,
                            .kind = TrackKind::stream,
                            .name = "GPU " + std::to_string(event.device) + " stream " + std::to_string(event.stream)});
      builder_.set_order(at->second.first, {1, event.stream});
    }
    return at->second;
  }

  RowId thread_row(const Event& event, const char* what) {
    const std::optional<WorkOf> owner = events_.owner_of(event);
    const Rank rank = owner && owner->pushed.rank >= 0 ? rank_of(0, owner) : host_rank();
    const auto [at, added] = threads_.try_emplace({rank, event.thread, what});
    if (added) {
      at->second = builder_.add_row({.rank = rank,
                                     .kind = TrackKind::other,
                                     .name = "process " + std::to_string(content_.process) + " thread " +
                                             std::to_string(event.thread) + ", " + what});
      builder_.set_order(at->second, {0, event.thread});
    }
    return at->second;
  }

  [[nodiscard]] Span span(const Event& event, NameId name, Activity activity) const {
    return {.begin_ns = event.begin_ns + shift_ns_,
            .duration_ns = event.end_ns - event.begin_ns,
            .name = name,
            .bytes = event.bytes,
            .activity = activity};
  }

  void work(const Event& event) {
    const bool kernel = event.kind == EventKind::kernel, copy = event.kind == EventKind::copy;
    NameId called = name(event.name);
    if (!called.valid()) called = builder_.name(kernel ? "kernel" : copy ? name_of_copy(event.detail) : "Memset");
    const std::string text(builder_.loaded.trace.name_of(called));
    const Activity activity = import::activity_of(kernel ? "kernel" : copy ? "gpu_memcpy" : "gpu_memset", text);
    const std::optional<WorkOf> owner = events_.owner_of(event);
    auto& [row, votes] = stream_of(event, rank_of(event.device, owner));
    votes.add(activity, text);
    builder_.row(row).stream = votes.winner();
    Span made = span(event, called, activity);
    ++joined_.device_spans;
    if (owner && owner->pushed.op >= 0) {
      ++joined_.with_op;
      own(made, *owner);
    }
    if (const Event* const call = events_.call_of(event); call != nullptr) {
      arrow(*call, event, row);
    } else {
      ++joined_.without_call;
    }
    builder_.complete(row, made);
  }

  static void own(Span& made, const WorkOf& owner) {
    made.op = OpId{owner.pushed.op};
    made.phase = owner.at.phase;
    made.step = owner.at.step;
  }

  void arrow(const Event& call, const Event& event, RowId row) {
    const std::uint64_t key = std::uint64_t{number_} << 32 | call.correlation;
    if (started_.insert(call.correlation).second)
      builder_.flow(key, Builder::FlowEnd::start, thread_row(call, "CUDA calls"), call.begin_ns + shift_ns_,
                    FlowKind::launch);
    // A graph's launch is the cause of many; the first is shown.
    if (arrived_.insert(call.correlation).second)
      builder_.flow(key, Builder::FlowEnd::finish, row, event.begin_ns + shift_ns_, FlowKind::launch);
  }

  /// Who asked for memory: the call, as a stack of one frame.
  StackId caller(const Event& event) {
    const Event* const call = events_.call_of(event);
    const NameId called = call != nullptr ? name(call->name) : name(event.name);
    if (!called.valid()) return {};
    return builder_.stack({.frame = builder_.frame({.function = called})});
  }

  void memory(const Event& event) {
    const Memory where = memory_of(event.detail);
    const std::optional<WorkOf> owner = events_.owner_of(event);
    const bool ours = owner && owner->pushed.rank >= 0;
    Rank rank = is_host(where) && !ours ? host_rank() : rank_of(event.device, owner);
    // Who gives back what a rank of ours took need not say so.
    if (event.kind == EventKind::acquired) {
      holder_[{where, event.id}] = rank;
    } else if (const auto held = holder_.find({where, event.id}); held != holder_.end()) {
      rank = held->second;
      holder_.erase(held);
    }
    MemoryEvent made{.rank = rank,
                     .memory = where,
                     .category = Category::not_known,
                     .time_ns = event.begin_ns + shift_ns_,
                     .stack = caller(event)};
    if (event.kind == EventKind::acquired) {
      made.delta_bytes = std::max<std::int64_t>(event.bytes, 0);
      made.buffer = live_.add(rank, where, event.id, made.delta_bytes);
    } else {
      // What was taken before the recording began was never counted.
      const import::LiveBuffers::Live freed = live_.remove(rank, where, event.id);
      if (!freed.buffer.valid()) return;
      made.buffer = freed.buffer;
      made.delta_bytes = -freed.bytes;
    }
    builder_.memory(made);
  }

  void counter(const Event& event, Rank rank, std::string_view called, double value) {
    builder_.counter(
        {.rank = rank, .name = builder_.name(called), .time_ns = event.begin_ns + shift_ns_, .value = value});
  }

  void range(const Event& event) {
    // Our own programs say the step of each op; of others a step is what lies in its range.
    if (event.extra > 0 && (event.flags & kFromHost) == 0)
      own_steps_.push_back({.begin_ns = event.begin_ns + shift_ns_,
                            .end_ns = event.end_ns + shift_ns_,
                            .step = static_cast<std::int32_t>(event.extra),
                            .process = 0,
                            .rank = host_rank()});
    Span made = span(event, name(event.name), Activity::annotation);
    switch (static_cast<RangeOf>(event.detail)) {
      case RangeOf::phase:
        made.phase = PhaseStep::of(event.extra).phase;
        made.step = PhaseStep::of(event.extra).step;
        break;
      case RangeOf::op:
        if (const std::optional<WorkOf> owner = events_.owner_of(event)) own(made, *owner);
        break;
      case RangeOf::others: made.step = static_cast<std::int32_t>(event.extra); break;
    }
    builder_.complete(thread_row(event, "ranges"), made);
  }

  void add(const Event& event) {
    switch (event.kind) {
      case EventKind::kernel:
      case EventKind::copy:
      case EventKind::fill: work(event); break;
      case EventKind::acquired:
      case EventKind::released: memory(event); break;
      case EventKind::pool:
        counter(event, rank_of(event.device), "pool_reserved_bytes", static_cast<double>(event.bytes));
        break;
      case EventKind::call:
        builder_.complete(thread_row(event, "CUDA calls"), span(event, name(event.name), Activity::runtime));
        break;
      case EventKind::wait:
        builder_.complete(static_cast<WaitKind>(event.detail) == WaitKind::stream_for_event
                              ? stream_of(event, rank_of(event.device, events_.owner_of(event))).first
                              : thread_row(event, "CUDA waits"),
                          span(event, builder_.name(name_of_wait(event.detail)), Activity::wait));
        break;
      case EventKind::range: range(event); break;
      case EventKind::mark:
        builder_.instant(thread_row(event, "ranges"), event.begin_ns + shift_ns_, name(event.name));
        break;
      case EventKind::sample:
        counter(event, rank_of(event.device), name_of_sample(event.detail), static_cast<double>(event.bytes));
        break;
      case EventKind::device:
        builder_.loaded.trace.header.metadata["gpu " + std::to_string(event.device)] = content_.name_of(event.name);
        break;
      case EventKind::none:
      case EventKind::external:
      case EventKind::node_made:
      case EventKind::node_cloned:
      case EventKind::clocks:
      case EventKind::lost: break;
    }
  }

  const SpoolContent& content_;
  Rank rank_;
  std::size_t number_;
  std::int64_t shift_ns_;
  Builder& builder_;
  Joined& joined_;
  std::vector<Idle>& idle_;
  std::vector<import::StepRange>& steps_;
  std::vector<import::StepRange> own_steps_;
  ProcessEvents events_;
  std::map<std::tuple<Rank, std::uint32_t, std::uint32_t>, StreamRow> streams_;
  std::map<std::tuple<Rank, std::uint32_t, std::string_view>, RowId> threads_;
  std::unordered_set<std::uint32_t> started_, arrived_;
  std::map<std::pair<Memory, std::uint64_t>, Rank> holder_;  ///< by address
  import::LiveBuffers live_;
};

std::int64_t lost_of(const SpoolContent& content) {
  std::int64_t lost = content.dropped + content.overwritten;
  for (const Event& event : content.events)
    if (event.kind == EventKind::lost) lost += std::clamp<std::int64_t>(event.bytes, 0, INT32_MAX);
  return lost;
}

}  // namespace

Timeline timeline_of(std::span<const Process> processes) {
  Timeline result;
  Builder builder(TraceFormat::sst);
  std::int64_t lost = 0;
  std::int32_t world = 1;
  std::vector<import::StepRange> steps;
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const SpoolContent& content = processes[i].content;
    const SpoolContent& first = processes[0].content;
    // Both say the same moment on two clocks; a host's processes share the steady one, so this is zero there but for
    // the reading.
    const std::int64_t offset = (content.wall_ns - content.clock_ns) - (first.wall_ns - first.clock_ns);
    constexpr std::int64_t kOneHost = 1'000'000;
    Part(processes[i], i, std::abs(offset) < kOneHost ? 0 : offset, builder, result, steps).add();
    lost += lost_of(content);
    world = std::max(world, processes[i].rank.value + 1);
  }
  Header& header = builder.loaded.trace.header;
  if (!processes.empty()) {
    header.clock_ns = processes[0].content.clock_ns;
    header.wall_ns = processes[0].content.wall_ns;
  }
  header.world_size = std::max(world, static_cast<std::int32_t>(processes.size() > 1 ? world : 1));
  builder.loaded.trace.dropped_count = lost;
  if (lost > 0) builder.loaded.notes.push_back(std::to_string(lost) + " events found no room and are not there");
  if (result.joined.without_call > 0)
    builder.loaded.notes.push_back(std::to_string(result.joined.without_call) +
                                   " pieces of work whose call is not in the recording");
  result.loaded = builder.finish();
  import::number_steps(steps, result.loaded.trace);
  return result;
}

}  // namespace shard::profiler
