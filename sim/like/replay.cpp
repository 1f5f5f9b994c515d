// Acquire is allocate, release is free; moments are read off at the marks.
#include "sim/like/replay.h"

#include <algorithm>
#include <cassert>
#include <map>

namespace shard::like {
namespace {

class Replayer {
 public:
  Replayer(const plan::Plan& plan, const CachingAllocatorOptions& options, std::optional<Bytes> capacity)
      : plan_(plan), device_(capacity), allocator_(device_, options) {}

  Result<Replay> run(const std::vector<Mark>& marks) {
    auto mark = marks.begin();
    for (const plan::PhaseOps& phase : plan_.phases) {
      for (std::size_t done = 0;; ++done) {
        for (; mark != marks.end() && mark->phase == phase.phase && mark->ops == done; ++mark) note(mark->name);
        if (done == phase.ops.size()) break;
        if (Result<void> ok = play(phase.ops[done]); !ok) return ok.error();
      }
    }
    assert(mark == marks.end() && "marks are in plan order");
    result_.statistics = allocator_.statistics();
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
      Result<BlockId> block = allocator_.allocate(buffer.bytes);
      if (!block) {
        Error error = block.error();
        error.where = std::string(op.name) + ", " + std::string(buffer.name);
        return error;
      }
      live_[id.value] = *block;
      events_.push_back({id, allocator_.bytes(*block)});
      if (const Bytes now = allocator_.statistics().allocated.current; now > highest_) {
        highest_ = now;
        highest_op_ = &op;
        highest_event_ = events_.size();
      }
    }
    for (BufferId id : op.release) {
      const auto it = live_.find(id.value);
      if (it == live_.end()) continue;
      if (Result<void> ok = allocator_.free(it->second); !ok) return ok;
      live_.erase(it);
      events_.push_back({id, Bytes{0}});
    }
    return {};
  }

  void note(const std::string& name) {
    const AllocatorStatistics& s = allocator_.statistics();
    Moment moment{.name = name,
                  .max_allocated = s.allocated.peak,
                  .max_reserved = s.reserved.peak,
                  .allocated = s.allocated.current,
                  .op = std::string(highest_op_ == nullptr ? "" : highest_op_->name),
                  .blocks = {}};
    std::map<std::int32_t, std::size_t> begun;  // the event that took each live buffer
    for (std::size_t e = 0; e < highest_event_; ++e) {
      if (events_[e].taken == Bytes{0})
        begun.erase(events_[e].buffer.value);
      else
        begun[events_[e].buffer.value] = e;
    }
    std::vector<std::size_t> order;
    for (const auto& [buffer, event] : begun) order.push_back(event);
    std::sort(order.begin(), order.end());
    for (std::size_t e : order) {
      const plan::Buffer& buffer = plan_.buffer(events_[e].buffer);
      moment.blocks.push_back({std::string(buffer.name), buffer.category, buffer.bytes, events_[e].taken});
    }
    result_.moments.push_back(std::move(moment));
  }

  const plan::Plan& plan_;
  SimulatedDevice device_;
  CachingAllocator allocator_;
  std::map<std::int32_t, BlockId> live_;
  std::vector<Event> events_;
  Bytes highest_{0};
  const plan::Op* highest_op_ = nullptr;
  std::size_t highest_event_ = 0;
  Replay result_;
};

}  // namespace

Result<Replay> replay(const plan::Plan& plan, const std::vector<Mark>& marks, const CachingAllocatorOptions& options,
                      std::optional<Bytes> capacity) {
  return Replayer(plan, options, capacity).run(marks);
}

}  // namespace shard::like
