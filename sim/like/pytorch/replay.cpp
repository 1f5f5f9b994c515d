// The replay loop: recorded addresses name blocks, the model says where it would have put them.
#include "sim/like/pytorch/replay.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <utility>

#include "sim/like/pytorch/recording.h"
#include "traces/base/numbers.h"

namespace shard {

namespace {

constexpr std::size_t kMismatchesKept = 8;

/// Gives the model the recorded address for a segment it asks for at the right moment, and one of its own, above all
/// recorded ones, when the recording has none for it.
class RecordedSegments final : public SegmentSource {
 public:
  struct Answer {
    Bytes predicted{0};
    std::optional<RecordingRow> recorded;
  };

  /// Fails when [address, +bytes) meets a segment in use.
  bool occupy(Address address, Bytes bytes) {
    const Address end = address + static_cast<Address>(bytes.count());
    const auto above = in_use_.lower_bound(address);
    if (above != in_use_.end() && above->first < end) return false;
    if (above != in_use_.begin() && std::prev(above)->second > address) return false;
    in_use_.emplace_hint(above, address, end);
    return true;
  }

  void offer(const RecordingRow& row) { offered_.push_back(row); }
  [[nodiscard]] std::vector<RecordingRow> take_unclaimed() { return std::exchange(offered_, {}); }
  [[nodiscard]] std::vector<Answer> take_answers() { return std::exchange(answers_, {}); }

  std::optional<Address> take(Bytes bytes, AllocatorStream stream, Pool) override {
    Answer& answer = answers_.emplace_back();
    answer.predicted = bytes;
    const auto row = std::find_if(offered_.begin(), offered_.end(),
                                  [&](const RecordingRow& offered) { return offered.stream == stream; });
    if (row != offered_.end()) {
      answer.recorded = *row;
      offered_.erase(row);
      if (occupy(answer.recorded->address, bytes)) return answer.recorded->address;
    }
    const Address own = own_;
    own_ += static_cast<Address>(bytes.count());
    occupy(own, bytes);
    return own;
  }

  void give_back(Address address, Bytes) override { in_use_.erase(address); }
  // Recordings do not say where the device was full.
  bool take_pages(Bytes) override { return true; }
  void give_back_pages(Bytes) override {}

 private:
  std::vector<RecordingRow> offered_;
  std::vector<Answer> answers_;
  std::map<Address, Address> in_use_;
  Address own_ = Address{1} << 62;  // recorded addresses are smaller
};

/// The recording's own account of reserved memory.
class MeasuredReserve {
 public:
  void add(Address address, Bytes bytes) {
    Bytes& held = segments_[address];
    current_ += bytes - held;
    held = bytes;
    peak_ = std::max(peak_, current_);
  }
  void remove(Address address) {
    const auto segment = segments_.find(address);
    if (segment == segments_.end()) return;
    current_ -= segment->second;
    segments_.erase(segment);
  }
  [[nodiscard]] Bytes peak() const { return peak_; }

 private:
  std::unordered_map<Address, Bytes> segments_;
  Bytes current_{0}, peak_{0};
};

class Replayer {
 public:
  /// `what_if`: the recorded program had another allocator, or other settings of it.
  Replayer(const RecordingReader& reader, const CachingAllocatorOptions& options, bool what_if)
      : reader_(reader), allocator_(segments_, options), what_if_(what_if) {
    result_.what_if = what_if;
  }

  Result<void> on(const RecordingRow& row) {
    if (row.kind == RecordingKind::segment || row.kind == RecordingKind::block) {
      if (started_) return reader_.malformed(row.line, std::string(to_string(row.kind)) + " row after the first event");
      (row.kind == RecordingKind::segment ? initial_segments_ : initial_blocks_).push_back(row);
      return {};
    }
    if (!started_) {
      if (Result<void> begun = begin(); !begun) return begun;
    }
    if (row.kind != RecordingKind::segment_free) cache_emptied_ = false;
    switch (row.kind) {
      case RecordingKind::alloc: return on_alloc(row);
      case RecordingKind::free_requested: return on_free(row, false);
      case RecordingKind::free_completed: return on_free(row, true);
      case RecordingKind::segment_alloc: return on_segment_alloc(row);
      case RecordingKind::segment_free: return on_segment_free(row), Result<void>{};
      case RecordingKind::segment:
      case RecordingKind::block:
      case RecordingKind::note: break;
    }
    return {};
  }

