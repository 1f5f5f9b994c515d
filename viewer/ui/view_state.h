// What the user sees of a session, as plain data: where, what is selected, which panes are open.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/base/ids.h"
#include "viewer/index/compare_view.h"
#include "viewer/index/memory_classes.h"
#include "viewer/index/statistics.h"
#include "viewer/index/viewport.h"
#include "viewer/ui/theme.h"

namespace shard::view {

enum class Pane : std::uint8_t {
  timeline,
  memory,
  chunks,
  counters,
  segments,    ///< of the allocator, at the marker
  selection,   ///< details of what is selected
  live,        ///< buffers at the marker
  statistics,  ///< of the selected range
  residuals,   ///< where two documents differ
  search,      ///< result of `shardscope search`
};
inline constexpr int kPaneCount = 10;
[[nodiscard]] const char* to_string(Pane pane);

struct SpanRef {
  std::size_t document = 0;
  std::uint32_t span = 0;
  friend bool operator==(const SpanRef&, const SpanRef&) = default;
};

struct ChunkRef {
  Rank rank{};
  UnitId unit{};
  friend bool operator==(const ChunkRef&, const ChunkRef&) = default;
};

/// A block of an allocator's recording: the event (index into trace.memory) of the first document that acquired it.
struct BlockRef {
  std::uint32_t event = 0;
  friend bool operator==(const BlockRef&, const BlockRef&) = default;
};

/// A moment that a user marked. Kept in a file beside the trace.
struct Note {
  std::int64_t time_ns = 0;  ///< of the first document
  std::string text;          ///< empty: a bookmark
  friend bool operator==(const Note&, const Note&) = default;
};

/// What is being written.
struct NoteField {
  std::int64_t time_ns = 0;
  std::string text;
  bool exists = false;  ///< the note is there already
  bool focus = true;    ///< takes the keyboard in the next frame
};

/// A part of the axis of bytes.
struct ByteRange {
  double low = 0, high = 1;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

/// What a pressed mouse button is doing to the time axis.
enum class Drag : std::uint8_t { none, pan, range };

struct ViewState {
  Camera camera;
  std::size_t document = 0;  ///< the one that tables are about
  Rank rank{};               ///< only this rank; invalid: all
  std::optional<Memory> memory;
  std::optional<SpanRef> selected;
  std::optional<ChunkRef> chunk;
  std::optional<BlockRef> block;
  std::optional<TimeRange> range;         ///< selected
  std::optional<std::int64_t> marker_ns;  ///< where "live" looks; the peak where there is none
  std::optional<std::int64_t> hover_ns;   ///< under the mouse

  Pane tab = Pane::selection;  ///< of the side panel
  std::optional<Pane> only;    ///< one pane fills the picture
  bool side_open = true;
  bool help_open = false;
  bool problems_open = true;
  bool search_open = false;
  bool search_focus = false;  ///< the search field takes the keyboard in the next frame
  std::string query;

  std::vector<Note> notes;  ///< by time
  std::optional<NoteField> note_field;

  ThemeName theme = ThemeName::dark;
  std::optional<ByteRange> bytes;       ///< shown of an allocator's memory; all of it where there is none
  MemoryBy memory_by = MemoryBy::site;  ///< what colours stand for, of an allocator's recording
  AlignMode align = AlignMode::step;
  GroupBy group = GroupBy::name;
  SpanColumn sort = SpanColumn::total;
  bool descending = true;
  bool residuals_by_bytes = false;
  std::optional<std::size_t> search_point;

  float lanes_scroll = 0;                        ///< pixels
  std::size_t chunk_first = 0, chunk_count = 0;  ///< visible units; count 0: all
  /// Shares of lanes, chunks, counters, of what segments leave; memory has the rest. The last is that of segments.
  std::array<float, 4> heights{0.34F, 0.2F, 0.12F, 0.3F};
  float side_width = 480;  ///< logical pixels

  Drag drag = Drag::none;
  std::int64_t drag_from_ns = 0;
  float drag_path = 0;  ///< pixels moved since the button went down; a click stays below a few

  bool escape_held = false;
  std::string notice;  ///< last thing done, for the status line
};

struct Session;

/// The state at the start: everything in view.
[[nodiscard]] ViewState initial_state(const Session& session);

}  // namespace shard::view
