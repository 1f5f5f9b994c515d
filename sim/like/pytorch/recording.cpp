// Parses recording rows; nothing here knows what an allocator does with them.
#include "sim/like/pytorch/recording.h"

#include <array>
#include <charconv>
#include <istream>
#include <utility>

namespace shard {

namespace {

constexpr std::uint64_t kAddressLimit = std::uint64_t{1} << 62;  // leaves room for addresses of our own
constexpr std::uint64_t kSizeLimit = std::uint64_t{1} << 40;     // beyond any device; keeps sums within 64 bits

constexpr std::size_t kFields = 6;
enum Field : std::size_t { kWhat, kAddress, kSize, kStream, kPool, kTime };
using Fields = std::array<std::string_view, kFields>;

std::optional<Fields> cut(std::string_view line) {
  Fields fields;
  for (std::size_t i = 0; i + 1 < kFields; ++i) {
    const std::size_t comma = line.find(',');
    if (comma == std::string_view::npos) return std::nullopt;
    fields[i] = line.substr(0, comma);
    line.remove_prefix(comma + 1);
  }
  if (line.find(',') != std::string_view::npos) return std::nullopt;
  fields[kFields - 1] = line;
  return fields;
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<RecordingKind> kind_of(std::string_view what) {
  constexpr std::array kKinds = {RecordingKind::segment,        RecordingKind::block,
                                 RecordingKind::alloc,          RecordingKind::free_requested,
                                 RecordingKind::free_completed, RecordingKind::segment_alloc,
                                 RecordingKind::segment_free};
  for (const RecordingKind kind : kKinds) {
    if (what == to_string(kind)) return kind;
  }
  if (what == "snapshot" || what == "oom" || what == "user_defined") return RecordingKind::note;
  return std::nullopt;
}

/// Text of a file for use in a message: short and printable.
std::string quoted(std::string_view text) {
  std::string shown = "'";
  for (const char c : text.substr(0, 40)) shown += c >= ' ' && c <= '~' ? c : '?';
  return shown + (text.size() > 40 ? "...'" : "'");
}

}  // namespace

RecordingReader::RecordingReader(std::istream& input, std::string name) : input_(input), name_(std::move(name)) {}

Error RecordingReader::malformed(std::int64_t line, std::string what) const {
  return Error{Errc::malformed, std::move(what), name_ + ":" + std::to_string(line),
               "rows '" + std::string(kRecordingHeader) + "': the state at the start, then every event in order"};
}

Result<std::optional<std::string_view>> RecordingReader::read_line() {
  input_.getline(buffer_, sizeof buffer_);
  if (input_.bad()) return Error{Errc::io, "reading stopped half-way", name_ + ":" + std::to_string(line_ + 1), ""};
  const auto count = static_cast<std::size_t>(input_.gcount());
  if (input_.fail() && count == 0) return std::optional<std::string_view>{};
  ++line_;
  if (input_.fail()) return malformed(line_, "the line is longer than " + std::to_string(kLongestLine) + " characters");
  std::string_view line(buffer_, input_.eof() ? count : count - 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return std::optional{line};
}

Result<std::optional<RecordingRow>> RecordingReader::next() {
  if (line_ == 0) {
    Result<std::optional<std::string_view>> header = read_line();
    if (!header) return header.error();
    if (!*header) return malformed(1, "the recording is empty");
    if (**header != kRecordingHeader) return malformed(1, "the header is " + quoted(**header));
  }
  Result<std::optional<std::string_view>> line = read_line();
  if (!line) return line.error();
  if (!*line) return std::optional<RecordingRow>{};

  const std::optional<Fields> fields = cut(**line);
  if (!fields) return malformed(line_, "a row has six fields, not " + quoted(**line));
  const Fields& field = *fields;
  if (field[kWhat] == "segment_map" || field[kWhat] == "segment_unmap") {
    return Error{Errc::contradiction, "the recording was made with expandable segments, whose rules are not modelled",
                 name_ + ":" + std::to_string(line_), "a recording made without expandable_segments"};
  }
  const std::optional<RecordingKind> kind = kind_of(field[kWhat]);
  if (!kind) return malformed(line_, "unknown row " + quoted(field[kWhat]));

  RecordingRow row;
  row.kind = *kind;
  row.line = line_;
  if (row.kind == RecordingKind::note) return std::optional{row};

  const std::optional<std::uint64_t> address = number(field[kAddress]);
  if (!address || *address >= kAddressLimit) return malformed(line_, "address " + quoted(field[kAddress]));
  row.address = *address;
  const std::optional<std::uint64_t> size = number(field[kSize]);
  if (!size || *size > kSizeLimit) return malformed(line_, "bytes " + quoted(field[kSize]));
  row.bytes = Bytes{static_cast<std::int64_t>(*size)};

  if (const std::string_view text = field[kStream]; !text.empty()) {
    const std::optional<std::uint64_t> stream = number(text);
    if (!stream) return malformed(line_, "stream " + quoted(text));
    row.stream = *stream;
  } else if (row.kind == RecordingKind::segment || row.kind == RecordingKind::alloc ||
             row.kind == RecordingKind::segment_alloc) {
    return malformed(line_, std::string("a ") + to_string(row.kind) + " names its stream");
  }
  if (field[kPool] == to_string(Pool::small)) {
    row.pool = Pool::small;
  } else if (field[kPool] == to_string(Pool::large)) {
    row.pool = Pool::large;
  } else if (!field[kPool].empty() || row.kind == RecordingKind::segment) {
    return malformed(line_, "pool " + quoted(field[kPool]) + " is neither small nor large");
  }
  std::string_view time = field[kTime];
  if (!time.empty() && time.front() == '-') time.remove_prefix(1);
  if (!field[kTime].empty() && !number(time)) return malformed(line_, "time " + quoted(field[kTime]));
  return std::optional{row};
}

}  // namespace shard
