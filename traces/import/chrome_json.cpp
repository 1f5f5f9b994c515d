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
#include "traces/import/json_reader.h"
#include "traces/import/names.h"

namespace shard::import {
namespace {

using Token = JsonReader::Token;

/// A scalar value as it is written.
struct Scalar {
  std::string text;
  bool number = false;
};

/// One member of an event's args.
struct Argument {
  std::string key;
  Scalar value;
};

constexpr std::size_t kMaxArguments = 256;
constexpr std::size_t kMaxArgumentText = 4096;

// What a process, a row and an asynchronous id take, with the maps that find them; see Builder::room().
constexpr std::uint64_t kProcessBytes = 256, kRowInfoBytes = 512, kGroupBytes = 160;

/// An event as it is written; reused from event to event.
struct Event {
  std::string phase, name, category, pid, tid, time, duration, id, scope, bound_id, flow_in, flow_out;
  bool global_id = false;  ///< id counts for all processes
  std::vector<Argument> arguments;
  std::size_t argument_count = 0;

  void clear() {
    for (std::string* text :
         {&phase, &name, &category, &pid, &tid, &time, &duration, &id, &scope, &bound_id, &flow_in, &flow_out}) {
      text->clear();
    }
    global_id = false;
    argument_count = 0;
  }
  [[nodiscard]] const Scalar* argument(std::string_view key) const {
    for (std::size_t i = 0; i < argument_count; ++i) {
      if (arguments[i].key == key) return &arguments[i].value;
    }
    return nullptr;
  }
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key) const {
    std::int64_t value = 0;
    const Scalar* found = argument(key);
    return found != nullptr && to_integer(found->text, value) ? std::optional(value) : std::nullopt;
  }
};

/// A process of the file, or a GPU of a process.
struct Process {
  std::string pid{}, name{};
  std::int64_t sort_index = 0;
  std::int32_t device = -1;
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

/// A `[memory]` instant.
struct KinetoMemory {
  std::int64_t time_ns = 0, bytes = 0;
  std::uint64_t address = 0;
  std::optional<std::int64_t> allocated{}, reserved{};
  std::int32_t process = 0;
  Memory memory = Memory::device;
};

struct StepRange {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int32_t step = 0;
};

bool is_gpu_category(std::string_view category) {
  return category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset" || category == "cuda_sync" ||
         category == "gpu_user_annotation";
}

bool is_kineto_category(std::string_view category) {
  return is_gpu_category(category) || category == "cpu_op" || category == "cuda_runtime" || category == "cuda_driver" ||
         category == "user_annotation" || category == "python_function" || category == "ac2g" || category == "fwdbwd" ||
         category == "cpu_instant_event";
}

std::int32_t clamp32(std::int64_t value) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(value, -0x8000'0000ll, 0x7fff'ffff));
}

class Importer {
 public:
  explicit Importer(ByteSource& source) : source_(source), json_(source) {}

  Result<LoadedTrace> run() {
    const Token first = json_.next();
    bool whole = false;
    if (first == Token::begin_array) {
      in_events_ = true;
      whole = read_events();
    } else if (first == Token::begin_object) {
      whole = read_document();
    }
    if (whole && json_.next() != Token::end) whole = false;
    if (!whole && stop_.empty()) {
      stop_ = *json_.error() == '\0' ? "is neither an object nor a list of events" : json_.error();
      stop_at_ = json_.at();
    }
    if (stop_.empty() && !source_.fault().empty()) {
      stop_ = source_.fault();
      stop_at_ = source_.offset();
    }
    if (!stop_.empty() && (event_count_ == 0 || !in_events_)) return refused(stop_at_, stop_);
    if (!in_events_) return refused(0, "holds no traceEvents");
    if (event_count_ == 0 && other_count_ > 0) return refused(0, "what it lists has no phase (ph)");
    if (!stop_.empty()) builder_.loaded.trace.truncated.push_back({stop_at_, stop_});
    return finish();
  }

