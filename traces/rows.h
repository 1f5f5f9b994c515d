// What the rows and entries of every frame hold, in file order: the one list that writer and reader share (FORMAT.md,
// "Frame types").
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "traces/event.h"
#include "traces/frame.h"
#include "traces/reader.h"

namespace shard::sst {

// --- Values: what a file stores of each type, and which values it may have (T9) ---

/// The integer that is stored.
template <class T>
struct StoredAs {
  using Type = T;
};
template <class Tag>
struct StoredAs<Id<Tag>> {
  using Type = std::int32_t;
};
template <class E>
requires std::is_enum_v<E>
struct StoredAs<E> {
  using Type = std::underlying_type_t<E>;
};
template <>
struct StoredAs<double> {
  using Type = std::uint64_t;
};
template <>
struct StoredAs<bool> {
  using Type = std::uint8_t;
};
template <class T>
using Stored = typename StoredAs<T>::Type;

template <class T>
[[nodiscard]] Stored<T> stored(const T& value) {
  if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(value);
  } else if constexpr (std::is_class_v<T>) {
    return value.value;
  } else {
    return static_cast<Stored<T>>(value);
  }
}
template <class T>
[[nodiscard]] T restored(Stored<T> number) {
  if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(number);
  } else if constexpr (std::is_class_v<T>) {
    return T{number};
  } else {
    return static_cast<T>(number);
  }
}

/// How many enumerators a file may hold.
template <class E>
inline constexpr int kEnumerators = 0;
template <>
inline constexpr int kEnumerators<bool> = 2;
template <>
inline constexpr int kEnumerators<TrackKind> = 3;
template <>
inline constexpr int kEnumerators<Memory> = kMemoryCount;
template <>
inline constexpr int kEnumerators<Category> = kCategoryCount;
template <>
inline constexpr int kEnumerators<Stream> = kStreamCount;
template <>
inline constexpr int kEnumerators<Phase> = kPhaseCount;
template <>
inline constexpr int kEnumerators<Collective> = kCollectiveCount;
template <>
inline constexpr int kEnumerators<Part> = kPartCount;
template <>
inline constexpr int kEnumerators<Activity> = kActivityCount;
template <>
inline constexpr int kEnumerators<UnitState> = 5;
template <>
inline constexpr int kEnumerators<FlowKind> = 3;

/// Values that their type alone does not limit.
enum class Limit : std::uint8_t {
  type,   ///< an enumerator, a rank; any other integer
  time,   ///< within +-kMaxTime
  count,  ///< at least 0
  positive,
  any,  ///< as it is, a rank too
};

template <class T>
[[nodiscard]] bool in_range(Stored<T> number, Limit limit) {
  static_assert(!std::is_enum_v<T> || kEnumerators<T> > 0, "say above how many enumerators it has");
  if constexpr (kEnumerators < T >> 0) {
    return number < kEnumerators<T>;
  } else if constexpr (std::is_unsigned_v<Stored<T>>) {
    return true;  // a double
  } else {
    switch (limit) {
      case Limit::type: return !std::is_same_v<T, Rank> || number >= 0;
      case Limit::time: return number >= -kMaxTime && number <= kMaxTime;
      case Limit::count: return number >= 0;
      case Limit::positive: return number > 0;
      case Limit::any: return true;
    }
    return true;
  }
}

// --- Frames of rows: columns one behind the other (T4) ---

enum class Coding : std::uint8_t {
  plain,
  delta,  ///< to the value in the row before
  gap,    ///< of spans' begins: to the end of the row before
};

/// A column: a member of the row, and the vector that holds it where rows are held by column.
template <class Row, class Value, class Table>
struct Column {
  Value Row::*of;
  Table held;
  Coding coding = Coding::plain;
  Limit limit = Limit::type;
  std::uint16_t since = 1;  ///< version of the frame; older ones leave the member at its default

  using Type = Value;
  [[nodiscard]] constexpr Column operator|(Limit what) const { return {of, held, coding, what, since}; }
  /// The column is new in a version of its frame.
  [[nodiscard]] constexpr Column from(std::uint16_t version) const { return {of, held, coding, limit, version}; }
};

