// The pickle's dicts become segments and events, these a trace.
#include "traces/import/pytorch_snapshot.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "traces/import/builder.h"
#include "traces/import/pickle.h"
#include "traces/import/pytorch_categories.h"
#include "traces/import/snapshot_stacks.h"

namespace shard::import {
namespace {

using Value = PickleReader::Value;
using Kind = PickleReader::Kind;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;  // beyond any device; sums stay within 64 bits
constexpr std::int32_t kMaxDevices = 4096;
/// Of what is only kept to be written again.
constexpr int kDeepest = 16;
/// What SnapshotEvent holds.
constexpr std::array<std::string_view, 6> kEventKeys = {"action", "addr", "size", "stream", "time_us", "frames"};
/// An event, its part of the trace, and of the maps that follow addresses.
constexpr std::uint64_t kEventBytes = 160;

class Reader {
 public:
  Reader(ByteSource& source, Builder& builder)
      : source_(source),
        pickle_(source, {"frames", [this](Value frames) { return stacks_.fold(pickle_, frames); }}),
        stacks_(builder, source),
        builder_(builder) {}

  /// Fills `snapshot`; a note where the pickle is cut or damaged.
  Result<void> read(Snapshot& snapshot, std::vector<Truncated>& truncated, Header& header) {
    const bool whole = pickle_.run();
    const Value root = pickle_.result();
    // _snapshot() gives a dict, memory_snapshot() the list of segments alone.
    const Value segments = root.kind() == Kind::list ? root : pickle_.find(root, "segments").value_or(Value());
    const Value traces = pickle_.find(root, "device_traces").value_or(Value());
    const bool is_one = segments.kind() == Kind::list || traces.kind() == Kind::list;
    bool fits = true;
    for (const Value segment : pickle_.items(segments)) {
      fits = fits && add_segment(segment, snapshot);
      pickle_.release(segment);
    }
    std::size_t count = 0;
    for (const Value trace : pickle_.items(traces)) count += pickle_.items(trace).size();
    fits = fits && room(kEventBytes * count);
    if (fits) snapshot.events.reserve(count);
    std::int32_t device = 0;
    for (const Value trace : pickle_.items(traces)) {
      if (!fits || device == kMaxDevices) break;
      for (const Value event : pickle_.items(trace)) {
        add_event(event, device, snapshot);
        pickle_.release(event);  // one that the memo names again is nothing the second time
      }
      ++device;
    }
    snapshot.device_count = static_cast<std::size_t>(device);
    const bool nothing = snapshot.segments.empty() && snapshot.events.empty();
    if (!fits) return refused(source_.offset(), "names the same entries over and over");
    if (!is_one || (nothing && !whole)) {
      return refused(whole ? 0 : pickle_.at(), whole ? "has neither segments nor device_traces" : pickle_.error());
    }
    if (nothing && root.kind() == Kind::list && !pickle_.items(root).empty())
      return refused(0, "is a list of other things");
    if (!whole) truncated.push_back({pickle_.at(), "the pickle " + pickle_.error()});
    if (whole && !source_.fault().empty()) truncated.push_back({source_.offset(), source_.fault()});
    const auto entries = root.kind() == Kind::dict ? pickle_.items(root) : std::span<const Value>();
    for (std::size_t i = 0; i + 1 < entries.size(); i += 2) {
      const std::string key(pickle_.text(entries[i]));
      if (key != "segments" && key != "device_traces") snapshot.others[key] = plain(entries[i + 1]);
    }
    settings(pickle_.find(root, "allocator_settings").value_or(Value()), snapshot, header);
    snapshot.find_block_sizes();
    return {};
  }

 private:
  [[nodiscard]] Error refused(std::uint64_t at, const std::string& why) const {
    return {.code = Errc::malformed,
            .what = "is no PyTorch memory snapshot: " + why,
            .where = source_.label() + ": byte " + std::to_string(at),
            .help = "a file from torch.cuda.memory._dump_snapshot()"};
  }