  Result<AllocatorReplay> finish() {
    if (!started_) {
      if (Result<void> begun = begin(); !begun) return begun.error();
    }
    settle_segments();
    result_.peak_reserved_bytes.predicted = allocator_.statistics().reserved.peak;
    result_.peak_reserved_bytes.measured = measured_.peak();
    result_.peak_allocated_bytes = allocator_.statistics().allocated.peak;
    return std::move(result_);
  }

 private:
  /// Adopts the state at the start.
  Result<void> begin() {
    started_ = true;
    const auto by_address = [](const RecordingRow& a, const RecordingRow& b) { return a.address < b.address; };
    std::stable_sort(initial_segments_.begin(), initial_segments_.end(), by_address);
    std::stable_sort(initial_blocks_.begin(), initial_blocks_.end(), by_address);
    auto block = initial_blocks_.cbegin();
    for (const RecordingRow& segment : initial_segments_) {
      if (block != initial_blocks_.cend() && block->address < segment.address) break;
      std::vector<AdoptedBlock> live;
      const auto first = block;
      for (; block != initial_blocks_.cend() &&
             block->address - segment.address < static_cast<Address>(segment.bytes.count());
           ++block) {
        live.push_back({block->address, block->bytes});
      }
      if (!segments_.occupy(segment.address, segment.bytes)) {
        return reader_.malformed(segment.line, "two segments overlap");
      }
      const Result<std::vector<BlockId>> ids =
          allocator_.adopt(segment.address, segment.bytes, segment.stream, *segment.pool, live);
      if (!ids) return reader_.malformed(segment.line, ids.error().what + " (" + ids.error().where + ")");
      for (std::size_t i = 0; i < ids->size(); ++i) {
        live_.emplace((first + static_cast<std::ptrdiff_t>(i))->address, (*ids)[i]);
      }
      measured_.add(segment.address, segment.bytes);
    }
    if (block != initial_blocks_.cend()) return reader_.malformed(block->line, "the block lies in no segment");
    initial_segments_ = {};
    initial_blocks_ = {};
    return {};
  }

  Result<void> on_alloc(const RecordingRow& row) {
    const Result<BlockId> block = allocator_.allocate(row.bytes, row.stream);
    if (!block) return block.error();  // cannot be: recorded segments are never refused
    settle_segments(row.line);
    ++result_.allocation_count;
    if (!what_if_) compare_address(row, *block);
    const auto [known, fresh] = live_.emplace(row.address, *block);
    if (fresh) return {};
    // The recording lost the free of what lay there before.
    ++result_.unmatched_event_count;
    const BlockId before = std::exchange(known->second, *block);
    return allocator_.free(before);
  }

  void compare_address(const RecordingRow& row, BlockId block) {
    const Address predicted = allocator_.address(block);
    if (predicted == row.address)
      ++result_.same_address_count;
    else
      mismatch(row.line, "allocation of " + std::to_string(row.bytes.count()) + " bytes: predicted address " +
                             std::to_string(predicted) + ", recorded " + std::to_string(row.address));
  }

  Result<void> on_free(const RecordingRow& row, bool completed) {
    const auto known = live_.find(row.address);
    if (known == live_.end()) {
      ++result_.unmatched_event_count;
      return {};
    }
    if (!completed) {
      if (!allocator_.request_free(known->second)) ++result_.unmatched_event_count;  // requested twice
      return {};
    }
    const BlockId block = known->second;
    live_.erase(known);
    return allocator_.free(block);
  }

  Result<void> on_segment_alloc(const RecordingRow& row) {
    if (row.bytes == Bytes{0}) return reader_.malformed(row.line, "a segment has no bytes");
    measured_.add(row.address, row.bytes);
    if (!what_if_) segments_.offer(row);
    return {};
  }

  void on_segment_free(const RecordingRow& row) {
    measured_.remove(row.address);
    if (what_if_) {
      // One row for each segment that the program's empty_cache() gave back; the model has other segments.
      if (!std::exchange(cache_emptied_, true)) allocator_.empty_cache();
      return;
    }
    ++result_.segment_free_count;
    if (allocator_.release_segment(row.address)) {
      ++result_.same_segment_free_count;
    } else {
      mismatch(row.line,
               "segment " + std::to_string(row.address) + " is given back: the model holds none there that is free");
    }
  }