 private:
  Error refused(std::uint64_t at, const std::string& why) const {
    return {.code = Errc::malformed,
            .what = "is no trace in Chrome's JSON format: " + why,
            .where = source_.label() + ": byte " + std::to_string(at),
            .help = "a file with a list traceEvents, as a profiler wrote it"};
  }

  // --- reading ---

  bool take_scalar(Token token, Scalar& into) {
    if (token != Token::string && token != Token::number && token != Token::word) return json_.skip(token);
    into.number = token == Token::number;
    into.text.assign(json_.text().substr(0, kMaxArgumentText));
    return true;
  }

  bool read_document() {
    for (;;) {
      Token token = json_.next();
      if (token == Token::end_object) return true;
      if (token != Token::string) return false;
      const std::string key(json_.text().substr(0, 256));
      token = json_.next();
      if (key == "traceEvents" && token == Token::begin_array) {
        in_events_ = true;
        if (!read_events()) return false;
      } else if (token == Token::begin_object && key != "stackFrames") {
        if (key == "distributedInfo") kineto_ = true;
        if (!read_metadata(key + ".", 3)) return false;
      } else if (token == Token::begin_object || token == Token::begin_array) {
        if (key == "deviceProperties") kineto_ = true;
        if (!json_.skip(token)) return false;
      } else {
        Scalar value;
        if (!take_scalar(token, value)) return false;
        keep(key, value);
      }
    }
  }

  /// Scalars of an object and of those inside it, as "object.key".
  bool read_metadata(const std::string& prefix, int levels) {
    for (;;) {
      Token token = json_.next();
      if (token == Token::end_object) return true;
      if (token != Token::string) return false;
      const std::string key = prefix + std::string(json_.text().substr(0, 256));
      token = json_.next();
      if (token == Token::begin_object && levels > 1) {
        if (!read_metadata(key + ".", levels - 1)) return false;
        continue;
      }
      Scalar value;
      const bool scalar = token == Token::string || token == Token::number || token == Token::word;
      if (!take_scalar(token, value)) return false;
      if (scalar) keep(key, value);
    }
  }

  void keep(const std::string& key, const Scalar& value) {
    if (metadata_.size() < 4096) metadata_[key] = value.text;
  }

  bool read_events() {
    for (;;) {
      const Token token = json_.next();
      if (token == Token::end_array) return true;
      if (token == Token::begin_object) {
        event_.clear();
        if (!read_event()) return false;
        handle();
      } else if (!json_.skip(token)) {
        return false;
      }
      if (!builder_.room(source_.offset())) {
        stop_ = "more events and names than a file of this size can hold";
        stop_at_ = source_.offset();
        return false;
      }
    }
  }

  std::string* field(std::string_view key) {
    if (key == "ph") return &event_.phase;
    if (key == "name") return &event_.name;
    if (key == "cat") return &event_.category;
    if (key == "pid") return &event_.pid;
    if (key == "tid") return &event_.tid;
    if (key == "ts") return &event_.time;
    if (key == "dur") return &event_.duration;
    if (key == "id") return &event_.id;
    if (key == "s") return &event_.scope;
    if (key == "bind_id") return &event_.bound_id;
    if (key == "flow_in") return &event_.flow_in;
    if (key == "flow_out") return &event_.flow_out;
    return nullptr;
  }

  bool read_event() {
    for (;;) {
      Token token = json_.next();
      if (token == Token::end_object) return true;
      if (token != Token::string) return false;
      std::string* into = field(json_.text());
      const bool arguments = into == nullptr && json_.text() == "args";
      const bool scoped_id = into == nullptr && json_.text() == "id2";
      token = json_.next();
      if (into != nullptr && (token == Token::string || token == Token::number || token == Token::word)) {
        into->assign(json_.text());
      } else if ((arguments || scoped_id) && token == Token::begin_object) {
        if (!read_arguments(scoped_id)) return false;
      } else if (!json_.skip(token)) {
        return false;
      }
    }
  }