  [[nodiscard]] std::int64_t integer(Value dict, std::string_view key, std::int64_t low, std::int64_t high) const {
    const auto value = pickle_.find(dict, key);
    return value ? std::clamp(pickle_.integer(*value).value_or(0), low, high) : std::int64_t{0};
  }
  [[nodiscard]] std::int64_t bytes(Value dict, std::string_view key) const { return integer(dict, key, 0, kMaxBytes); }
  [[nodiscard]] std::uint64_t address(Value dict, std::string_view key) const {
    return static_cast<std::uint64_t>(integer(dict, key, 0, std::int64_t{1} << 59));
  }
  [[nodiscard]] std::string_view text(Value dict, std::string_view key) const {
    const auto value = pickle_.find(dict, key);
    return value ? pickle_.text(*value) : std::string_view();
  }

  /// What came of the pickle may be no more than a pickle of its size can hold (the memo could name one entry often).
  bool room(std::uint64_t more) { return (charged_ += more) <= Builder::kFreeBytes + 4 * source_.offset(); }

  bool add_segment(Value dict, Snapshot& snapshot) {
    if (dict.kind() != Kind::dict || !pickle_.find(dict, "total_size")) return true;
    SnapshotSegment segment;
    segment.device = static_cast<std::int32_t>(integer(dict, "device", 0, kMaxDevices - 1));
    segment.address = address(dict, "address");
    segment.bytes = bytes(dict, "total_size");
    segment.allocated_bytes = bytes(dict, "allocated_size");
    segment.active_bytes = bytes(dict, "active_size");
    segment.requested_bytes = bytes(dict, "requested_size");
    const auto pool = pickle_.items(pickle_.find(dict, "segment_pool_id").value_or(Value()));
    for (std::size_t i = 0; i < std::min(pool.size(), segment.pool.size()); ++i)
      segment.pool[i] = pickle_.integer(pool[i]).value_or(0);
    segment.stream = address(dict, "stream");
    segment.large = text(dict, "segment_type") == "large";
    segment.expandable = integer(dict, "is_expandable", 0, 1) == 1;
    std::tie(segment.stack, segment.has_stack) = stack(dict);
    std::uint64_t next = segment.address;
    for (const Value block_dict : pickle_.items(pickle_.find(dict, "blocks").value_or(Value()))) {
      if (block_dict.kind() != Kind::dict) continue;
      SnapshotBlock block;
      // Older snapshots give blocks no address: they follow each other.
      block.address = pickle_.find(block_dict, "address") ? address(block_dict, "address") : next;
      block.bytes = bytes(block_dict, "size");
      block.requested_bytes = bytes(block_dict, "requested_size");
      block.active = text(block_dict, "state").starts_with("active");
      block.state = builder_.name(text(block_dict, "state"));
      std::tie(block.stack, block.has_stack) = stack(block_dict);
      if (!block.has_stack) from_history(block_dict, block);
      next = block.address + static_cast<std::uint64_t>(block.bytes);
      segment.blocks.push_back(block);
      if (!room(2 * sizeof(SnapshotBlock))) return false;
    }
    snapshot.segments.push_back(std::move(segment));
    return room(2 * sizeof(SnapshotSegment));
  }

  /// Until PyTorch 2.0 a block had a list of who took it, the last one first, and what was asked for there.
  void from_history(Value block_dict, SnapshotBlock& block) const {
    const auto history = pickle_.items(pickle_.find(block_dict, "history").value_or(Value()));
    if (history.empty() || history[0].kind() != Kind::dict) return;
    std::tie(block.stack, block.has_stack) = stack(history[0]);
    if (block.requested_bytes == 0) block.requested_bytes = bytes(history[0], "real_size");
  }

  static std::optional<SnapshotAction> action_named(std::string_view text) {
    if (text == "free") return SnapshotAction::free_completed;  // before PyTorch 2.1
    for (int i = 0; i <= static_cast<int>(SnapshotAction::user_defined); ++i) {
      if (text == to_string(static_cast<SnapshotAction>(i))) return static_cast<SnapshotAction>(i);
    }
    return std::nullopt;
  }

  void add_event(Value dict, std::int32_t device, Snapshot& snapshot) {
    if (pickle_.items(dict).empty()) return;
    const auto action = action_named(text(dict, "action"));
    if (!action) {
      ++snapshot.unknown_event_count;
      return;
    }
    const auto [asked_by, has_stack] = stack(dict);
    remarks(dict, snapshot);
    snapshot.events.push_back({.action = *action,
                               .device = device,
                               .address = address(dict, "addr"),
                               .bytes = bytes(dict, "size"),
                               .stream = address(dict, "stream"),
                               .time_us = integer(dict, "time_us", 0, std::int64_t{1} << 51),
                               .stack = asked_by,
                               .has_stack = has_stack});
  }

