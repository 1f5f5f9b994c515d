// Correlations count per process: with the process they are numbers of the whole file.
#include "traces/import/nsys_program.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

#include "traces/import/nsys_database.h"

namespace shard::import {
namespace {

class ProgramOfNsys {
 public:
  explicit ProgramOfNsys(NsysDatabase database)
      : database_(std::move(database)), rows_left_(static_cast<std::int64_t>(database_.bytes() / kLeastOfRow)) {}

  Result<KinetoProgram> run() {
    const std::set<std::string> tables = database_.tables();
    constexpr const char *kKernels = "CUPTI_ACTIVITY_KIND_KERNEL", *kRanges = "NVTX_EVENTS";
    if (!tables.contains("StringIds") && !tables.contains(kKernels)) return database_.no_tables();
    if (tables.contains("StringIds")) {
      NsysRows rows = database_.select("StringIds", {"id", "value"});
      while (next(rows)) strings_.emplace(rows.integer(0), rows.text(1));
    }
    if (tables.contains(kKernels)) kernels(kKernels);
    for (const char* const table : {"CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"})
      if (tables.contains(table)) moves(table);
    for (const char* const table : {"CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"})
      if (tables.contains(table)) calls(table);
    if (tables.contains(kRanges)) ranges(kRanges);
    if (!database_.fault().empty() || rows_left_ < 0)
      return Error{.code = Errc::malformed,
                   .what = "is a damaged database: " +
                           (rows_left_ < 0 ? "more rows than a file of this size can hold" : database_.fault()),
                   .where = database_.label(),
                   .help = "what nsys export --type sqlite wrote"};
    std::ranges::stable_sort(program_.kernels, {}, &KinetoKernel::begin_ns);
    return std::move(program_);
  }

 private:
  /// A damaged database may lead in circles.
  bool next(NsysRows& rows) { return rows_left_ >= 0 && rows.next() && --rows_left_ >= 0; }

  const std::string& string(std::int64_t id) const {
    static const std::string none;
    const auto at = strings_.find(id);
    return at == strings_.end() ? none : at->second;
  }

  /// globalTid and globalPid have the process in their upper bits.
  std::int64_t correlation(std::int64_t number, std::int64_t global) {
    if (number == 0) return -1;
    const std::pair key(static_cast<std::int64_t>(static_cast<std::uint64_t>(global) >> 24), number);
    return correlations_.try_emplace(key, static_cast<std::int64_t>(correlations_.size())).first->second;
  }

  static std::int64_t duration(std::int64_t begin, std::int64_t end) {
    std::int64_t taken = 0;
    return __builtin_sub_overflow(end, begin, &taken) ? 0 : std::max<std::int64_t>(taken, 0);
  }

  KinetoKernel& add(const NsysRows& row, std::string name, const char* category) {
    KinetoKernel made;
    made.name = std::move(name);
    made.category = category;
    made.begin_ns = row.integer(0);
    made.duration_ns = duration(row.integer(0), row.integer(1));
    made.process = row.integer(2);
    made.stream = row.integer(3);
    made.correlation = correlation(row.integer(4), row.integer(5));
    program_.kernels.push_back(std::move(made));
    return program_.kernels.back();
  }

  void kernels(const std::string& table) {
    constexpr int kMangled = 6, kDemangled = 7, kShort = 8, kGrid = 9;
    NsysRows rows = database_.select(
        table, {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "mangledName", "demangledName",
                "shortName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"});
    while (next(rows)) {
      const int named = rows.present(kMangled) ? kMangled : rows.present(kDemangled) ? kDemangled : kShort;
      KinetoKernel& kernel = add(rows, string(rows.integer(named)), "kernel");
      for (int i = 0; i < 3; ++i) {
        kernel.grid[static_cast<std::size_t>(i)] = rows.integer(kGrid + i);
        kernel.block[static_cast<std::size_t>(i)] = rows.integer(kGrid + 3 + i);
      }
    }
  }

  void moves(const std::string& table) {
    const bool copies = table.ends_with("MEMCPY");
    NsysRows rows = database_.select(
        table, {"start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes", "copyKind"});
    while (next(rows))
      add(rows, copies ? nsys_copy_name(rows.integer(7)) : "Memset", copies ? "gpu_memcpy" : "gpu_memset").bytes =
          rows.integer(6);
  }

  void calls(const std::string& table) {
    NsysRows rows = database_.select(table, {"start", "globalTid", "correlationId"});
    while (next(rows))
      program_.calls.push_back({.begin_ns = rows.integer(0),
                                .thread = rows.integer(1),
                                .correlation = correlation(rows.integer(2), rows.integer(1))});
  }

  void ranges(const std::string& table) {
    NsysRows rows = database_.select(table, {"start", "end", "text", "textId", "globalTid"});
    while (next(rows)) {
      if (!rows.present(1)) continue;  // a mark
      std::optional<KinetoOperator> made = operator_of_range(rows.present(2) ? rows.text(2) : string(rows.integer(3)));
      if (!made) continue;
      made->begin_ns = rows.integer(0);
      made->end_ns = rows.integer(1);
      made->thread = rows.integer(4);
      program_.operators.push_back(std::move(*made));
    }
  }

  static constexpr std::uint64_t kLeastOfRow = 4;  ///< bytes

  NsysDatabase database_;
  std::int64_t rows_left_;
  std::unordered_map<std::int64_t, std::string> strings_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> correlations_;  ///< by process and number
  KinetoProgram program_;
};

}  // namespace

Result<KinetoProgram> read_nsys_program(const std::filesystem::path& path) {
  Result<NsysDatabase> database = NsysDatabase::open(path);
  if (!database) return database.error();
  return ProgramOfNsys(std::move(*database)).run();
}

}  // namespace shard::import