  /// Compares the segments that the model took for the allocation at `line` (0: the end) with those recorded for it.
  void settle_segments(std::int64_t line = 0) {
    if (what_if_) {
      static_cast<void>(segments_.take_answers());
      return;
    }
    for (const RecordedSegments::Answer& answer : segments_.take_answers()) {
      ++result_.segment_count;
      if (answer.recorded && answer.recorded->bytes == answer.predicted) {
        ++result_.same_segment_count;
      } else {
        mismatch(answer.recorded ? answer.recorded->line : line,
                 "segment: predicted " + std::to_string(answer.predicted.count()) + " bytes, recorded " +
                     (answer.recorded ? std::to_string(answer.recorded->bytes.count()) : "none"));
      }
    }
    for (const RecordingRow& row : segments_.take_unclaimed()) {
      ++result_.segment_count;
      mismatch(row.line, "segment: predicted none, recorded " + std::to_string(row.bytes.count()) + " bytes");
    }
  }

  void mismatch(std::int64_t line, std::string what) {
    if (result_.mismatches.size() < kMismatchesKept) result_.mismatches.push_back({line, std::move(what)});
  }

  const RecordingReader& reader_;
  RecordedSegments segments_;
  CachingAllocator allocator_;
  MeasuredReserve measured_;
  AllocatorReplay result_;
  std::unordered_map<Address, BlockId> live_;  // by recorded address
  std::vector<RecordingRow> initial_segments_, initial_blocks_;
  bool started_ = false;
  bool what_if_ = false;
  bool cache_emptied_ = false;  ///< by the row before
};

}  // namespace

Result<AllocatorReplay> replay_allocator(std::istream& recording, std::string name,
                                         const CachingAllocatorOptions& options, bool what_if) {
  RecordingReader reader(recording, std::move(name));
  Replayer replayer(reader, options, what_if);
  while (true) {
    Result<std::optional<RecordingRow>> row = reader.next();
    if (!row) return row.error();
    if (!*row) return replayer.finish();
    if (Result<void> done = replayer.on(**row); !done) return done.error();
  }
}

nlohmann::json to_json(const AllocatorReplay& replay) {
  if (replay.what_if)
    return {{"allocation_count", replay.allocation_count},
            {"unmatched_event_count", replay.unmatched_event_count},
            {"peak_allocated_bytes", replay.peak_allocated_bytes.count()},
            {"peak_reserved_bytes",
             {{"predicted", replay.peak_reserved_bytes.predicted.count()},
              {"measured", replay.peak_reserved_bytes.measured.count()}}}};
  return {{"allocation_count", replay.allocation_count},
          {"same_address_count", replay.same_address_count},
          {"segment_count", replay.segment_count},
          {"same_segment_count", replay.same_segment_count},
          {"segment_free_count", replay.segment_free_count},
          {"same_segment_free_count", replay.same_segment_free_count},
          {"unmatched_event_count", replay.unmatched_event_count},
          {"peak_reserved_bytes",
           {{"predicted", replay.peak_reserved_bytes.predicted.count()},
            {"measured", replay.peak_reserved_bytes.measured.count()}}}};
}

std::string to_text(const AllocatorReplay& replay) {
  const auto mib = [](Bytes bytes) { return show_mib(bytes, 1) + " (" + std::to_string(bytes.count()) + " bytes)"; };
  if (replay.what_if)
    return "the recorded allocations under these settings\npeak reserved: " +
           mib(replay.peak_reserved_bytes.predicted) + ", as recorded " + mib(replay.peak_reserved_bytes.measured) +
           "\npeak allocated: " + mib(replay.peak_allocated_bytes) +
           "\nsegments that were there when the recording began stay as they were\n";
  const auto of = [](std::int64_t same, std::int64_t all) {
    return std::to_string(same) + " of " + std::to_string(all);
  };
  std::string text =
      "allocations at the recorded address: " + of(replay.same_address_count, replay.allocation_count) +
      "\nsegments as recorded: " + of(replay.same_segment_count, replay.segment_count) +
      "\nsegments given back as recorded: " + of(replay.same_segment_free_count, replay.segment_free_count) +
      "\npeak reserved: predicted " + mib(replay.peak_reserved_bytes.predicted) + ", measured " +
      mib(replay.peak_reserved_bytes.measured) + "\n";
  if (replay.unmatched_event_count > 0) {
    text += "events about blocks that the recording does not explain: " + std::to_string(replay.unmatched_event_count) +
            "\n";
  }
  for (const ReplayMismatch& mismatch : replay.mismatches) {
    text += "line " + std::to_string(mismatch.line) + ": " + mismatch.what + "\n";
  }
  return text;
}

}  // namespace shard