  void settings(Value dict, Snapshot& snapshot, Header& header) const {
    snapshot.max_split_bytes = bytes(dict, "max_split_size");
    const Value divisions = pickle_.find(dict, "roundup_power2_divisions").value_or(Value());
    for (std::size_t i = 0; i < snapshot.roundup_power2_divisions.size(); ++i)
      snapshot.roundup_power2_divisions[i] = integer(divisions, std::to_string(1u << i), 0, 1 << 20);
    const auto all = pickle_.items(dict);
    for (std::size_t i = 0; i + 1 < all.size() && header.metadata.size() < 100; i += 2) {
      const std::string key = "allocator_settings." + std::string(pickle_.text(all[i]).substr(0, 100));
      if (all[i + 1].kind() == Kind::string) {
        header.metadata[key] = pickle_.text(all[i + 1]).substr(0, 1000);
      } else if (const auto value = pickle_.integer(all[i + 1])) {
        header.metadata[key] =
            all[i + 1].kind() == Kind::boolean ? (*value != 0 ? "true" : "false") : std::to_string(*value);
      }
    }
  }

  /// The stack of an entry, and whether it says anything of one.
  [[nodiscard]] std::pair<StackId, bool> stack(Value dict) const {
    const auto frames = pickle_.find(dict, "frames");
    return {stacks_.id_of(frames.value_or(Value())), frames.has_value()};
  }

  /// What an event says beside what the struct has room for: texts and whole numbers.
  void remarks(Value dict, Snapshot& snapshot) {
    const auto all = pickle_.items(dict);
    for (std::size_t i = 0; i + 1 < all.size(); i += 2) {
      const std::string_view key = pickle_.text(all[i]);
      if (std::ranges::find(kEventKeys, key) != kEventKeys.end() || !room(2 * sizeof(SnapshotRemark))) continue;
      SnapshotRemark remark{.event = snapshot.events.size(), .key = builder_.name(key)};
      remark.is_text = all[i + 1].kind() == Kind::string;
      if (remark.is_text) remark.text = builder_.name(pickle_.text(all[i + 1]));
      remark.number = pickle_.integer(all[i + 1]).value_or(0);
      if (remark.is_text || pickle_.integer(all[i + 1])) snapshot.remarks.push_back(remark);
    }
  }

  /// A value that nobody here looks into, to be written again: as far as JSON has it, and not too deep.
  [[nodiscard]] nlohmann::ordered_json plain(Value value, int depth = 0) {
    using Json = nlohmann::ordered_json;
    if (depth > kDeepest || !room(2 * sizeof(Json) + pickle_.text(value).size())) return nullptr;
    switch (value.kind()) {
      case Kind::boolean: return pickle_.integer(value) == 1;
      case Kind::integer: return *pickle_.integer(value);
      case Kind::real: return *pickle_.real(value);
      case Kind::string: return pickle_.text(value);
      case Kind::list: {
        Json list = Json::array();
        for (const Value each : pickle_.items(value)) list.push_back(plain(each, depth + 1));
        return list;
      }
      case Kind::dict: {
        Json object = Json::object();
        const auto all = pickle_.items(value);
        for (std::size_t i = 0; i + 1 < all.size(); i += 2)
          object[std::string(pickle_.text(all[i]))] = plain(all[i + 1], depth + 1);
        return object;
      }
      case Kind::none:
      case Kind::global:
      case Kind::object:
      case Kind::reference:
      case Kind::inert: break;
    }
    return nullptr;
  }