  /// Scalars of args; of id2 the one id, which says whether it is the process's own.
  bool read_arguments(bool scoped_id) {
    for (;;) {
      Token token = json_.next();
      if (token == Token::end_object) return true;
      if (token != Token::string) return false;
      const bool kept = !scoped_id && event_.argument_count < kMaxArguments;
      if (kept && event_.argument_count == event_.arguments.size()) event_.arguments.emplace_back();
      Argument* argument = kept ? &event_.arguments[event_.argument_count] : nullptr;
      if (kept) argument->key.assign(json_.text().substr(0, kMaxArgumentText));
      const bool local = scoped_id && json_.text() == "local";
      if (scoped_id && json_.text() == "global") event_.global_id = true;
      token = json_.next();
      const bool scalar = token == Token::string || token == Token::number || token == Token::word;
      if (scalar && kept) {
        argument->value.number = token == Token::number;
        argument->value.text.assign(json_.text().substr(0, kMaxArgumentText));
        ++event_.argument_count;
      } else if (scalar && scoped_id) {
        event_.id = (local ? "local " : "") + std::string(json_.text().substr(0, kMaxArgumentText));
      } else if (!json_.skip(token)) {
        return false;
      }
    }
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
    return span;
  }

  void vote(RowId id) {
    RowInfo& row = info(id);
    if (row.first_category.empty()) row.first_category = event_.category;
    if (!is_gpu_category(event_.category)) return;
    if (!row.device) row.device = event_.integer("device");
    if (!row.stream) row.stream = event_.integer("stream");
    if (event_.category != "cuda_sync") row.votes.add(event_.category, event_.name);
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
        steps_.push_back({time, time + span.duration_ns, clamp32(step)});
      }
    }
    builder_.complete(id, span);
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

  [[nodiscard]] Rank rank_of(const Process& process) const {
    const auto within = [](std::int64_t rank) { return rank >= 0 && rank < (1 << 20); };
    std::int64_t rank = 0;
    if (ours() && to_integer(process.pid, rank) && within(rank)) return Rank{clamp32(rank)};
    if (process.name.starts_with("rank ") && to_integer(std::string_view(process.name).substr(5), rank) &&
        within(rank)) {
      return Rank{clamp32(rank)};
    }
    if (const auto of_run = number("distributedInfo.rank"); of_run && within(*of_run)) return Rank{clamp32(*of_run)};
    return Rank{std::max(process.device, 0)};
  }

  void describe_rows() {
    std::set<std::int32_t> shown;
    for (const RowInfo& row : rows_) shown.insert(row.process);
    OurLanes lanes;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const RowInfo& row = rows_[i];
      Process process = processes_[static_cast<std::size_t>(row.process)];
      const RowId id{static_cast<std::int32_t>(i)};
      Track& track = builder_.row(id);
      if (row.device && *row.device >= 0 && *row.device < 4096) process.device = clamp32(*row.device);
      track.rank = rank_of(process);
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

  /// In the order of time; what was allocated before the recording is one buffer that stays.
  void place_memories() {
    std::stable_sort(memories_.begin(), memories_.end(),
                     [](const KinetoMemory& a, const KinetoMemory& b) { return a.time_ns < b.time_ns; });
    std::map<std::pair<std::int32_t, Memory>, std::uint64_t> lowest;
    for (const KinetoMemory& m : memories_) {
      const auto [at, added] = lowest.try_emplace({m.process, m.memory}, m.address);
      at->second = std::min(at->second, m.address);
    }
    std::set<std::pair<std::int32_t, Memory>> begun;
    LiveBuffers live;
    for (const KinetoMemory& m : memories_) {
      MemoryEvent event{.rank = Rank{m.process}, .memory = m.memory, .time_ns = m.time_ns};
      if (begun.insert({m.process, m.memory}).second && m.allocated && *m.allocated > m.bytes) {
        event.buffer = live.fresh();
        event.delta_bytes = *m.allocated - m.bytes;
        builder_.memory(event, false);
      }
      const std::uint64_t offset = m.address - lowest[{m.process, m.memory}];
      event.offset_bytes = static_cast<std::int64_t>(std::min<std::uint64_t>(offset, std::uint64_t{1} << 60));
      event.delta_bytes = m.bytes;
      event.buffer = m.bytes >= 0 ? live.add(event.rank, m.memory, m.address, m.bytes)
                                  : live.remove(event.rank, m.memory, m.address).buffer;
      if (!event.buffer.valid()) event.buffer = live.fresh();
      builder_.memory(event);
      if (m.reserved && m.memory == Memory::device) {
        builder_.counter({event.rank, builder_.name("reserved_bytes"), m.time_ns, static_cast<double>(*m.reserved)});
      }
    }
  }

  void number_steps(Trace& trace) {
    if (steps_.empty()) return;
    std::stable_sort(steps_.begin(), steps_.end(),
                     [](const StepRange& a, const StepRange& b) { return a.begin_ns < b.begin_ns; });
    const auto place = [&](std::int64_t time, Phase& phase, std::int32_t& step) {
      const auto after = std::upper_bound(steps_.begin(), steps_.end(), time,
                                          [](std::int64_t t, const StepRange& range) { return t < range.begin_ns; });
      phase = after == steps_.begin() ? Phase::creation : Phase::steady_step;
      step = after == steps_.begin() ? -1 : std::prev(after)->step;
    };
    for (std::size_t i = 0; i < trace.spans.size(); ++i) {
      place(trace.spans.begin_ns[i], trace.spans.phase[i], trace.spans.step[i]);
    }
    for (std::size_t i = 0; i < trace.memory.size(); ++i) {
      place(trace.memory.time_ns[i], trace.memory.phase[i], trace.memory.step[i]);
    }
  }

  void describe(Header& header) {
    if (const auto world = number("distributedInfo.world_size"); world && *world > 0) {
      header.world_size = clamp32(*world);
    }
    // Kineto's times are relative to baseTimeNanoseconds where the file has one, else Unix time itself.
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
  }

  Result<LoadedTrace> finish() {
    describe_rows();
    place_memories();
    Trace& trace = builder_.loaded.trace;
    for (Rank& rank : trace.memory.rank) rank = rank_of(processes_[static_cast<std::size_t>(rank.value)]);
    for (Counter& counter : trace.counters) {
      counter.rank = rank_of(processes_[static_cast<std::size_t>(counter.rank.value)]);
    }
    describe(trace.header);
    if (kineto_) builder_.loaded.format = TraceFormat::kineto;
    if (other_count_ > 0) {
      builder_.loaded.notes.push_back(std::to_string(other_count_) + " events of phases that are not shown");
    }
    if (untimed_count_ > 0) builder_.loaded.notes.push_back(std::to_string(untimed_count_) + " events without a time");
    LoadedTrace loaded = builder_.finish(ours() ? number("otherData.origin_ns").value_or(0) : 0);
    number_steps(loaded.trace);
    return loaded;
  }

  ByteSource& source_;
  JsonReader json_;
  Builder builder_{TraceFormat::chrome};
  Event event_;
  std::map<std::string, std::string> metadata_;
  std::deque<Process> processes_;
  std::unordered_map<std::string, std::int32_t> process_ids_;
  std::deque<RowInfo> rows_;  // by RowId
  std::unordered_map<std::string, std::int32_t> row_ids_;
  std::string row_key_;
  std::unordered_map<std::string, std::int32_t> groups_;
  std::deque<KinetoMemory> memories_;
  std::vector<StepRange> steps_;
  MemoryCurves curves_;
  bool kineto_ = false;
  bool in_events_ = false;
  std::int64_t event_count_ = 0, other_count_ = 0, untimed_count_ = 0;
  std::string stop_;  // why reading ended early
  std::uint64_t stop_at_ = 0;
};

}  // namespace

Result<LoadedTrace> import_chrome_json(ByteSource& source) {
  return Importer(source).run();
}

}  // namespace shard::import
