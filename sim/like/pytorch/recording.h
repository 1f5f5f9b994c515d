// Reads a recording of a caching allocator's events, one CSV row at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "sim/like/pytorch/caching_allocator.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard {

/// The first line of every recording.
inline constexpr std::string_view kRecordingHeader = "what,address,bytes,stream,pool,time_us";

/// What a row says. First the state at the start (segment, block), then every event in the order it happened.
enum class RecordingKind : std::uint8_t {
  segment,         ///< a segment that exists at the start: address, real bytes, stream, pool
  block,           ///< a block in use at the start: address, real bytes
  alloc,           ///< an allocation: the address given out, requested bytes, stream
  free_requested,  ///< the user's free; the block may still be waiting for another stream
  free_completed,  ///< the block is back in its pool
  segment_alloc,   ///< cudaMalloc: comes just before the alloc that caused it
  segment_free,    ///< cudaFree: an emptied cache
  note,            ///< changes no memory (PyTorch: snapshot, oom, user_defined); no other field is set
};

[[nodiscard]] constexpr const char* to_string(RecordingKind kind) {
  switch (kind) {
    case RecordingKind::segment: return "segment";
    case RecordingKind::block: return "block";
    case RecordingKind::alloc: return "alloc";
    case RecordingKind::free_requested: return "free_requested";
    case RecordingKind::free_completed: return "free_completed";
    case RecordingKind::segment_alloc: return "segment_alloc";
    case RecordingKind::segment_free: return "segment_free";
    case RecordingKind::note: return "note";
  }
  return "?";
}

struct RecordingRow {
  RecordingKind kind = RecordingKind::note;
  Address address = 0;
  Bytes bytes{0};
  AllocatorStream stream = 0;
  std::optional<Pool> pool;  ///< set for `segment`, else as the row has it
  std::int64_t line = 0;     ///< counted from 1
};

/// Strict: every row has six fields, numbers are plain decimal, addresses stay below 2^62 and sizes at or below 2^40.
class RecordingReader {
 public:
  /// Borrows `input`; `name` is what errors call it.
  RecordingReader(std::istream& input, std::string name);

  /// The next row, nothing at the end. Errc::malformed naming the line; Errc::io when reading fails half-way;
  /// Errc::contradiction for expandable segments, whose rules differ. After an error or the end, do not call again.
  [[nodiscard]] Result<std::optional<RecordingRow>> next();

  [[nodiscard]] Error malformed(std::int64_t line, std::string what) const;

 private:
  /// The next line without its end; nothing at the end of the input.
  Result<std::optional<std::string_view>> read_line();

  std::istream& input_;
  std::string name_;
  std::int64_t line_ = 0;
  static constexpr std::size_t kLongestLine = 255;
  char buffer_[kLongestLine + 1];
};

}  // namespace shard