  ByteSource& source_;
  PickleReader pickle_;
  SnapshotStacks stacks_;
  Builder& builder_;
  std::uint64_t charged_ = 0;
};

/// Segments side by side: the arena that they would be if addresses had no holes.
class Arena {
 public:
  void add(std::uint64_t address, std::int64_t bytes) {
    remove(address);
    std::int64_t offset = 0;
    int tries = 0;
    for (const auto& [begin, end] : used_) {
      if (begin - offset >= bytes) break;
      offset = end;
      if (++tries == kTries) {
        offset = used_.rbegin()->second;
        break;
      }
    }
    used_[offset] = offset + bytes;
    segments_[address] = {offset, bytes};
    reserved_ += bytes;
  }
  void remove(std::uint64_t address) {
    const auto at = segments_.find(address);
    if (at == segments_.end()) return;
    reserved_ -= at->second.second;
    used_.erase(at->second.first);
    segments_.erase(at);
  }
  /// A piece of expandable segments: it may reach over several that were mapped one by one.
  void cut(std::uint64_t address, std::int64_t bytes) {
    const std::uint64_t cut_end = address + static_cast<std::uint64_t>(bytes);
    auto at = segments_.upper_bound(address);
    if (at != segments_.begin()) --at;
    while (at != segments_.end() && at->first < cut_end) {
      const auto [begin, whole] = *at++;
      const std::uint64_t end = begin + static_cast<std::uint64_t>(whole.second);
      if (end <= address) continue;
      remove(begin);
      const auto keep = [&, from = begin, offset = whole.first](std::uint64_t first, std::uint64_t last) {
        if (first >= last) return;
        const auto to = offset + static_cast<std::int64_t>(first - from);
        const auto kept = static_cast<std::int64_t>(last - first);
        used_[to] = to + kept;
        segments_[first] = {to, kept};
        reserved_ += kept;
      };
      keep(begin, address);
      keep(cut_end, end);
    }
  }
  [[nodiscard]] std::int64_t offset_of(std::uint64_t address) const {
    auto at = segments_.upper_bound(address);
    if (at == segments_.begin()) return 0;
    --at;
    const std::uint64_t inside = address - at->first;
    return inside < static_cast<std::uint64_t>(at->second.second) ? at->second.first + static_cast<std::int64_t>(inside)
                                                                  : std::int64_t{0};
  }
  [[nodiscard]] std::int64_t reserved() const { return reserved_; }

 private:
  static constexpr int kTries = 4096;                                        // then at the end: the search stays short
  std::map<std::int64_t, std::int64_t> used_;                                // begin, end
  std::map<std::uint64_t, std::pair<std::int64_t, std::int64_t>> segments_;  // address: offset, bytes
  std::int64_t reserved_ = 0;
};

class Converter {
 public:
  Converter(Builder& builder, const Snapshot& snapshot, Counted counted)
      : builder_(builder), snapshot_(snapshot), counted_(counted) {}

  void run() {
    builder_.reserve_memory(snapshot_.events.size());
    timed_ = std::any_of(snapshot_.events.begin(), snapshot_.events.end(),
                         [](const SnapshotEvent& event) { return event.time_us != 0; });
    begin();
    for (std::size_t i = 0; i < snapshot_.events.size(); ++i) {
      const SnapshotEvent& event = snapshot_.events[i];
      add(event, snapshot_.block_bytes[i], timed_ ? event.time_us * 1000 : static_cast<std::int64_t>(i) * 1000);
    }
    for (const auto& [device, state] : devices_) {
      builder_.loaded.trace.arenas.push_back({.rank = Rank{device},
                                              .memory = Memory::device,
                                              .phase = Phase::steady_step,
                                              .peak_bytes = state.peak_reserved,
                                              .live_peak_bytes = state.peak_allocated});
    }
    if (!timed_ && !snapshot_.events.empty())
      builder_.loaded.notes.push_back("the snapshot has no times: events are 1 us apart");
    builder_.loaded.memory_event_count =
        static_cast<std::int64_t>(snapshot_.events.size()) + snapshot_.unknown_event_count;
    if (snapshot_.unknown_event_count > 0) {
      builder_.loaded.notes.push_back(std::to_string(snapshot_.unknown_event_count) + " events of unknown actions");
    }
    if (timed_) {
      Header& header = builder_.loaded.trace.header;
      header.clock_ns = header.wall_ns = snapshot_.events.front().time_us * 1000;
    }
  }

 private:
  struct Device {
    Arena arena;
    std::int64_t allocated = 0, peak_allocated = 0, peak_reserved = 0;
    RowId row{};
  };

  Device& device(std::int32_t index) { return devices_[index]; }

  void reserved(std::int32_t index, std::int64_t time_ns) {
    Device& of = device(index);
    of.peak_reserved = std::max(of.peak_reserved, of.arena.reserved());
    builder_.counter({Rank{index}, builder_.name("reserved_bytes"), time_ns, static_cast<double>(of.arena.reserved())});
  }