template <class Row, class Value>
[[nodiscard]] constexpr Column<Row, Value, std::nullptr_t> plain(Value Row::*of) {
  return {of, nullptr};
}
template <class Row, class Value>
[[nodiscard]] constexpr Column<Row, Value, std::nullptr_t> delta(Value Row::*of) {
  return {of, nullptr, Coding::delta};
}
template <class Row, class Value, class Table>
[[nodiscard]] constexpr Column<Row, Value, std::vector<Value> Table::*> plain(Value Row::*of,
                                                                              std::vector<Value> Table::*held) {
  return {of, held};
}
template <class Row, class Value, class Table>
[[nodiscard]] constexpr Column<Row, Value, std::vector<Value> Table::*> delta(Value Row::*of,
                                                                              std::vector<Value> Table::*held,
                                                                              Coding coding = Coding::delta) {
  return {of, held, coding};
}

/// What the producer lost (DROPPED).
struct DroppedCount {
  std::int64_t count = 0;
};
/// What stands before the END frame.
struct EndCounts {
  std::int64_t frames = 0, spans = 0, memory_events = 0;
};

/// A type of row: its frame, its columns in file order, and what is said of one with a value out of range. Rows held by
/// column have columns `beside`, which the frame's track says for all rows.
template <class Row>
struct Rows;

template <>
struct Rows<Span> {
  using Table = SpanTable;
  static constexpr FrameType type = FrameType::spans;
  static constexpr const char* out_of_range = "a SPANS frame has a value out of range (T9)";
  static constexpr std::uint32_t fixed_bytes = 0;
  static constexpr auto columns = std::tuple{delta(&Span::begin_ns, &SpanTable::begin_ns, Coding::gap) | Limit::any,
                                             plain(&Span::duration_ns, &SpanTable::duration_ns) | Limit::count,
                                             delta(&Span::op, &SpanTable::op),
                                             plain(&Span::name, &SpanTable::name),
                                             plain(&Span::phase, &SpanTable::phase),
                                             delta(&Span::step, &SpanTable::step),
                                             delta(&Span::micro_step, &SpanTable::micro_step),
                                             plain(&Span::bytes, &SpanTable::bytes),
                                             delta(&Span::unit, &SpanTable::unit),
                                             (plain(&Span::waiting_ns, &SpanTable::waiting_ns) | Limit::count).from(2),
                                             plain(&Span::part, &SpanTable::part).from(3),
                                             plain(&Span::activity, &SpanTable::activity).from(4)};
  static constexpr auto beside = std::tuple{plain(&Span::track, &SpanTable::track)};
};

template <>
struct Rows<MemoryEvent> {
  using Table = MemoryTable;
  static constexpr FrameType type = FrameType::memory;
  static constexpr const char* out_of_range = "a MEMORY frame has a value out of range (T9)";
  static constexpr std::uint32_t fixed_bytes = 8;  // T11
  static constexpr auto columns =
      std::tuple{plain(&MemoryEvent::buffer, &MemoryTable::buffer),
                 plain(&MemoryEvent::offset_bytes, &MemoryTable::offset_bytes),
                 plain(&MemoryEvent::delta_bytes, &MemoryTable::delta_bytes),
                 plain(&MemoryEvent::category, &MemoryTable::category),
                 delta(&MemoryEvent::op, &MemoryTable::op),
                 delta(&MemoryEvent::time_ns, &MemoryTable::time_ns) | Limit::time,
                 plain(&MemoryEvent::phase, &MemoryTable::phase),
                 delta(&MemoryEvent::step, &MemoryTable::step),
                 plain(&MemoryEvent::unit, &MemoryTable::unit),
                 plain(&MemoryEvent::requested_bytes, &MemoryTable::requested_bytes).from(2),
                 plain(&MemoryEvent::stack, &MemoryTable::stack).from(2)};
  static constexpr auto beside =
      std::tuple{plain(&MemoryEvent::rank, &MemoryTable::rank), plain(&MemoryEvent::memory, &MemoryTable::memory)};
};

