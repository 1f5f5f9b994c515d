// Rows of each table as spans, events and ends of arrows.
#include "traces/import/nsys.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/import/builder.h"
#include "traces/import/kineto_calls.h"
#include "traces/import/names.h"
#include "traces/import/nsys_database.h"

namespace shard::import {
namespace {

class NsysImporter {
 public:
  explicit NsysImporter(NsysDatabase database) : database_(std::move(database)) {}

  Result<LoadedTrace> run() {
    const std::set<std::string> tables = database_.tables();
    const std::vector<std::string> known = {"CUPTI_ACTIVITY_KIND_KERNEL",  "CUPTI_ACTIVITY_KIND_MEMCPY",
                                            "CUPTI_ACTIVITY_KIND_MEMSET",  "CUPTI_ACTIVITY_KIND_RUNTIME",
                                            "CUPTI_ACTIVITY_KIND_DRIVER",  "NVTX_EVENTS",
                                            "CUDA_GPU_MEMORY_USAGE_EVENTS"};
    const bool any = std::any_of(known.begin(), known.end(), [&](const std::string& t) { return tables.contains(t); });
    if (!any && !tables.contains("StringIds")) return database_.no_tables();
    if (tables.contains("StringIds")) strings();
    for (const std::string& table : known) {
      if (!tables.contains(table)) continue;
      if (table == "NVTX_EVENTS") {
        ranges();
      } else if (table == "CUDA_GPU_MEMORY_USAGE_EVENTS") {
        memory();
      } else if (table == "CUPTI_ACTIVITY_KIND_RUNTIME" || table == "CUPTI_ACTIVITY_KIND_DRIVER") {
        calls(table);
      } else {
        activities(table);
      }
    }
    arrows();
    if (fault_.empty()) fault_ = database_.fault();
    if (!fault_.empty()) builder_.loaded.trace.truncated.push_back({0, "the database is damaged: " + fault_});
    return builder_.finish();
  }

 private:
  bool row(NsysRows& rows) {
    const bool more = rows.next();
    if (builder_.room(database_.bytes())) return more;
    fault_ = "more events than a file of this size can hold";
    return false;
  }

  void strings() {
    NsysRows s = database_.select("StringIds", {"id", "value"});
    while (row(s)) {
      builder_.charge(64);
      strings_[s.integer(0)] = builder_.name(s.text(1));
    }
  }
  NameId string(std::int64_t id) const {
    const auto at = strings_.find(id);
    return at == strings_.end() ? NameId{} : at->second;
  }

