// Plain SELECTs over tables that are there, with NULL for columns that are not.
#include "traces/import/nsys.h"

#include <sqlite3.h>

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

namespace shard::import {
namespace {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct FinishStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, FinishStatement>;

/// SQLite's virtual machine steps between two looks at the budget: a damaged database may make it walk in circles.
constexpr int kStepsPerLook = 10'000;

class NsysImporter {
 public:
  NsysImporter(Database database, std::string label, std::uint64_t bytes)
      : database_(std::move(database)), label_(std::move(label)), bytes_(bytes) {
    // Lengths of a damaged record are believed by SQLite; the limit is the whole process's, and only this uses it.
    sqlite3_hard_heap_limit64(sqlite3_memory_used() + (32 << 20) + static_cast<sqlite3_int64>(bytes));
    sqlite3_db_config(database_.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(database_.get(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    steps_left_ = 1000 + static_cast<std::int64_t>(bytes / 16);
    sqlite3_progress_handler(
        database_.get(), kStepsPerLook, [](void* left) { return --*static_cast<std::int64_t*>(left) < 0 ? 1 : 0; },
        &steps_left_);
  }

  Result<LoadedTrace> run() {
    const std::set<std::string> tables = names("SELECT name FROM sqlite_master WHERE type = 'table'", 0);
    const std::vector<std::string> known = {"CUPTI_ACTIVITY_KIND_KERNEL",  "CUPTI_ACTIVITY_KIND_MEMCPY",
                                            "CUPTI_ACTIVITY_KIND_MEMSET",  "CUPTI_ACTIVITY_KIND_RUNTIME",
                                            "CUPTI_ACTIVITY_KIND_DRIVER",  "NVTX_EVENTS",
                                            "CUDA_GPU_MEMORY_USAGE_EVENTS"};
    const bool any = std::any_of(known.begin(), known.end(), [&](const std::string& t) { return tables.contains(t); });
    if (!any && !tables.contains("StringIds")) {
      return Error{
          .code = Errc::malformed,
          .what = fault_.empty() ? "is a database without any table of nsys" : "is a damaged database: " + fault_,
          .where = label_ + ": byte 0",
          .help = "what nsys export --type sqlite wrote"};
    }
    if (tables.contains("StringIds")) strings();
    for (const std::string& table : known) {
      if (!tables.contains(table)) continue;
      columns_ = names("PRAGMA table_info(" + table + ")", 1);
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
    if (!fault_.empty()) builder_.loaded.trace.truncated.push_back({0, "the database is damaged: " + fault_});
    return builder_.finish();
  }

 private:
  Statement prepare(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
      fault_ = sqlite3_errmsg(database_.get());
    }
    return Statement(statement);
  }

  bool row(const Statement& statement) {
    if (statement == nullptr) return false;
    const int code = sqlite3_step(statement.get());
    if (code != SQLITE_ROW && code != SQLITE_DONE) fault_ = sqlite3_errmsg(database_.get());
    if (!builder_.room(bytes_)) fault_ = "more events than a file of this size can hold";
    return code == SQLITE_ROW && builder_.room(bytes_);
  }

  static std::int64_t integer(const Statement& s, int column) { return sqlite3_column_int64(s.get(), column); }
  static bool present(const Statement& s, int column) { return sqlite3_column_type(s.get(), column) != SQLITE_NULL; }
  static std::string text(const Statement& s, int column) {
    const unsigned char* text = sqlite3_column_text(s.get(), column);
    const int size = sqlite3_column_bytes(s.get(), column);
    return text == nullptr ? std::string()
                           : std::string(reinterpret_cast<const char*>(text), static_cast<std::size_t>(size));
  }

  std::set<std::string> names(const std::string& sql, int column) {
    std::set<std::string> result;
    const Statement s = prepare(sql);
    while (row(s) && result.size() < 10'000) result.insert(text(s, column));
    return result;
  }

  /// "a, NULL, c": columns that the table has, in the order asked for.
  [[nodiscard]] std::string select(const std::string& table, const std::vector<std::string>& wanted) const {
    std::string sql = "SELECT ";
    for (const std::string& column : wanted) {
      if (&column != &wanted.front()) sql += ", ";
      sql += columns_.contains(column) ? "\"" + column + "\"" : "NULL";
    }
    return sql + " FROM " + table;
  }

  void strings() {
    const Statement s = prepare("SELECT id, value FROM StringIds");
    while (row(s)) {
      builder_.charge(64);
      strings_[integer(s, 0)] = builder_.name(text(s, 1));
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

  static const char* copy_name(std::int64_t kind) {  // CUpti_ActivityMemcpyKind
    switch (kind) {
      case 1: return "Memcpy HtoD";
      case 2: return "Memcpy DtoH";
      case 8: return "Memcpy DtoD";
      case 10: return "Memcpy PtoP";
      default: return "Memcpy";
    }
  }

  void activities(const std::string& table) {
    const bool kernel = table.ends_with("KERNEL"), copy = table.ends_with("MEMCPY");
    const Statement s = prepare(select(table, {"start", "end", "deviceId", "streamId", "correlationId", "globalPid",
                                               "bytes", "copyKind", "shortName", "demangledName"}));
    while (row(s)) {
      const RowId of = stream_row(integer(s, 2), integer(s, 3));
      const char* category = kernel ? "kernel" : copy ? "gpu_memcpy" : "gpu_memset";
      NameId name = string(integer(s, present(s, 8) ? 8 : 9));
      if (!kernel) name = builder_.name(copy ? copy_name(integer(s, 7)) : "Memset");
      const auto votes = std::find_if(votes_.begin(), votes_.end(), [&](const auto& v) { return v.first == of; });
      const std::string_view called = builder_.loaded.trace.name_of(name);
      const Activity activity = activity_of(category, called);
      votes->second.add(activity, called);
      builder_.row(of).stream = votes->second.winner();
      span(of, integer(s, 0), integer(s, 1), name, activity, integer(s, 6));
      point(integer(s, 4), integer(s, 5), Builder::FlowEnd::finish, of, integer(s, 0));
    }
  }

  void calls(const std::string& table) {
    const Statement s = prepare(select(table, {"start", "end", "globalTid", "correlationId", "nameId"}));
    while (row(s)) {
      const RowId of = thread_row(integer(s, 2), "CUDA calls");
      span(of, integer(s, 0), integer(s, 1), string(integer(s, 4)), Activity::runtime);
      point(integer(s, 3), integer(s, 2), Builder::FlowEnd::start, of, integer(s, 0));
    }
  }

  void ranges() {
    const Statement s = prepare(select("NVTX_EVENTS", {"start", "end", "text", "textId", "globalTid"}));
    while (row(s)) {
      const RowId of = thread_row(integer(s, 4), "NVTX");
      const NameId name = present(s, 2) ? builder_.name(text(s, 2)) : string(integer(s, 3));
      if (present(s, 1)) {
        span(of, integer(s, 0), integer(s, 1), name, Activity::annotation);
      } else {
        builder_.instant(of, integer(s, 0), name);  // a mark
      }
    }
  }

  void memory() {
    const Statement s = prepare(select("CUDA_GPU_MEMORY_USAGE_EVENTS",
                                       {"start", "deviceId", "address", "bytes", "memKind", "memoryOperationType"}) +
                                " ORDER BY start");
    while (row(s)) {
      // CUpti_ActivityMemoryKind: pageable 1, pinned 2, device 3, array 4, managed 5, static 6 and 7.
      const std::int64_t kind = integer(s, 4);
      const Memory where = kind == 1 ? Memory::host : kind == 2 ? Memory::pinned : Memory::device;
      const Rank rank{nonnegative32(std::min<std::int64_t>(integer(s, 1), 4095))};
      const auto address = static_cast<std::uint64_t>(integer(s, 2));
      constexpr std::int64_t kAllocation = 0;
      MemoryEvent event{.rank = rank, .memory = where, .time_ns = integer(s, 0)};
      if (integer(s, 5) == kAllocation) {
        event.delta_bytes = integer(s, 3);
        event.buffer = live_.add(rank, where, address, event.delta_bytes);
      } else {
        const LiveBuffers::Live freed = live_.remove(rank, where, address);
        event.buffer = freed.buffer.valid() ? freed.buffer : live_.fresh();
        event.delta_bytes = freed.buffer.valid() ? -freed.bytes : -std::max<std::int64_t>(integer(s, 3), 0);
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

  Database database_;
  std::string label_;
  std::uint64_t bytes_;
  std::int64_t steps_left_ = 0;
  Builder builder_{TraceFormat::nsys};
  std::set<std::string> columns_;
  std::unordered_map<std::int64_t, NameId> strings_;
  std::map<std::pair<std::int64_t, std::int64_t>, RowId> streams_;
  std::map<std::pair<std::int64_t, std::string>, RowId> threads_;
  std::vector<std::pair<RowId, StreamVotes>> votes_;
  std::vector<Point> points_;
  LiveBuffers live_;
  std::string fault_;
};

Error refused(const std::string& label, sqlite3* database) {
  return {.code = Errc::malformed,
          .what = std::string("is no readable database: ") +
                  (database == nullptr ? "out of memory" : sqlite3_errmsg(database)),
          .where = label + ": byte 0",
          .help = "what nsys export --type sqlite wrote"};
}

}  // namespace

Result<LoadedTrace> import_nsys(const std::filesystem::path& path) {
  sqlite3* opened = nullptr;
  // immutable: no journal beside it is looked for or made.
  std::string uri = "file:";
  for (const char c : path.string()) {
    if (c == '?' || c == '#' || c == '%') {
      constexpr char kHex[] = "0123456789ABCDEF";
      uri += {'%', kHex[c >> 4 & 15], kHex[c & 15]};
    } else {
      uri += c;
    }
  }
  const int code =
      sqlite3_open_v2((uri + "?immutable=1").c_str(), &opened, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
  Database database(opened);
  if (code != SQLITE_OK) return refused(path.string(), opened);
  std::error_code ignored;
  const std::uintmax_t bytes = std::filesystem::file_size(path, ignored);
  return NsysImporter(std::move(database), path.string(), bytes).run();
}

Result<LoadedTrace> import_nsys(std::span<const std::byte> bytes, std::string_view label) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(":memory:", &opened, SQLITE_OPEN_READWRITE, nullptr);
  Database database(opened);
  if (code != SQLITE_OK) return refused(std::string(label), opened);
  // SQLite frees what it is given; read-only, it never writes there.
  auto* copy = static_cast<unsigned char*>(sqlite3_malloc64(bytes.size() + 1));
  if (copy == nullptr) return refused(std::string(label), nullptr);
  std::copy_n(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), copy);
  const auto size = static_cast<sqlite3_int64>(bytes.size());
  if (sqlite3_deserialize(opened, "main", copy, size, size,
                          SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY) != SQLITE_OK) {
    return refused(std::string(label), opened);
  }
  return NsysImporter(std::move(database), std::string(label), bytes.size()).run();
}

}  // namespace shard::import
