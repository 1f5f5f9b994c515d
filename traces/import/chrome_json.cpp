// Events are taken one by one; what an event means may hang on metadata that comes later, so rows and ranks are settled
// at the end.
#include "traces/import/chrome_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "traces/import/builder.h"
#include "traces/import/chrome_events.h"
#include "traces/import/kineto.h"
#include "traces/import/kineto_calls.h"
#include "traces/import/kineto_ranks.h"
#include "traces/import/names.h"

namespace shard::import {
namespace {

// What a process, a row and an asynchronous id take, with the maps that find them; see Builder::room().
constexpr std::uint64_t kProcessBytes = 256, kRowInfoBytes = 512, kGroupBytes = 160;

/// A process of the file, or a GPU of a process.
struct Process {
  std::string pid{}, name{};
  std::int64_t sort_index = 0;
  std::int32_t device = -1;
  Rank rank{};
};

/// What a row is, beside the builder's track.
struct RowInfo {
  std::int32_t process = 0;
  std::string tid{}, thread_name{}, asynchronous{};  // the last: category of asynchronous spans
  std::int64_t sort_index = 0;
  std::optional<std::int64_t> device{}, stream{};
  std::string first_category{};
  StreamVotes votes{};
};

class Importer {
 public:
  explicit Importer(ByteSource& source) : source_(source), file_(source) {}

  Result<LoadedTrace> run() {
    while (file_.next()) {
      handle();
      if (!builder_.room(source_.offset()))
        file_.stop(source_.offset(), "more events and names than a file of this size can hold");
    }
    const std::optional<Truncated>& stopped = file_.stopped();
    if (stopped && (event_count_ == 0 || !file_.listed())) return refused(stopped->offset, stopped->why);
    if (!file_.listed()) return refused(0, "holds no traceEvents");
    if (event_count_ == 0 && other_count_ > 0) return refused(0, "what it lists has no phase (ph)");
    if (stopped) builder_.loaded.trace.truncated.push_back(*stopped);
    return finish();
  }

 private:
  Error refused(std::uint64_t at, const std::string& why) const {
    return {.code = Errc::malformed,
            .what = "is no trace in Chrome's JSON format: " + why,
            .where = source_.label() + ": byte " + std::to_string(at),
            .help = "a file with a list traceEvents, as a profiler wrote it"};
  }

  // --- rows ---

  std::int32_t process(const std::string& pid, std::int32_t device = -1) {
    std::string key = pid + '\x1f' + std::to_string(device);
    const auto [at, added] = process_ids_.try_emplace(std::move(key), static_cast<std::int32_t>(processes_.size()));
    if (added) {
      processes_.push_back({.pid = pid, .device = device});
      builder_.charge(kProcessBytes + 4 * pid.size());
    }
    return at->second;
  }

  RowId row(const std::string& pid, const std::string& tid, const std::string& asynchronous = "") {
    row_key_.assign(pid).append(1, '\x1f').append(tid).append(1, '\x1f').append(asynchronous);
    const auto at = row_ids_.find(row_key_);
    if (at != row_ids_.end()) return RowId{at->second};
    const RowId id = builder_.add_row({.kind = TrackKind::other});
    row_ids_.emplace(row_key_, id.value);
    builder_.charge(kRowInfoBytes + 4 * row_key_.size());
    rows_.push_back({.process = process(pid), .tid = tid, .asynchronous = asynchronous});
    return id;
  }
  RowInfo& info(RowId id) { return rows_[static_cast<std::size_t>(id.value)]; }

  // --- events ---

  void handle() {
    if (event_.phase.size() != 1) {
      ++other_count_;
      return;
    }
    ++event_count_;
    std::int64_t time = 0;
    const char phase = event_.phase[0];
    if (phase != 'M' && !thousandfold(event_.time, time)) {
      ++untimed_count_;
      return;
    }
    if (!kineto_ && is_kineto_category(event_.category)) kineto_ = true;
    switch (phase) {
      case 'X': return complete(time);
      case 'B': return begin(time, row(event_.pid, event_.tid), "");
      case 'E': return builder_.end(group(row(event_.pid, event_.tid), ""), time);
      case 'b':
      case 'S': return begin(time, row(event_.pid, "", shown_category()), asynchronous_key());
      case 'e':
      case 'F': return builder_.end(group(row(event_.pid, "", shown_category()), asynchronous_key()), time);
      case 'n':
      case 'T':
      case 'p': return builder_.instant(row(event_.pid, "", shown_category()), time, builder_.name(event_.name));
      case 'i':
      case 'I':
      case 'R': return instant(time);
      case 'C': return counter(time);
      case 'M': return metadata();
      case 's': return flow(time, Builder::FlowEnd::start);
      case 't': return flow(time, Builder::FlowEnd::step);
      case 'f': return flow(time, Builder::FlowEnd::finish);
      default: ++other_count_;
    }
  }

