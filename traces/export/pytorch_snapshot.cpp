// Memory events as segments, blocks and allocator events.
#include "traces/export/pytorch_snapshot.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/export/pickle_writer.h"
#include "traces/export/timeline.h"

namespace shard {
namespace {

/// Arenas of devices lie this far apart, the first one not at 0, which PyTorch never returns.
constexpr std::int64_t kAddressSpace = std::int64_t{1} << 40;
/// Sizes of segments are multiples of this, as PyTorch's small ones.
constexpr std::int64_t kSegmentUnit = 2 << 20;
constexpr std::int64_t kSmallSegment = 2 << 20;

struct Block {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::size_t event = 0;  ///< in the trace, that acquired it
};

/// One acquisition or release, placed.
struct Action {
  bool alloc = true;
  Block block;
  std::int64_t time_ns = 0;
};

/// The arena of one rank: its events, and what is live after the last.
class Arena {
 public:
  void add(std::size_t index, const MemoryEvent& event) {
    now_ns_ = actions_.empty() ? event.time_ns : std::max(now_ns_, event.time_ns);
    if (event.delta_bytes > 0) {
      const Block block{place(event.offset_bytes, event.delta_bytes), event.delta_bytes, index};
      // Two acquisitions of one buffer: the first one stays live.
      if (!buffers_.emplace(event.buffer.value, block.offset).second) return;
      live_.emplace(block.offset, block);
      end_ = std::max(end_, block.offset + block.bytes);
      actions_.push_back({true, block, now_ns_});
      return;
    }
    const auto buffer = buffers_.find(event.buffer.value);
    if (event.delta_bytes == 0 || buffer == buffers_.end()) return;
    const auto block = live_.find(buffer->second);
    Action action{false, block->second, now_ns_};
    action.block.event = index;
    actions_.push_back(action);
    live_.erase(block);
    buffers_.erase(buffer);
  }

  [[nodiscard]] const std::vector<Action>& actions() const { return actions_; }
  [[nodiscard]] const std::map<std::int64_t, Block>& live() const { return live_; }
  [[nodiscard]] std::int64_t bytes() const { return (end_ + kSegmentUnit - 1) / kSegmentUnit * kSegmentUnit; }

 private:
  std::int64_t place(std::int64_t offset, std::int64_t bytes) {
    offset = std::clamp<std::int64_t>(offset, 0, kAddressSpace / 2);
    const auto next = live_.lower_bound(offset);
    const bool after = next == live_.end() || next->first >= offset + bytes;
    const bool before =
        next == live_.begin() || std::prev(next)->second.offset + std::prev(next)->second.bytes <= offset;
    return after && before ? offset : end_;
  }

  std::map<std::int64_t, Block> live_;  // by offset
  std::unordered_map<std::int32_t, std::int64_t> buffers_;
  std::vector<Action> actions_;
  std::int64_t end_ = 0, now_ns_ = 0;
};

class SnapshotExporter {
 public:
  SnapshotExporter(const Trace& trace, OutputFile& out) : trace_(trace), pickle_(out) {
    // Names of ops: that of their first span.
    for (std::size_t i = 0; i < trace.spans.size(); ++i) {
      if (trace.spans.op[i].valid()) op_names_.try_emplace(trace.spans.op[i].value, trace.spans.name[i]);
    }
  }

  void run(const std::map<Rank, Arena>& arenas) {
    pickle_.begin_dict();
    pickle_.text("segments");
    pickle_.begin_list();
    for (const auto& [rank, arena] : arenas) segment(rank, arena);
    pickle_.end_list();
    pickle_.text("device_traces");
    pickle_.begin_list();
    std::int32_t device = 0;
    for (const auto& [rank, arena] : arenas) {
      // A device without events, before the next one that has some.
      for (; device < rank.value; ++device) empty_list();
      events(rank, arena);
      ++device;
    }
    pickle_.end_list();
    pickle_.text("external_annotations");
    empty_list();
    pickle_.end_dict();
    pickle_.finish();
  }

 private:
  void empty_list() {
    pickle_.begin_list();
    pickle_.end_list();
  }
  void number(const char* key, std::int64_t value) {
    pickle_.text(key);
    pickle_.integer(value);
  }
  void text(const char* key, std::string_view value) {
    pickle_.text(key);
    pickle_.text(value);
  }
  static std::int64_t address(Rank rank, std::int64_t offset) { return (rank.value + 1) * kAddressSpace + offset; }

  [[nodiscard]] std::int64_t time_us(std::int64_t time_ns) const {
    if (trace_.header.wall_ns != 0) return (time_ns - trace_.header.clock_ns + trace_.header.wall_ns) / 1000;
    return (time_ns - time_origin_) / 1000;
  }

  [[nodiscard]] std::string op_name(const MemoryEvent& event) const {
    const auto known = op_names_.find(event.op.value);
    if (known != op_names_.end() && known->second.valid()) return std::string(trace_.name_of(known->second));
    return event.op.valid() ? "op " + std::to_string(event.op.value) : "outside of ops";
  }

