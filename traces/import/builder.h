// Collects what an importer reads, in any order, and makes a Trace of it that keeps the promises of reader.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "traces/event.h"
#include "traces/import/import.h"
#include "traces/stack_ids.h"

namespace shard::import {

/// A row of the foreign timeline. Rows are numbered in the order in which they are first named.
using RowId = Id<struct RowTag>;

/// The nearest that fits: ids and steps of foreign files may be anything.
[[nodiscard]] inline std::int32_t clamp32(std::int64_t value) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(value, -0x8000'0000ll, 0x7fff'ffff));
}

class Builder {
 public:
  explicit Builder(TraceFormat format);
  Builder(const Builder&) = delete;

  /// What is known of the whole: header, arenas, truncated, notes, snapshot. The builder fills in the rest.
  LoadedTrace loaded;

  [[nodiscard]] NameId name(std::string_view text);
  [[nodiscard]] FrameId frame(const StackFrame& frame);
  [[nodiscard]] StackId stack(const StackNode& node);
  /// The track that a row becomes; may be set until finish(). Equal tracks get the row's number in their name.
  [[nodiscard]] RowId add_row(Track track = {});
  [[nodiscard]] Track& row(RowId row) { return rows_[static_cast<std::size_t>(row.value)].track; }
  [[nodiscard]] std::size_t row_count() const { return rows_.size(); }
  /// Where a row stands among the others: smaller is higher; equal ones in the order of their numbers.
  void set_order(RowId row, std::pair<std::int64_t, std::int64_t> order);
  /// Spans, instants and flows of row `from` are shown on `to`.
  void merge_row(RowId from, RowId to);

  // Spans carry their row's number as track. Times beyond +-2^61 make an event void: it is counted and left out.
  /// Whether it was taken; it then is the last of the spans.
  bool complete(RowId row, Span span);
  /// A span that was added, by its number, until finish().
  [[nodiscard]] Span& span(std::size_t number) { return spans_[number]; }
  [[nodiscard]] std::size_t span_count() const { return spans_.size(); }
  /// Begin and end of a span, matched as a stack per `group` in the order of time (of the file where times are equal).
  void begin(RowId row, std::int32_t group, Span span);
  void end(std::int32_t group, std::int64_t time_ns);
  void instant(RowId row, std::int64_t time_ns, NameId name);
  /// In plan order, which is the file's. `counted`: the file has this event.
  void memory(const MemoryEvent& event, bool counted = true);
  void counter(const Counter& counter);
  /// Makes room for this many memory events.
  void reserve_memory(std::size_t count);
  enum class FlowEnd : std::uint8_t { start, step, finish };
  /// One end of an arrow. Ends of one key belong together; a key may be used again after its finish.
  void flow(std::uint64_t key, FlowEnd end, RowId row, std::int64_t time_ns, FlowKind kind);
  /// The same for keys that are text.
  void flow(const std::string& key, FlowEnd end, RowId row, std::int64_t time_ns, FlowKind kind);

  /// Whether there is room for more, `consumed` bytes of input having been read: it keeps the resulting events within
  /// 64 MiB + 4 times the input, whatever the input pretends.
  [[nodiscard]] bool room(std::uint64_t consumed) const { return charged_ <= kFreeBytes + 4 * consumed; }
  /// What an importer itself keeps counts too; what it took from a compressed part counts as input.
  void charge(std::uint64_t bytes) { charged_ += bytes; }
  void refund(std::uint64_t bytes) { charged_ -= std::min(bytes, charged_); }
  [[nodiscard]] static bool in_range(std::int64_t time_ns);

  /// Sorts, matches, fills the tables; all times are shifted by `shift_ns`.
  [[nodiscard]] LoadedTrace finish(std::int64_t shift_ns = 0);

  static constexpr std::uint64_t kFreeBytes = 64u << 20;

 private:
  struct Row {
    Track track;
    std::pair<std::int64_t, std::int64_t> order{};
    RowId shown_on{};  // itself, unless merged
    bool used = false;
  };
  /// Begin (span >= 0: index of its span) or end of a span.
  struct Mark {
    std::int64_t time_ns = 0;
    std::int32_t group = 0;
    std::int32_t span = -1;
  };
  struct FlowPoint {
    std::uint64_t key = 0;
    std::int64_t time_ns = 0;
    RowId row{};
    FlowEnd end = FlowEnd::start;
    FlowKind kind = FlowKind::dependency;
  };
  /// Names are looked up by content and held once, in loaded.trace.names.
  struct NameHash {
    const std::vector<std::string>* names;
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
    std::size_t operator()(std::int32_t id) const { return (*this)((*names)[static_cast<std::size_t>(id)]); }
  };
  struct NameEqual {
    const std::vector<std::string>* names;
    using is_transparent = void;
    [[nodiscard]] std::string_view text(std::string_view text) const { return text; }
    [[nodiscard]] std::string_view text(std::int32_t id) const { return (*names)[static_cast<std::size_t>(id)]; }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return text(a) == text(b);
    }
  };

  void match();
  void join_flows();
  void place_tracks();
  void fill_spans(std::int64_t shift_ns);
  void note(std::int64_t count, const std::string& what);

  std::deque<Row> rows_;
  std::unordered_set<std::int32_t, NameHash, NameEqual> name_ids_;
  StackIds stack_ids_;
  std::deque<Span> spans_;  // negative duration: open
  std::deque<Mark> marks_;
  std::unordered_map<std::string, std::uint64_t> flow_keys_;
  std::deque<FlowPoint> flow_points_;
  std::uint64_t charged_ = 0;
  std::int64_t void_count_ = 0, unmatched_end_count_ = 0, unmatched_begin_count_ = 0, unmatched_flow_count_ = 0;
};

/// Live allocations by memory and address: gives every one a buffer of its own, and a free its size.
class LiveBuffers {
 public:
  struct Live {
    BufferId buffer{};
    std::int64_t bytes = 0;
  };
  /// A new buffer; one that was live at the address is forgotten.
  [[nodiscard]] BufferId add(Rank rank, Memory memory, std::uint64_t address, std::int64_t bytes);
  /// What was live at the address, which is forgotten; an invalid buffer where nothing was.
  [[nodiscard]] Live remove(Rank rank, Memory memory, std::uint64_t address);
  [[nodiscard]] BufferId fresh() { return BufferId{next_ == 0x7fff'ffff ? next_ : next_++}; }

 private:
  std::unordered_map<std::uint64_t, Live>& map(Rank rank, Memory memory);
  std::unordered_map<std::int64_t, std::unordered_map<std::uint64_t, Live>> live_;
  std::int32_t next_ = 0;
};

}  // namespace shard::import