  /// Never empty, since that is what tells an asynchronous row.
  std::string shown_category() const { return event_.category.empty() ? "async" : event_.category; }
  std::string asynchronous_key() const {
    return (event_.global_id ? "global" : event_.pid) + '\x1f' + event_.category + '\x1f' + event_.id;
  }

  std::int32_t group(RowId row, const std::string& key) {
    if (key.empty()) return row.value;
    const auto next = static_cast<std::int32_t>(-1 - static_cast<std::int64_t>(groups_.size()));
    const auto [at, added] = groups_.try_emplace(key, next);
    if (added) builder_.charge(kGroupBytes + 2 * key.size());
    return at->second;
  }

  Span described() {
    Span span;
    span.name = builder_.name(event_.name);
    if (const auto value = event_.integer("bytes")) span.bytes = *value;
    // What our own export writes beside the name.
    if (const auto value = event_.integer("op")) span.op = OpId{clamp32(*value)};
    if (const auto value = event_.integer("waiting_ns")) span.waiting_ns = *value;
    if (const auto value = event_.integer("unit")) span.unit = UnitId{clamp32(*value)};
    if (const auto value = event_.integer("step")) span.step = clamp32(*value);
    if (const auto value = event_.integer("micro_step")) span.micro_step = clamp32(*value);
    if (const Scalar* phase = event_.argument("phase")) span.phase = phase_named(phase->text).value_or(span.phase);
    if (const Scalar* part = event_.argument("part")) span.part = part_named(part->text).value_or(span.part);
    if (const Scalar* word = event_.argument("activity"))
      span.activity = activity_named(word->text).value_or(span.activity);
    if (span.activity == Activity::unknown) span.activity = activity_of(event_.category, event_.name);
    return span;
  }

  void vote(RowId id) {
    RowInfo& row = info(id);
    if (row.first_category.empty()) row.first_category = event_.category;
    if (!is_gpu_category(event_.category)) return;
    if (!row.device) row.device = event_.integer("device");
    if (!row.stream) row.stream = event_.integer("stream");
    if (std::int64_t pid = 0; !row.device && to_integer(event_.pid, pid)) row.device = pid;  // as the profiler has it
    const Activity activity = activity_of(event_.category, event_.name);
    if (activity != Activity::wait && activity != Activity::mark) row.votes.add(activity, event_.name);
  }

  void complete(std::int64_t time) {
    const RowId id = row(event_.pid, event_.tid);
    Span span = described();
    span.begin_ns = time;
    if (!event_.duration.empty() && !thousandfold(event_.duration, span.duration_ns)) {
      ++untimed_count_;
      return;
    }
    if (span.duration_ns < 0) span.duration_ns = 0;
    vote(id);
    if (event_.category == "user_annotation" && event_.name.starts_with("ProfilerStep#")) {
      std::int64_t step = 0;
      if (to_integer(std::string_view(event_.name).substr(13), step) && Builder::in_range(time) &&
          Builder::in_range(span.duration_ns)) {
        steps_.push_back({time, time + span.duration_ns, clamp32(step), info(id).process});
      }
    }
    if (builder_.complete(id, span)) calls_.add(event_, builder_, id, builder_.span_count() - 1);
    if (!event_.bound_id.empty()) bound_flow(id, time);
  }