  static std::int32_t nonnegative32(std::int64_t value) {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(value, 0, 0x7fff'ffff));
  }

  RowId stream_row(std::int64_t device, std::int64_t stream) {
    const auto [at, added] = streams_.try_emplace({device, stream});
    if (added) {
      at->second = builder_.add_row({.rank = Rank{nonnegative32(std::min<std::int64_t>(device, 4095))},
                                     .kind = TrackKind::stream,
                                     .name = "GPU " + std::to_string(device) + " stream " + std::to_string(stream)});
      builder_.set_order(at->second, {1, stream});
      votes_.emplace_back(at->second, StreamVotes());
    }
    return at->second;
  }

  /// globalTid: hardware, VM, process and thread id in one number.
  RowId thread_row(std::int64_t global, const char* what) {
    const auto [at, added] = threads_.try_emplace({global, what});
    if (added) {
      const auto id = static_cast<std::uint64_t>(global);
      at->second = builder_.add_row({.rank = Rank{0},
                                     .kind = TrackKind::other,
                                     .name = "process " + std::to_string(id >> 24 & 0xff'ffff) + " thread " +
                                             std::to_string(id & 0xff'ffff) + ", " + what});
      builder_.set_order(at->second, {0, global});
    }
    return at->second;
  }

  void span(RowId row, std::int64_t begin, std::int64_t end, NameId name, Activity activity, std::int64_t bytes = 0) {
    const std::int64_t duration =
        Builder::in_range(begin) && Builder::in_range(end) ? std::max<std::int64_t>(end - begin, 0) : 0;
    builder_.complete(
        row, Span{.begin_ns = begin, .duration_ns = duration, .name = name, .bytes = bytes, .activity = activity});
  }

  void activities(const std::string& table) {
    const bool kernel = table.ends_with("KERNEL"), copy = table.ends_with("MEMCPY");
    NsysRows s = database_.select(table, {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes",
                                          "copyKind", "shortName", "demangledName"});
    while (row(s)) {
      const RowId of = stream_row(s.integer(2), s.integer(3));
      const char* category = kernel ? "kernel" : copy ? "gpu_memcpy" : "gpu_memset";
      NameId name = string(s.integer(s.present(8) ? 8 : 9));
      if (!kernel) name = builder_.name(copy ? nsys_copy_name(s.integer(7)) : "Memset");
      const auto votes = std::find_if(votes_.begin(), votes_.end(), [&](const auto& v) { return v.first == of; });
      const std::string_view called = builder_.loaded.trace.name_of(name);
      const Activity activity = activity_of(category, called);
      votes->second.add(activity, called);
      builder_.row(of).stream = votes->second.winner();
      span(of, s.integer(0), s.integer(1), name, activity, s.integer(6));
      point(s.integer(4), s.integer(5), Builder::FlowEnd::finish, of, s.integer(0));
    }
  }

  void calls(const std::string& table) {
    NsysRows s = database_.select(table, {"start", "end", "globalTid", "correlationId", "nameId"});
    while (row(s)) {
      const RowId of = thread_row(s.integer(2), "CUDA calls");
      span(of, s.integer(0), s.integer(1), string(s.integer(4)), Activity::runtime);
      point(s.integer(3), s.integer(2), Builder::FlowEnd::start, of, s.integer(0));
    }
  }

  void ranges() {
    NsysRows s = database_.select("NVTX_EVENTS", {"start", "end", "text", "textId", "globalTid"});
    while (row(s)) {
      const RowId of = thread_row(s.integer(4), "NVTX");
      const NameId name = s.present(2) ? builder_.name(s.text(2)) : string(s.integer(3));
      if (s.present(1)) {
        span(of, s.integer(0), s.integer(1), name, Activity::annotation);
      } else {
        builder_.instant(of, s.integer(0), name);  // a mark
      }
    }
  }

  void memory() {
    NsysRows s = database_.select("CUDA_GPU_MEMORY_USAGE_EVENTS",
                                  {"start", "deviceId", "address", "bytes", "memKind", "memoryOperationType"}, "start");
    while (row(s)) {
      // CUpti_ActivityMemoryKind: pageable 1, pinned 2, device 3, array 4, managed 5, static 6 and 7.
      const std::int64_t kind = s.integer(4);
      const Memory where = kind == 1 ? Memory::host : kind == 2 ? Memory::pinned : Memory::device;
      const Rank rank{nonnegative32(std::min<std::int64_t>(s.integer(1), 4095))};
      const auto address = static_cast<std::uint64_t>(s.integer(2));
      constexpr std::int64_t kAllocation = 0;
      MemoryEvent event{.rank = rank, .memory = where, .time_ns = s.integer(0)};
      if (s.integer(5) == kAllocation) {
        event.delta_bytes = s.integer(3);
        event.buffer = live_.add(rank, where, address, event.delta_bytes);
      } else {
        const LiveBuffers::Live freed = live_.remove(rank, where, address);
        event.buffer = freed.buffer.valid() ? freed.buffer : live_.fresh();
        event.delta_bytes = freed.buffer.valid() ? -freed.bytes : -std::max<std::int64_t>(s.integer(3), 0);
      }
      builder_.memory(event);
    }
  }

  /// Correlation ids count per process: the upper bits of globalTid and globalPid are equal.
  void point(std::int64_t correlation, std::int64_t global, Builder::FlowEnd end, RowId row, std::int64_t time) {
    if (correlation == 0) return;
    builder_.charge(56);
    points_.push_back(
        {{static_cast<std::int64_t>(static_cast<std::uint64_t>(global) >> 24), correlation}, end, row, time});
  }

  void arrows() {
    // Most calls launch nothing: only those with a partner are ends of arrows.
    std::set<std::pair<std::int64_t, std::int64_t>> launched;
    bool any_process = false;
    for (const Point& point : points_) {
      if (point.end == Builder::FlowEnd::finish) {
        launched.insert(point.key);
        any_process = any_process || point.key.first != 0;
      }
    }
    for (Point& point : points_) {
      if (!any_process) point.key.first = 0;  // an older nsys, without globalPid
      if (!launched.contains(point.key)) continue;
      builder_.flow(std::to_string(point.key.first) + "," + std::to_string(point.key.second), point.end, point.row,
                    point.time_ns, FlowKind::launch);
    }
  }

  struct Point {
    std::pair<std::int64_t, std::int64_t> key;  // process, correlation
    Builder::FlowEnd end = Builder::FlowEnd::start;
    RowId row{};
    std::int64_t time_ns = 0;
  };

  NsysDatabase database_;
  Builder builder_{TraceFormat::nsys};
  std::unordered_map<std::int64_t, NameId> strings_;
  std::map<std::pair<std::int64_t, std::int64_t>, RowId> streams_;
  std::map<std::pair<std::int64_t, std::string>, RowId> threads_;
  std::vector<std::pair<RowId, StreamVotes>> votes_;
  std::vector<Point> points_;
  LiveBuffers live_;
  std::string fault_;
};

}  // namespace

Result<LoadedTrace> import_nsys(const std::filesystem::path& path) {
  Result<NsysDatabase> database = NsysDatabase::open(path);
  if (!database) return database.error();
  return NsysImporter(std::move(*database)).run();
}

Result<LoadedTrace> import_nsys(std::span<const std::byte> bytes, std::string_view label) {
  Result<NsysDatabase> database = NsysDatabase::open(bytes, label);
  if (!database) return database.error();
  return NsysImporter(std::move(*database)).run();
}

}  // namespace shard::import
