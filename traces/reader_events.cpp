// Every column is made by one thread, then every frame decodes into its own rows; no row is written by two.
#include "traces/reader_events.h"

#include <algorithm>
#include <array>
#include <functional>
#include <type_traits>

#include "traces/base/parallel.h"
#include "traces/columns.h"
#include "traces/rows.h"

namespace shard::sst {
namespace {

/// Fewer rows are decoded before a thread has started.
constexpr std::size_t kRowsForThreads = 100'000;

// The integers inside ids and enumerations, for decoding in place.
template <class Tag>
std::span<std::int32_t> numbers(std::span<Id<Tag>> ids) {
  static_assert(sizeof(Id<Tag>) == sizeof(std::int32_t));
  return {reinterpret_cast<std::int32_t*>(ids.data()), ids.size()};
}
template <class E>
std::span<std::uint8_t> numbers(std::span<E> values) {
  static_assert(std::is_enum_v<E> && sizeof(E) == 1);
  return {reinterpret_cast<std::uint8_t*>(values.data()), values.size()};
}

std::span<std::int64_t> numbers(std::span<std::int64_t> values) {
  return values;
}
std::span<std::int32_t> numbers(std::span<std::int32_t> values) {
  return values;
}

/// Calls visit(vector) for every vector of a table.
template <class Row, class Table, class Visit>
void for_each_vector(Table& table, Visit visit) {
  for_each_column<Row>([&](const auto& column) { visit(table.*column.held); });
  std::apply([&](const auto&... column) { (visit(table.*column.held), ...); }, Rows<Row>::beside);
}

/// Highest and lowest decide, which compilers find for many values at once.
template <class T>
bool all_in_range(std::span<const Stored<T>> values, Limit limit) {
  if (values.empty()) return true;
  Stored<T> least = values.front(), most = values.front();
  for (const Stored<T> value : values) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  return in_range<T>(least, limit) && in_range<T>(most, limit);
}

/// Decodes a frame's columns into its rows of the table. False where a value is out of range or bytes are left over.
template <class Row>
bool decode_columns(const EventFrame& event, ColumnReader& in, typename Rows<Row>::Table& table) {
  const FrameHeader& header = event.frame->header;
  bool sound = true;
  for_each_column<Row>([&](const auto& column) {
    using Value = typename std::decay_t<decltype(column)>::Type;
    const std::span<Value> rows = std::span(table.*column.held).subspan(event.row, header.count);
    if (column.since > header.version) {
      std::ranges::fill(rows, Row{}.*column.of);
      return;
    }
    const auto values = numbers(rows);
    if (column.coding == Coding::delta) {
      in.delta(values);
    } else {
      in.plain(values);
    }
    sound = sound && all_in_range<Value>(values, column.limit);
  });
  return sound && in.finished();
}

void decode_spans(EventFrame& event, ColumnReader in, SpanTable& table) {
  const std::size_t n = event.frame->header.count;
  const auto rows = [&](auto& column) { return std::span(column).subspan(event.row, n); };
  const std::span begin = rows(table.begin_ns), duration = rows(table.duration_ns), waiting = rows(table.waiting_ns);
  bool sound = decode_columns<Span>(event, in, table);
  std::ranges::fill(rows(table.track), TrackId{static_cast<std::int32_t>(event.frame->header.track)});
  std::int64_t previous_end = 0;
  for (std::size_t i = 0; i < n && sound; ++i) {
    begin[i] =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(begin[i]) + static_cast<std::uint64_t>(previous_end));
    sound = in_range<std::int64_t>(begin[i], Limit::time) && duration[i] <= kMaxTime - begin[i] &&  // T9
            waiting[i] <= duration[i];
    if (sound) previous_end = begin[i] + duration[i];
  }
  for (NameId& each : rows(table.name)) {
    if (each.value < 0 || each.value >= event.known_names) each.value = -1;  // T8
  }
  if (!sound) event.why = Rows<Span>::out_of_range;
}

void decode_memory(EventFrame& event, ColumnReader in, MemoryTable& table) {
  const std::size_t n = event.frame->header.count;
  const auto rows = [&](auto& column) { return std::span(column).subspan(event.row, n); };
  event.live_before = static_cast<std::uint64_t>(in.scalar<std::int64_t>());
  const bool sound = decode_columns<MemoryEvent>(event, in, table);
  std::ranges::fill(rows(table.rank), event.rank);
  std::ranges::fill(rows(table.memory), event.memory);
  for (StackId& each : rows(table.stack)) {
    if (each.value < 0 || each.value >= event.known_stacks) each.value = -1;  // T8
  }
  for (const std::int64_t bytes : rows(table.delta_bytes)) event.live_change += static_cast<std::uint64_t>(bytes);
  if (!sound) event.why = Rows<MemoryEvent>::out_of_range;
}

/// Moves the rows of usable frames together, column by column.
template <class Row>
void close_gaps(const std::vector<EventFrame>& frames, typename Rows<Row>::Table& table) {
  for_each_vector<Row>(table, [&](auto& column) {
    auto to = column.begin();
    for (const EventFrame& event : frames) {
      if (event.frame->type() != Rows<Row>::type || event.why != nullptr) continue;
      const auto from = column.begin() + static_cast<std::ptrdiff_t>(event.row);
      to = std::move(from, from + static_cast<std::ptrdiff_t>(event.frame->header.count), to);
    }
    column.erase(to, column.end());
  });
}

template <class Row>
void append_row(const Row& row, typename Rows<Row>::Table& table) {
  const auto append = [&](const auto& column) { (table.*column.held).push_back(row.*column.of); };
  for_each_column<Row>(append);
  std::apply([&](const auto&... column) { (append(column), ...); }, Rows<Row>::beside);
}

}  // namespace

