// Replays a recording through the caching allocator model and counts where the two agree.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/like/pytorch/caching_allocator.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard {

/// One disagreement, for the reader.
struct ReplayMismatch {
  std::int64_t line = 0;  ///< of the recording
  std::string what;
};

/// What the model predicted, beside what was recorded.
///
/// The model sees the state at the start, and of each event only what the training program did: requested bytes and
/// stream of an allocation, which allocation is freed, when the cache is emptied. It takes from the recording one thing
/// more, the address of a new segment, which the driver chooses; whether a segment is needed, and its size, it
/// predicts. After a disagreement it goes on from its own state, so one may be followed by many.
struct AllocatorReplay {
  std::int64_t allocation_count = 0;
  std::int64_t same_address_count = 0;
  std::int64_t segment_count = 0;       ///< segments that the recording or the model took after the start
  std::int64_t same_segment_count = 0;  ///< taken by both at the same allocation, with the same size
  std::int64_t segment_free_count = 0;
  std::int64_t same_segment_free_count = 0;  ///< segments that the model too held, wholly free
  /// Frees of a block that the recording never shows allocated, and allocations over a live one; passed over.
  std::int64_t unmatched_event_count = 0;
  struct {
    Bytes predicted{0};
    Bytes measured{0};
  } peak_reserved_bytes;
  std::vector<ReplayMismatch> mismatches;  ///< the first few
  /// The model had settings that the recorded program did not have: peaks alone mean something.
  bool what_if = false;
  Bytes peak_allocated_bytes{0};  ///< of the model

  [[nodiscard]] bool exact() const {
    return same_address_count == allocation_count && same_segment_count == segment_count &&
           same_segment_free_count == segment_free_count &&
           peak_reserved_bytes.predicted == peak_reserved_bytes.measured;
  }
};

/// Reads `recording` to its end (form: recording.h). `name` is what errors call it. Errors as RecordingReader::next();
/// a state at the start that contradicts itself, or that goes on after the first event, is Errc::malformed.
/// With `what_if` segments are the model's own, an emptied cache is emptied whole, and nothing is compared.
[[nodiscard]] Result<AllocatorReplay> replay_allocator(std::istream& recording, std::string name,
                                                       const CachingAllocatorOptions& options = {},
                                                       bool what_if = false);

/// {"allocation_count", "same_address_count", "segment_count", "same_segment_count", "segment_free_count",
///  "same_segment_free_count", "unmatched_event_count", "peak_reserved_bytes": {"predicted", "measured"}}; of a what-if
/// {"allocation_count", "unmatched_event_count", "peak_allocated_bytes", "peak_reserved_bytes": {as above}}.
[[nodiscard]] nlohmann::json to_json(const AllocatorReplay& replay);
/// A few lines for a terminal, each ended by a newline.
[[nodiscard]] std::string to_text(const AllocatorReplay& replay);

}  // namespace shard
