// Every column is made by one thread, then every frame decodes into its own rows; no row is written by two.
#include "traces/reader_events.h"

#include <algorithm>
#include <array>
#include <functional>
#include <type_traits>

#include "traces/columns.h"
#include "traces/parallel.h"

namespace shard::sst {
namespace {

/// Fewer rows are decoded before a thread has started.
constexpr std::size_t kRowsForThreads = 100'000;

template <class E>
bool all_at_most(std::span<const E> values, E last) {
  std::uint8_t highest = 0;
  for (const E value : values) highest = std::max(highest, static_cast<std::uint8_t>(value));
  return highest <= static_cast<std::uint8_t>(last);
}

bool time_fits(std::int64_t time) {
  return time >= -kMaxTime && time <= kMaxTime;
}

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

template <class Visit>
void for_each_column(SpanTable& t, Visit visit) {
  visit(t.begin_ns), visit(t.duration_ns), visit(t.bytes), visit(t.track), visit(t.op), visit(t.name), visit(t.step);
  visit(t.micro_step), visit(t.unit), visit(t.phase), visit(t.waiting_ns);
}
template <class Visit>
void for_each_column(MemoryTable& t, Visit visit) {
  visit(t.offset_bytes), visit(t.delta_bytes), visit(t.time_ns), visit(t.rank), visit(t.buffer), visit(t.op);
  visit(t.step), visit(t.unit), visit(t.memory), visit(t.category), visit(t.phase);
}

void decode_spans(EventFrame& event, ColumnReader in, SpanTable& table) {
  const FrameHeader& header = event.frame->header;
  const std::size_t n = header.count;
  const auto rows = [&](auto& column) { return std::span(column).subspan(event.row, n); };
  const std::span begin = rows(table.begin_ns), duration = rows(table.duration_ns);
  const std::span phase = rows(table.phase);
  const std::span name = rows(table.name);
  in.plain(begin);
  in.plain(duration);
  in.delta(numbers(rows(table.op)));
  in.plain(numbers(name));
  in.plain(numbers(phase));
  in.delta(rows(table.step));
  in.delta(rows(table.micro_step));
  in.plain(rows(table.bytes));
  in.delta(numbers(rows(table.unit)));
  const std::span waiting = rows(table.waiting_ns);
  if (header.version == kWaitingSpansVersion)
    in.plain(waiting);
  else
    std::ranges::fill(waiting, 0);
  std::ranges::fill(rows(table.track), TrackId{static_cast<std::int32_t>(header.track)});

  bool sound = in.finished() && all_at_most<Phase>(phase, Phase::digest);
  std::int64_t previous_end = 0;
  for (std::size_t i = 0; i < n && sound; ++i) {
    begin[i] =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(begin[i]) + static_cast<std::uint64_t>(previous_end));
    sound = duration[i] >= 0 && time_fits(begin[i]) && duration[i] <= kMaxTime - begin[i] &&  // T9
            waiting[i] >= 0 && waiting[i] <= duration[i];
    if (sound) previous_end = begin[i] + duration[i];
  }
  for (NameId& each : name) {
    if (each.value < 0 || each.value >= event.known_names) each.value = -1;  // T8
  }
  if (!sound) event.why = "a SPANS frame has a value out of range (T9)";
}

void decode_memory(EventFrame& event, ColumnReader in, MemoryTable& table) {
  const FrameHeader& header = event.frame->header;
  const std::size_t n = header.count;
  const auto rows = [&](auto& column) { return std::span(column).subspan(event.row, n); };
  event.live_before = static_cast<std::uint64_t>(in.scalar<std::int64_t>());
  const std::span delta = rows(table.delta_bytes), time = rows(table.time_ns);
  const std::span phase = rows(table.phase);
  const std::span category = rows(table.category);
  in.plain(numbers(rows(table.buffer)));
  in.plain(rows(table.offset_bytes));
  in.plain(delta);
  in.plain(numbers(category));
  in.delta(numbers(rows(table.op)));
  in.delta(time);
  in.plain(numbers(phase));
  in.delta(rows(table.step));
  in.plain(numbers(rows(table.unit)));
  std::ranges::fill(rows(table.rank), event.rank);
  std::ranges::fill(rows(table.memory), event.memory);
  for (const std::int64_t bytes : delta) event.live_change += static_cast<std::uint64_t>(bytes);
  const bool in_range = in.finished() && all_at_most<Phase>(phase, Phase::digest) &&
                        all_at_most<Category>(category, Category::input) && std::ranges::all_of(time, time_fits);
  if (!in_range) event.why = "a MEMORY frame has a value out of range (T9)";
}

/// Moves the rows of usable frames together, column by column.
template <class Table>
void close_gaps(const std::vector<EventFrame>& frames, FrameType type, Table& table) {
  for_each_column(table, [&](auto& column) {
    auto to = column.begin();
    for (const EventFrame& event : frames) {
      if (event.frame->type() != type || event.why != nullptr) continue;
      const auto from = column.begin() + static_cast<std::ptrdiff_t>(event.row);
      to = std::move(from, from + static_cast<std::ptrdiff_t>(event.frame->header.count), to);
    }
    column.erase(to, column.end());
  });
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
  for_each_column(trace.spans, [&](auto& column) { columns.emplace_back([&] { column.resize(span_rows); }); });
  for_each_column(trace.memory, [&](auto& column) { columns.emplace_back([&] { column.resize(memory_rows); }); });
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
  close_gaps(frames, FrameType::spans, trace.spans);
  close_gaps(frames, FrameType::memory, trace.memory);
}

}  // namespace shard::sst