  /// The newer way to draw arrows: spans name what they come from and what they lead to.
  void bound_flow(RowId id, std::int64_t time) {
    const auto is = [](const std::string& word) { return word == "true" || word == "1"; };
    const bool in = is(event_.flow_in), out = is(event_.flow_out);
    if (!in && !out) return;
    const Builder::FlowEnd end = in && out ? Builder::FlowEnd::step
                                 : in      ? Builder::FlowEnd::finish
                                           : Builder::FlowEnd::start;
    builder_.flow("bind\x1f" + event_.bound_id, end, id, time, FlowKind::dependency);
  }

  void begin(std::int64_t time, RowId id, const std::string& key) {
    Span span = described();
    span.begin_ns = time;
    vote(id);
    builder_.begin(id, group(id, key), span);
    if (!event_.bound_id.empty()) bound_flow(id, time);
  }

  void instant(std::int64_t time) {
    if (event_.name == "[memory]" && event_.argument("Bytes") != nullptr) return kineto_memory(time);
    const bool global = event_.scope == "g";
    builder_.instant(global ? RowId{} : row(event_.pid, event_.tid), time, builder_.name(event_.name));
  }

  void kineto_memory(std::int64_t time) {
    KinetoMemory memory{.time_ns = time};
    const auto bytes = event_.integer("Bytes");
    if (!bytes || !Builder::in_range(time)) {
      ++untimed_count_;
      return;
    }
    kineto_ = true;
    memory.bytes = *bytes;
    if (const Scalar* address = event_.argument("Addr")) (void)to_address(address->text, memory.address);
    memory.allocated = event_.integer("Total Allocated");
    memory.reserved = event_.integer("Total Reserved");
    const std::int64_t type = event_.integer("Device Type").value_or(1);  // c10::DeviceType: 0 is the CPU
    const std::int64_t device = event_.integer("Device Id").value_or(0);
    memory.memory = type == 0 ? Memory::host : Memory::device;
    memory.process = process(event_.pid, type == 0 ? -1 : clamp32(std::clamp<std::int64_t>(device, 0, 4095)));
    memories_.push_back(memory);
    builder_.charge(sizeof(KinetoMemory));
  }

  void counter(std::int64_t time) {
    const std::int32_t of = process(event_.pid);
    if (our_memory(time, of)) return;
    const std::string base = event_.id.empty() ? event_.name : event_.name + " [" + event_.id + "]";
    for (std::size_t i = 0; i < event_.argument_count; ++i) {
      const Argument& argument = event_.arguments[i];
      double value = 0;
      const std::string& text = argument.value.text;
      const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (fault != std::errc{} || end != text.data() + text.size()) continue;
      const bool single = event_.argument_count == 1 && (argument.key == "value" || argument.key == event_.name);
      builder_.counter({Rank{of}, builder_.name(single ? base : base + " " + argument.key), time, value});
    }
  }

  /// "device memory" with one series per category: the difference to the sample before is an event.
  bool our_memory(std::int64_t time, std::int32_t of) {
    const std::optional<Memory> memory = memory_counter_named(event_.name);
    if (!memory || event_.argument_count == 0) return false;
    std::array<std::optional<std::int64_t>, kCategoryCount> values;
    for (std::size_t i = 0; i < event_.argument_count; ++i) {
      const auto category = category_named(event_.arguments[i].key);
      const auto value = event_.integer(event_.arguments[i].key);
      if (!category || !value) return false;
      values[static_cast<std::size_t>(*category)] = *value;
    }
    curves_.sample(builder_, Rank{of}, *memory, time, values);
    return true;
  }

  void metadata() {
    const Scalar* name = event_.argument("name");
    const auto index = event_.integer("sort_index");
    Process& of = processes_[static_cast<std::size_t>(process(event_.pid))];
    if (event_.name == "process_name" && name != nullptr) of.name = name->text;
    if (event_.name == "process_sort_index" && index) of.sort_index = *index;
    if (event_.name == "thread_name" && name != nullptr) info(row(event_.pid, event_.tid)).thread_name = name->text;
    if (event_.name == "thread_sort_index" && index) info(row(event_.pid, event_.tid)).sort_index = *index;
  }

  void flow(std::int64_t time, Builder::FlowEnd end) {
    builder_.flow(event_.category + '\x1f' + event_.id, end, row(event_.pid, event_.tid), time,
                  event_.category == "ac2g" ? FlowKind::launch : FlowKind::dependency);
  }

  // --- what it all means ---