void decode_events(std::span<const std::byte> file, std::vector<EventFrame>& frames, Trace& trace) {
  std::size_t span_rows = 0, memory_rows = 0;
  for (EventFrame& event : frames) {
    std::size_t& rows = event.frame->type() == FrameType::spans ? span_rows : memory_rows;
    event.row = rows;
    if (event.why == nullptr) rows += event.frame->header.count;
  }
  const bool parallel = span_rows + memory_rows > kRowsForThreads;
  std::vector<std::function<void()>> columns;  // the kernel's clearing of fresh memory costs as much as decoding
  for_each_vector<Span>(trace.spans, [&](auto& column) { columns.emplace_back([&] { column.resize(span_rows); }); });
  for_each_vector<MemoryEvent>(trace.memory,
                               [&](auto& column) { columns.emplace_back([&] { column.resize(memory_rows); }); });
  for_each_index(columns.size(), parallel, [&](std::size_t i) { columns[i](); });

  // Neighbouring frames in one piece of work share a decompressor, which costs as much to make as a frame to decode.
  constexpr std::size_t kPieces = 32;
  const std::size_t together = std::max<std::size_t>(1, frames.size() / kPieces);
  const std::size_t pieces = (frames.size() + together - 1) / together;
  for_each_index(pieces, parallel, [&](std::size_t piece) {
    Payloads payloads(file);
    for (std::size_t i = piece * together; i < std::min(frames.size(), (piece + 1) * together); ++i) {
      EventFrame& event = frames[i];
      if (event.why != nullptr) continue;
      const Payloads::Payload payload = payloads.of(*event.frame);
      event.why = payload.why;
      if (event.why != nullptr) continue;
      if (event.frame->type() == FrameType::spans) {
        decode_spans(event, ColumnReader(payload.raw), trace.spans);
      } else {
        decode_memory(event, ColumnReader(payload.raw), trace.memory);
      }
    }
  });
}

void drop_unusable(const std::vector<EventFrame>& frames, Trace& trace) {
  if (std::ranges::all_of(frames, [](const EventFrame& event) { return event.why == nullptr; })) return;
  close_gaps<Span>(frames, trace.spans);
  close_gaps<MemoryEvent>(frames, trace.memory);
}

}  // namespace shard::sst

namespace shard {

void SpanTable::push_back(const Span& span) {
  sst::append_row(span, *this);
}
void SpanTable::reserve(std::size_t rows) {
  sst::for_each_vector<Span>(*this, [&](auto& column) { column.reserve(rows); });
}

void MemoryTable::push_back(const MemoryEvent& event) {
  sst::append_row(event, *this);
}
void MemoryTable::reserve(std::size_t rows) {
  sst::for_each_vector<MemoryEvent>(*this, [&](auto& column) { column.reserve(rows); });
}

}  // namespace shard