  /// "frames": from the innermost: what, which op, when.
  void frames(const MemoryEvent& event) {
    pickle_.text("frames");
    const auto key = std::tuple(event.op.value, event.category, event.phase, event.step, event.unit.value);
    if (const auto known = frames_.find(key); known != frames_.end()) return pickle_.again(known->second);
    std::string what = to_string(event.category);
    if (event.unit.valid()) what += " of unit " + std::to_string(event.unit.value);
    pickle_.begin_list();
    frame(what, to_string(event.category), 0);
    frame(op_name(event), "op", event.op.value);
    frame(to_string(event.phase), "step", event.step);
    pickle_.end_list();
    frames_.emplace(key, pickle_.remember());
  }
  void frame(std::string_view name, std::string_view file, std::int64_t line) {
    pickle_.begin_dict();
    text("name", name);
    text("filename", file);
    number("line", std::max<std::int64_t>(0, line));
    pickle_.end_dict();
  }

  void segment(Rank rank, const Arena& arena) {
    std::int64_t allocated = 0;
    for (const auto& [offset, block] : arena.live()) allocated += block.bytes;
    pickle_.begin_dict();
    number("device", rank.value);
    number("address", address(rank, 0));
    number("total_size", arena.bytes());
    number("allocated_size", allocated);
    number("active_size", allocated);
    number("requested_size", allocated);
    number("stream", 0);
    text("segment_type", arena.bytes() > kSmallSegment ? "large" : "small");
    // Readers of other segments take small gaps behind blocks for parts of these.
    pickle_.text("is_expandable");
    pickle_.boolean(true);
    pickle_.text("frames");
    empty_list();
    pickle_.text("blocks");
    pickle_.begin_list();
    std::int64_t end = 0;
    for (const auto& [offset, block] : arena.live()) {
      free_block(rank, end, offset);
      used_block(rank, block);
      end = offset + block.bytes;
    }
    free_block(rank, end, arena.bytes());
    pickle_.end_list();
    pickle_.end_dict();
  }
  void used_block(Rank rank, const Block& block) {
    pickle_.begin_dict();
    number("address", address(rank, block.offset));
    number("size", block.bytes);
    number("requested_size", block.bytes);
    text("state", "active_allocated");
    frames(trace_.memory[block.event]);
    pickle_.end_dict();
  }
  void free_block(Rank rank, std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
    pickle_.begin_dict();
    number("address", address(rank, begin));
    number("size", end - begin);
    number("requested_size", 0);
    text("state", "inactive");
    pickle_.text("frames");
    empty_list();
    pickle_.end_dict();
  }

  void events(Rank rank, const Arena& arena) {
    pickle_.begin_list();
    if (!arena.actions().empty()) {
      pickle_.begin_dict();
      event("segment_map", address(rank, 0), arena.bytes(), arena.actions().front().time_ns);
      pickle_.text("frames");
      empty_list();
      pickle_.end_dict();
    }
    for (const Action& action : arena.actions()) {
      const MemoryEvent& source = trace_.memory[action.block.event];
      // PyTorch says both when a tensor dies and when no stream needs it any more; here that is one moment.
      for (const char* name : {"free_requested", "free_completed"}) {
        pickle_.begin_dict();
        event(action.alloc ? "alloc" : name, address(rank, action.block.offset), action.block.bytes, action.time_ns);
        text("category", to_string(source.category));
        frames(source);
        pickle_.end_dict();
        if (action.alloc) break;
      }
    }
    pickle_.end_list();
  }
  void event(const char* action, std::int64_t at, std::int64_t bytes, std::int64_t time_ns) {
    text("action", action);
    number("addr", at);
    number("size", bytes);
    number("stream", 0);
    number("time_us", time_us(time_ns));
  }

  const Trace& trace_;
  PickleWriter pickle_;
  const std::int64_t time_origin_ = time_origin(trace_);
  std::unordered_map<std::int32_t, NameId> op_names_;
  std::map<std::tuple<std::int32_t, Category, Phase, std::int32_t, std::int32_t>, std::uint32_t> frames_;
};

}  // namespace

Result<void> export_pytorch_snapshot(const Trace& trace, const std::filesystem::path& path) {
  std::map<Rank, Arena> arenas;
  for (std::size_t i = 0; i < trace.memory.size(); ++i) {
    const MemoryEvent event = trace.memory[i];
    if (event.memory == Memory::device && event.rank.valid()) arenas[event.rank].add(i, event);
  }
  if (arenas.empty()) {
    return Error{.code = Errc::contradiction,
                 .what = "the trace has no events of device memory, which is all that a snapshot holds",
                 .where = path.string(),
                 .help = "another form: perfetto, chrome or csv"};
  }
  Result<OutputFile> out = OutputFile::create(path);
  if (!out) return out.error();
  SnapshotExporter(trace, *out).run(arenas);
  return out->finish();
}

}  // namespace shard