/// The version of MEMORY that knows Category::not_known: readers of older ones refuse it.
inline constexpr std::uint16_t kCategoryNotKnownSince = 2;

template <>
struct Rows<Counter> {
  static constexpr FrameType type = FrameType::counters;
  static constexpr const char* out_of_range = "a COUNTERS frame has a value out of range (T9)";
  static constexpr std::uint32_t fixed_bytes = 0;
  static constexpr auto columns = std::tuple{plain(&Counter::rank), plain(&Counter::name),
                                             delta(&Counter::time_ns) | Limit::time, plain(&Counter::value)};
};

template <>
struct Rows<ChunkState> {
  static constexpr FrameType type = FrameType::chunk_states;
  static constexpr const char* out_of_range = "a CHUNK_STATES frame has a value out of range (T9)";
  static constexpr std::uint32_t fixed_bytes = 0;
  static constexpr auto columns =
      std::tuple{plain(&ChunkState::rank), plain(&ChunkState::unit), delta(&ChunkState::time_ns) | Limit::time,
                 plain(&ChunkState::memory), plain(&ChunkState::state)};
};

template <>
struct Rows<Flow> {
  static constexpr FrameType type = FrameType::flows;
  static constexpr const char* out_of_range = "a FLOWS frame has a value out of range (T9)";
  static constexpr std::uint32_t fixed_bytes = 0;
  static constexpr auto columns =
      std::tuple{plain(&Flow::from_track), delta(&Flow::from_ns) | Limit::time, plain(&Flow::to_track),
                 delta(&Flow::to_ns) | Limit::time, plain(&Flow::kind)};
};

template <>
struct Rows<ArenaSummary> {
  static constexpr FrameType type = FrameType::arenas;
  static constexpr const char* out_of_range = "an ARENAS frame has a value out of range (T9)";
  static constexpr std::uint32_t fixed_bytes = 0;
  static constexpr auto columns = std::tuple{
      plain(&ArenaSummary::rank),       plain(&ArenaSummary::memory),          plain(&ArenaSummary::phase),
      plain(&ArenaSummary::peak_bytes), plain(&ArenaSummary::live_peak_bytes), plain(&ArenaSummary::capacity_bytes)};
};

template <>
struct Rows<CollectiveTotal> {
  static constexpr FrameType type = FrameType::collectives;
  static constexpr const char* out_of_range = "a COLLECTIVES frame has a value out of range (T9)";
  static constexpr std::uint32_t fixed_bytes = 0;
  static constexpr auto columns = std::tuple{plain(&CollectiveTotal::rank), plain(&CollectiveTotal::kind),
                                             plain(&CollectiveTotal::count), plain(&CollectiveTotal::bytes)};
};

template <>
struct Rows<DroppedCount> {
  static constexpr FrameType type = FrameType::dropped;
  static constexpr const char* out_of_range = "a DROPPED frame has a value out of range (T9)";
  static constexpr std::uint32_t fixed_bytes = 0;
  static constexpr auto columns = std::tuple{plain(&DroppedCount::count) | Limit::count};
};

template <>
struct Rows<EndCounts> {
  static constexpr FrameType type = FrameType::end;
  static constexpr const char* out_of_range = "the END frame has a value out of range (T9)";
  static constexpr std::uint32_t fixed_bytes = 0;
  static constexpr auto columns =
      std::tuple{plain(&EndCounts::frames), plain(&EndCounts::spans), plain(&EndCounts::memory_events)};
};

/// Calls visit(column) for every column of a row type, in file order.
template <class Row, class Visit>
constexpr void for_each_column(Visit visit) {
  std::apply([&](const auto&... column) { (visit(column), ...); }, Rows<Row>::columns);
}

/// The newest version of a row type's frame.
template <class Row>
[[nodiscard]] constexpr std::uint16_t latest_version() {
  std::uint16_t version = kFrameVersion;
  for_each_column<Row>([&](const auto& column) { version = std::max(version, column.since); });
  return version;
}