  [[nodiscard]] bool ours() const {
    const auto at = metadata_.find("otherData.format");
    return at != metadata_.end() && at->second == "sst";
  }

  [[nodiscard]] std::optional<std::int64_t> number(const std::string& key) const {
    std::int64_t value = 0;
    const auto at = metadata_.find(key);
    return at != metadata_.end() && to_integer(at->second, value) ? std::optional(value) : std::nullopt;
  }

  /// A process's own word comes first, then the file's. Where neither says anything, several devices are a rank each.
  void settle_ranks() {
    const auto within = [](std::int64_t rank) { return rank >= 0 && rank < (1 << 20); };
    std::optional<std::int64_t> of_file = number("distributedInfo.rank");
    if (!of_file || !within(*of_file)) of_file = calls_.rank();
    if (of_file && !within(*of_file)) of_file.reset();
    std::set<std::int32_t> devices;
    for (const Process& process : processes_)
      if (process.device >= 0) devices.insert(process.device);
    const bool by_device = devices.size() > 1;
    std::optional<std::int32_t> least;
    for (Process& process : processes_) {
      std::int64_t rank = 0;
      if (ours()) {
        if (to_integer(process.pid, rank) && within(rank)) process.rank = Rank{clamp32(rank)};
      } else {
        if (!to_integer(process.pid, rank)) process.rank = Rank{rank_in(process.pid).value_or(-1)};
        if (!process.rank.valid()) process.rank = Rank{rank_of_name(process)};
      }
      if (process.rank.valid()) least = std::min(least.value_or(process.rank.value), process.rank.value);
    }
    // In a file of several ranks that names them, what belongs to none is shown with the first of them.
    const std::int32_t of_others = of_file ? clamp32(*of_file) : least ? *least : by_device ? *devices.begin() : 0;
    for (Process& process : processes_) {
      if (process.rank.valid()) continue;
      const bool own = !of_file && !least && by_device && process.device >= 0;
      process.rank = Rank{own ? process.device : of_others};
    }
  }

  /// By the name of the process, which a GPU's rows share with others of its number.
  [[nodiscard]] std::int32_t rank_of_name(const Process& process) const {
    const auto at = process_ids_.find(process.pid + '\x1f' + "-1");
    const std::string& name = process.name.empty() && at != process_ids_.end()
                                  ? processes_[static_cast<std::size_t>(at->second)].name
                                  : process.name;
    const std::string_view text = std::string_view(name).substr(0, 6);
    return text.starts_with("rank") || text.starts_with("Rank") || text.starts_with("[rank") ||
                   text.starts_with("[Rank")
               ? rank_in(name).value_or(-1)
               : -1;
  }

  void describe_rows() {
    std::set<std::int32_t> shown;
    for (RowInfo& row : rows_) {
      if (row.device && *row.device >= 0 && *row.device < 4096) {
        const Process of = processes_[static_cast<std::size_t>(row.process)];
        row.process = process(of.pid, clamp32(*row.device));
        Process& device = processes_[static_cast<std::size_t>(row.process)];
        if (device.name.empty()) device.name = of.name;
        if (device.sort_index == 0) device.sort_index = of.sort_index;
      }
      shown.insert(row.process);
    }
    settle_ranks();
    OurLanes lanes;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const RowInfo& row = rows_[i];
      const Process& process = processes_[static_cast<std::size_t>(row.process)];
      const RowId id{static_cast<std::int32_t>(i)};
      Track& track = builder_.row(id);
      track.rank = process.rank;
      builder_.set_order(id, {process.sort_index, row.sort_index});
      if (ours()) {
        std::int64_t number = 0;
        (void)to_integer(row.tid, number);
        lanes.add(builder_, id, row.process, row.first_category, row.thread_name, number);
      } else if (row.device) {
        track.kind = TrackKind::stream;
        track.stream = row.votes.winner();
        track.name =
            "GPU " + std::to_string(*row.device) + " stream " + (row.stream ? std::to_string(*row.stream) : row.tid);
        if (row.stream.value_or(0) < 0) track.name = "GPU " + std::to_string(*row.device) + " synchronization";
      } else {
        std::string name = row.thread_name;
        if (!row.asynchronous.empty()) name = row.asynchronous;
        if (name.empty()) name = row.tid.empty() ? "thread" : "thread " + row.tid;
        const std::string of = process.name.empty() ? "process " + process.pid : process.name;
        track.name = shown.size() > 1 ? of + ", " + name : name;
      }
    }
  }

