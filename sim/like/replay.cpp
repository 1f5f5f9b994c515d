// Acquire is allocate, release is free; moments are read off at the marks.
#include "sim/like/replay.h"

#include <algorithm>
#include <cassert>

#include "sim/like/watched_device.h"

namespace shard::like {
namespace {

class Replayer {
 public:
  Replayer(const plan::Plan& plan, const CachingAllocatorOptions& options, SegmentSource& device,
           std::span<const std::uint8_t> streams, SnapshotWriter* snapshot)
      : plan_(plan), allocator_(device, options), streams_(streams), snapshot_(snapshot), live_(plan.buffers.size()) {}

  Result<Replay> run(const std::vector<Mark>& marks) {
    auto mark = marks.begin();
    for (const plan::PhaseOps& phase : plan_.phases) {
      for (std::size_t done = 0;; ++done) {
        for (; mark != marks.end() && mark->phase == phase.phase && mark->ops == done; ++mark) note(*mark);
        if (done == phase.ops.size()) break;
        if (snapshot_ != nullptr) snapshot_->begin_op(plan_, phase.phase, phase.ops[done]);
        if (Result<void> ok = play(phase.ops[done]); !ok) return ok.error();
      }
    }
    assert(mark == marks.end() && "marks are in plan order");
    result_.statistics = allocator_.statistics();
    if (snapshot_ != nullptr) snapshot_->finish(allocator_.snapshot());
    return std::move(result_);
  }

 private:
  /// A block taken, or given back.
  struct Event {
    BufferId buffer;
    Bytes taken;  ///< 0: given back
  };

  Result<void> play(const plan::Op& op) {
    for (BufferId id : op.acquire) {
      const plan::Buffer& buffer = plan_.buffer(id);
      if (buffer.memory != Memory::device) continue;
      if (snapshot_ != nullptr) snapshot_->begin_buffer(buffer.category);
      const AllocatorStream stream = streams_.empty() ? 0 : streams_[index_of(id)];
      Result<BlockId> block = allocator_.allocate(buffer.bytes, stream);
      if (!block) {
        Error error = block.error();
        error.where = std::string(op.name) + ", " + std::string(buffer.name);
        return error;
      }
      live_[index_of(id)] = *block;
      if (snapshot_ != nullptr) snapshot_->taken(allocator_.address(*block), buffer.bytes, stream);
      events_.push_back({id, allocator_.bytes(*block)});
      if (const Bytes now = allocator_.statistics().allocated.current; now > highest_) {
        highest_ = now;
        highest_op_ = &op;
        highest_event_ = events_.size();
      }
    }
    for (BufferId id : op.release) {
      BlockId& block = live_[index_of(id)];
      if (block == BlockId{}) continue;
      if (snapshot_ != nullptr) {
        snapshot_->begin_buffer(plan_.buffer(id).category);
        snapshot_->given_back(allocator_.address(block), allocator_.bytes(block),
                              streams_.empty() ? 0 : streams_[index_of(id)]);
      }
      if (Result<void> ok = allocator_.free(block); !ok) return ok;
      block = {};
      events_.push_back({id, Bytes{0}});
    }
    return {};
  }

  static std::size_t index_of(BufferId id) { return static_cast<std::size_t>(id.value); }

  /// The events that took what was live at the highest moment, in order.
  [[nodiscard]] std::vector<std::size_t> live_at_highest() const {
    std::vector<bool> gone(plan_.buffers.size(), false);
    std::vector<std::size_t> order;
    for (std::size_t e = highest_event_; e-- > 0;) {
      const std::size_t buffer = index_of(events_[e].buffer);
      if (events_[e].taken == Bytes{0})
        gone[buffer] = true;
      else if (!gone[buffer])
        order.push_back(e);
      else
        gone[buffer] = false;
    }
    std::reverse(order.begin(), order.end());
    return order;
  }

  void note(const Mark& mark) {
    const AllocatorStatistics& s = allocator_.statistics();
    Moment moment{.name = mark.name,
                  .max_allocated = s.allocated.peak,
                  .max_reserved = s.reserved.peak,
                  .allocated = s.allocated.current,
                  .reserved = s.reserved.current,
                  .op = std::string(highest_op_ == nullptr ? "" : highest_op_->name),
                  .blocks = {}};
    for (const std::size_t e : live_at_highest()) {
      const plan::Buffer& buffer = plan_.buffer(events_[e].buffer);
      moment.blocks.push_back({std::string(buffer.name), buffer.category, buffer.bytes, events_[e].taken});
    }
    result_.moments.push_back(std::move(moment));
    if (!mark.starts_again) return;
    allocator_.reset_peak();
    highest_ = s.allocated.current;
    highest_event_ = events_.size();
  }

  const plan::Plan& plan_;
  CachingAllocator allocator_;
  std::span<const std::uint8_t> streams_;  ///< by buffer
  SnapshotWriter* snapshot_;
  std::vector<BlockId> live_;  ///< by buffer
  std::vector<Event> events_;
  Bytes highest_{0};
  const plan::Op* highest_op_ = nullptr;
  std::size_t highest_event_ = 0;
  Replay result_;
};

}  // namespace

Result<Replay> replay(const plan::Plan& plan, const std::vector<Mark>& marks, const CachingAllocatorOptions& options,
                      std::optional<Bytes> capacity) {
  SimulatedDevice device(capacity);
  return replay(plan, marks, options, device);
}

Result<Replay> replay(const plan::Plan& plan, const std::vector<Mark>& marks, const CachingAllocatorOptions& options,
                      SegmentSource& device, std::span<const std::uint8_t> streams, SnapshotWriter* snapshot) {
  if (snapshot == nullptr) return Replayer(plan, options, device, streams, nullptr).run(marks);
  WatchedDevice watched(device, *snapshot);
  return Replayer(plan, options, watched, streams, snapshot).run(marks);
}

}  // namespace shard::like