/// Bytes of a row in a version of its frame.
template <class Row>
[[nodiscard]] constexpr std::uint32_t row_bytes(std::uint16_t version) {
  std::uint32_t bytes = 0;
  for_each_column<Row>([&](const auto& column) {
    if (column.since <= version) bytes += sizeof(Stored<typename std::decay_t<decltype(column)>::Type>);
  });
  return bytes;
}

/// Calls visit.template operator()<Row>() with the row type of a frame type. False where it has none: tables of text,
/// and types that are not known.
template <class Visit>
constexpr bool with_row_type(FrameType type, Visit visit) {
  const auto is = [&]<class Row>() {
    if (type != Rows<Row>::type) return false;
    visit.template operator()<Row>();
    return true;
  };
  return is.template operator()<Span>() || is.template operator()<MemoryEvent>() || is.template operator()<Counter>() ||
         is.template operator()<ChunkState>() || is.template operator()<Flow>() ||
         is.template operator()<ArenaSummary>() || is.template operator()<CollectiveTotal>() ||
         is.template operator()<DroppedCount>() || is.template operator()<EndCounts>();
}

// --- Frames of entries, the tables: fields of each, one entry behind the other; never compressed (T6) ---

[[nodiscard]] constexpr bool is_table(FrameType type) {
  return type == FrameType::meta || type == FrameType::strings || type == FrameType::tracks ||
         type == FrameType::units || type == FrameType::strategy || type == FrameType::capacities ||
         type == FrameType::frames || type == FrameType::stacks;
}

template <class T, class Entry>
concept IsEntry = std::same_as<std::remove_const_t<T>, Entry>;

/// A key and a value (META).
using MetaEntry = std::pair<std::string, std::string>;

/// Calls io.number(), io.text() and io.zero() for the fields of an entry; io writes, or reads into it.
template <class Io, IsEntry<MetaEntry> Entry>
void fields_of(Io& io, Entry& entry) {
  io.text(entry.first);
  io.text(entry.second);
}
template <class Io, IsEntry<std::string> Entry>
void fields_of(Io& io, Entry& name) {
  io.text(name);
}
template <class Io, IsEntry<Track> Entry>
void fields_of(Io& io, Entry& track) {
  io.number(track.rank);
  io.number(track.kind);
  io.number(track.stream);
  io.number(track.memory);
  io.zero();
  io.text(track.name);
}
template <class Io, IsEntry<UnitInfo> Entry>
void fields_of(Io& io, Entry& unit) {
  io.number(unit.elements, Limit::count);
  io.number(unit.bytes, Limit::count);
  io.text(unit.name);
}
template <class Io, IsEntry<StrategyField> Entry>
void fields_of(Io& io, Entry& field) {
  io.number(field.telling);
  io.text(field.name);
  io.text(field.value);
}
template <class Io, IsEntry<MemoryCapacity> Entry>
void fields_of(Io& io, Entry& capacity) {
  io.number(capacity.rank, Limit::any);
  io.number(capacity.memory);
  io.number(capacity.sharers, Limit::positive);
  io.number(capacity.bytes, Limit::count);
}

template <class Io, IsEntry<StackFrame> Entry>
void fields_of(Io& io, Entry& frame) {
  io.number(frame.function, Limit::any);
  io.number(frame.file, Limit::any);
  io.number(frame.line, Limit::count);
}
template <class Io, IsEntry<StackNode> Entry>
void fields_of(Io& io, Entry& node) {
  io.number(node.frame, Limit::any);
  io.number(node.caller, Limit::any);
}

/// Bytes of a table's entry at least: how many of them a file can have.
struct LeastBytes {
  std::uint64_t bytes = 0;
  template <class T>
  void number(const T& /*value*/, Limit /*of it*/ = Limit::type) {
    bytes += sizeof(Stored<T>);
  }
  void text(const std::string& /*text*/) { bytes += sizeof(std::uint32_t); }
  void zero() { ++bytes; }
};
template <class Entry>
[[nodiscard]] std::uint64_t least_bytes() {
  LeastBytes least;
  const Entry entry{};
  fields_of(least, entry);
  return least.bytes;
}

}  // namespace shard::sst