  void describe(Header& header) {
    if (const auto world = number("distributedInfo.world_size"); world && *world > 0) {
      header.world_size = clamp32(*world);
    }
    if (const auto base = number("baseTimeNanoseconds")) header.wall_ns = *base;
    for (const auto& [key, value] : metadata_) {
      const bool known = key == "displayTimeUnit" || key == "otherData.origin_ns";
      const std::string ours_at = "otherData.metadata.";
      if (ours() && key.starts_with(ours_at)) {
        header.metadata[key.substr(ours_at.size())] = value;
      } else if (!known && !ours()) {
        header.metadata[key] = value;
      }
    }
    if (!ours()) return;
    const auto text = [&](const char* key) {
      const auto at = metadata_.find(std::string("otherData.") + key);
      return at == metadata_.end() ? std::string() : at->second;
    };
    header.kind = text("kind") == to_string(TraceKind::predicted) ? TraceKind::predicted : TraceKind::measured;
    header.plan_hash = text("plan_hash");
    header.world_size = clamp32(std::clamp<std::int64_t>(number("otherData.world_size").value_or(1), 1, 1 << 30));
    builder_.loaded.trace.dropped_count = std::max<std::int64_t>(0, number("otherData.dropped_count").value_or(0));
    describe_units(header.units);
  }

  void describe_units(std::vector<UnitInfo>& units) {
    for (;;) {
      const std::string at = "otherData.units." + std::to_string(units.size()) + ".";
      const auto name = metadata_.find(at + "name");
      if (name == metadata_.end()) return;
      const auto size = [&](const char* key) { return std::max<std::int64_t>(0, number(at + key).value_or(0)); };
      units.push_back({name->second, size("elements"), size("gathered_bytes")});
    }
  }

  Result<LoadedTrace> finish() {
    describe_rows();
    place_memories(memories_, builder_);
    Trace& trace = builder_.loaded.trace;
    for (Rank& rank : trace.memory.rank) rank = processes_[static_cast<std::size_t>(rank.value)].rank;
    for (Counter& counter : trace.counters) {
      counter.rank = processes_[static_cast<std::size_t>(counter.rank.value)].rank;
    }
    for (StepRange& step : steps_) step.rank = processes_[static_cast<std::size_t>(step.process)].rank;
    calls_.settle(builder_);
    describe(trace.header);
    if (kineto_ || file_.kineto()) builder_.loaded.format = TraceFormat::kineto;
    if (other_count_ > 0) {
      builder_.loaded.notes.push_back(std::to_string(other_count_) + " events of phases that are not shown");
    }
    if (untimed_count_ > 0) builder_.loaded.notes.push_back(std::to_string(untimed_count_) + " events without a time");
    LoadedTrace loaded = builder_.finish(ours() ? number("otherData.origin_ns").value_or(0) : 0);
    number_steps(steps_, loaded.trace);
    if (loaded.format == TraceFormat::kineto) tell_clock(loaded.trace);
    return loaded;
  }

  ByteSource& source_;
  ChromeEvents file_;
  const ChromeEvent& event_ = file_.event();
  const std::map<std::string, std::string>& metadata_ = file_.metadata();
  Builder builder_{TraceFormat::chrome};
  std::deque<Process> processes_;
  std::unordered_map<std::string, std::int32_t> process_ids_;
  std::deque<RowInfo> rows_;  // by RowId
  std::unordered_map<std::string, std::int32_t> row_ids_;
  std::string row_key_;
  std::unordered_map<std::string, std::int32_t> groups_;
  std::deque<KinetoMemory> memories_;
  std::vector<StepRange> steps_;
  KinetoCalls calls_;
  MemoryCurves curves_;
  bool kineto_ = false;
  std::int64_t event_count_ = 0, other_count_ = 0, untimed_count_ = 0;
};

}  // namespace

Result<LoadedTrace> import_chrome_json(ByteSource& source) {
  return Importer(source).run();
}

}  // namespace shard::import