  /// What the allocator gave (positive) or got back, and who asked for how much of it.
  struct Change {
    BufferId buffer{};
    std::uint64_t address = 0;
    std::int64_t bytes = 0;
    std::int64_t requested_bytes = 0;
    StackId stack{};
  };
  void memory(std::int32_t index, const Change& change, std::int64_t time_ns) {
    Device& of = device(index);
    of.allocated += change.bytes;
    of.peak_allocated = std::max(of.peak_allocated, of.allocated);
    builder_.memory({.rank = Rank{index},
                     .buffer = change.buffer,
                     .offset_bytes = of.arena.offset_of(change.address),
                     .delta_bytes = change.bytes,
                     .category = Category::not_known,
                     .time_ns = time_ns,
                     .requested_bytes = change.requested_bytes,
                     .stack = change.stack},
                    false);
  }

  /// The state before the first event, at the time of the device's first event.
  void begin() {
    const Snapshot::Start& start = snapshot_.at_start;
    std::map<std::int32_t, std::int64_t> first;
    for (std::size_t i = 0; i < snapshot_.events.size(); ++i) {
      const SnapshotEvent& event = snapshot_.events[i];
      first.try_emplace(event.device, timed_ ? event.time_us * 1000 : static_cast<std::int64_t>(i) * 1000);
    }
    const auto time_of = [&](std::int32_t index) {
      const auto at = first.find(index);
      return at != first.end() ? at->second : first.empty() ? 0 : first.begin()->second;
    };
    for (const SnapshotSegment& segment : start.segments)
      device(segment.device).arena.add(segment.address, segment.bytes);
    for (const auto& [index, state] : devices_) reserved(index, time_of(index));
    for (const Snapshot::Start::Live& block : start.blocks) {
      const BufferId buffer = live_.add(Rank{block.device}, Memory::device, block.address, block.bytes);
      memory(block.device, {buffer, block.address, block.bytes, block.requested_bytes, block.stack},
             time_of(block.device));
    }
  }

  void add(const SnapshotEvent& event, std::int64_t bytes, std::int64_t time_ns) {
    const Rank rank{event.device};
    switch (event.action) {
      case SnapshotAction::alloc: {
        const BufferId buffer = live_.add(rank, Memory::device, event.address, bytes);
        return memory(event.device, {buffer, event.address, bytes, event.bytes, event.stack}, time_ns);
      }
      case SnapshotAction::free_requested:
        if (counted_ == Counted::active) return;
        [[fallthrough]];
      case SnapshotAction::free_completed: {
        const LiveBuffers::Live freed = live_.remove(rank, Memory::device, event.address);
        if (!freed.buffer.valid()) return;
        return memory(event.device, {freed.buffer, event.address, -freed.bytes, 0, event.stack}, time_ns);
      }
      case SnapshotAction::segment_alloc:
      case SnapshotAction::segment_map:
        device(event.device).arena.add(event.address, event.bytes);
        return reserved(event.device, time_ns);
      case SnapshotAction::segment_free:
        device(event.device).arena.remove(event.address);
        return reserved(event.device, time_ns);
      case SnapshotAction::segment_unmap:
        device(event.device).arena.cut(event.address, event.bytes);
        return reserved(event.device, time_ns);
      case SnapshotAction::oom:
      case SnapshotAction::snapshot:
      case SnapshotAction::user_defined: {
        Device& of = device(event.device);
        if (!of.row.valid()) of.row = builder_.add_row({.rank = rank, .kind = TrackKind::other, .name = "allocator"});
        return builder_.instant(of.row, time_ns, builder_.name(to_string(event.action)));
      }
    }
  }

  Builder& builder_;
  const Snapshot& snapshot_;
  Counted counted_;
  std::map<std::int32_t, Device> devices_;
  LiveBuffers live_;
  bool timed_ = false;
};

}  // namespace

Result<LoadedTrace> import_pytorch_snapshot(ByteSource& source, Counted counted) {
  Builder builder(TraceFormat::pytorch_snapshot);
  Snapshot snapshot;
  {
    Reader reader(source, builder);
    const Result<void> read = reader.read(snapshot, builder.loaded.trace.truncated, builder.loaded.trace.header);
    if (!read) return read.error();
  }
  Converter(builder, snapshot, counted).run();
  LoadedTrace loaded = builder.finish();
  recognise_categories(loaded.trace, snapshot.at_start.blocks.size());
  loaded.snapshot = std::move(snapshot);
  return loaded;
}

}  // namespace shard::import
