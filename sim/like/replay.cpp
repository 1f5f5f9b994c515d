// Takes are allocations, give-backs are frees; moments are read off at the marks.
#include "sim/like/replay.h"

#include <algorithm>
#include <cassert>

#include "sim/like/pytorch/linux_device.h"
#include "sim/like/watched_device.h"

namespace shard::like {
namespace {

class Replayer {
 public:
  Replayer(const Program& program, const CachingAllocatorOptions& options, SegmentSource& device,
           SnapshotWriter* snapshot)
      : program_(program),
        allocator_(device, options),
        snapshot_(snapshot),
        live_(program.allocations.size()),
        taken_(program.allocations.size()) {}

  Result<MemoryAnswer> run() {
    for (at_ = 0; at_ < program_.steps.size(); ++at_)
      if (Result<void> ok = play(program_.steps[at_]); !ok) return ok.error();
    if (program_.marks.empty()) note({.name = "end"});
    const AllocatorStatistics& s = allocator_.statistics();
    AllocatorStatistics& whole = answer_.statistics;
    whole = s;
    for (const PhasePeaks& phase : answer_.phases) {
      whole.allocated.peak = std::max(whole.allocated.peak, phase.allocated);
      whole.active.peak = std::max(whole.active.peak, phase.active);
      whole.reserved.peak = std::max(whole.reserved.peak, phase.reserved);
    }
    if (snapshot_ != nullptr) snapshot_->finish(allocator_.snapshot());
    return std::move(answer_);
  }

 private:
  Result<void> play(const Step& step) {
    const auto index = static_cast<std::size_t>(step.at);
    switch (step.kind) {
      case StepKind::phase: begin_phase(static_cast<Phase>(step.at)); break;
      case StepKind::begin:
        operator_ = &program_.operators[index];
        if (snapshot_ != nullptr) snapshot_->begin_operator(phase_, *operator_);
        break;
      case StepKind::take: return take(index);
      case StepKind::give_back: return give_back(index);
      case StepKind::let_go: return let_go(index);
      case StepKind::collective: count(program_.collectives[index]); break;
      case StepKind::mark: note(program_.marks[index]); break;
      case StepKind::empty_cache: allocator_.empty_cache(); break;
      case StepKind::work:
      case StepKind::copy:
      case StepKind::wait: break;
    }
    return {};
  }

  void begin_phase(Phase phase) {
    phase_ = phase;
    answer_.phases.push_back({.phase = phase});
    note_peaks();
  }

  Result<void> take(std::size_t index) {
    const Allocation& a = program_.allocations[index];
    if (a.memory != Memory::device) return take_of_host(a, a.bytes), Result<void>{};
    if (snapshot_ != nullptr) snapshot_->begin_buffer(a.category);
    Result<BlockId> block = allocator_.allocate(a.bytes, stream_of(a));
    if (!block) {
      Error error = block.error();
      error.where = program_.text_of(program_.operators[static_cast<std::size_t>(a.by)]) + ", " + program_.name_of(a);
      return error;
    }
    live_[index] = *block;
    taken_[index] = allocator_.bytes(*block);
    if (snapshot_ != nullptr) snapshot_->taken(allocator_.address(*block), a.bytes, stream_of(a));
    note_peaks();
    if (const Bytes now = allocator_.statistics().allocated.current; now > highest_) {
      highest_ = now;
      highest_operator_ = operator_;
      highest_step_ = at_ + 1;
    }
    return {};
  }

  Result<void> let_go(std::size_t index) {
    const BlockId block = live_[index];
    if (block == BlockId{}) return {};
    if (snapshot_ != nullptr) {
      snapshot_->begin_buffer(program_.allocations[index].category);
      snapshot_->let_go(allocator_.address(block), allocator_.bytes(block), stream_of(program_.allocations[index]));
    }
    return allocator_.request_free(block);
  }

  Result<void> give_back(std::size_t index) {
    const Allocation& a = program_.allocations[index];
    if (a.memory != Memory::device) return take_of_host(a, Bytes{-a.bytes.count()}), Result<void>{};
    BlockId& block = live_[index];
    if (snapshot_ != nullptr) {
      snapshot_->begin_buffer(a.category);
      snapshot_->given_back(allocator_.address(block), allocator_.bytes(block), stream_of(a));
    }
    if (Result<void> ok = allocator_.free(block); !ok) return ok;
    block = {};
    return {};
  }

  void take_of_host(const Allocation& a, Bytes more) {
    Bytes& now = a.memory == Memory::pinned ? pinned_ : host_;
    Bytes& peak = a.memory == Memory::pinned ? answer_.pinned_peak : answer_.host_peak;
    if (a.memory == Memory::disk) return;
    now += more;
    peak = std::max(peak, now);
    answer_.host_together = std::max(answer_.host_together, host_ + pinned_);
  }

  static AllocatorStream stream_of(const Allocation& a) { return a.stream; }

  void count(const CollectiveCall& call) {
    auto it = std::find_if(answer_.collectives.begin(), answer_.collectives.end(),
                           [&](const CollectiveSum& s) { return s.phase == phase_ && s.kind == call.kind; });
    if (it == answer_.collectives.end())
      it = answer_.collectives.insert(answer_.collectives.end(), {.phase = phase_, .kind = call.kind});
    ++it->count;
    it->bytes += call.bytes;
  }

  /// Of the phase; and what lies idle where the program reserves more than before.
  void note_peaks() {
    const AllocatorStatistics& s = allocator_.statistics();
    if (s.reserved.current > reserved_peak_) {
      reserved_peak_ = s.reserved.current;
      answer_.inactive = s.reserved.current - s.active.current;
      answer_.largest_gap = allocator_.largest_free();
    }
    if (answer_.phases.empty()) answer_.phases.push_back({.phase = phase_});
    PhasePeaks& phase = answer_.phases.back();
    phase.allocated = std::max(phase.allocated, s.allocated.current);
    phase.active = std::max(phase.active, s.active.current);
    phase.reserved = std::max(phase.reserved, s.reserved.current);
  }

  /// What was taken and not given back up to the highest moment, in the order taken.
  [[nodiscard]] std::vector<std::size_t> live_at_highest() const {
    std::vector<bool> gone(program_.allocations.size(), false);
    std::vector<std::size_t> order;
    for (std::size_t s = highest_step_; s-- > 0;) {
      const Step& step = program_.steps[s];
      const auto index = static_cast<std::size_t>(step.at);
      if (step.kind == StepKind::give_back || step.kind == StepKind::let_go)
        gone[index] = true;
      else if (step.kind == StepKind::take && !gone[index] && program_.allocations[index].memory == Memory::device)
        order.push_back(index);
    }
    std::reverse(order.begin(), order.end());
    return order;
  }

  void note(const ProgramMark& mark) {
    const AllocatorStatistics& s = allocator_.statistics();
    Moment moment{.name = std::string(mark.name),
                  .max_allocated = s.allocated.peak,
                  .max_reserved = s.reserved.peak,
                  .allocated = s.allocated.current,
                  .reserved = s.reserved.current,
                  .op = highest_operator_ == nullptr ? "" : program_.text_of(*highest_operator_),
                  .blocks = {}};
    for (const std::size_t index : live_at_highest()) {
      const Allocation& a = program_.allocations[index];
      moment.blocks.push_back({program_.name_of(a), a.category, a.bytes, taken_[index]});
    }
    answer_.moments.push_back(std::move(moment));
    if (!mark.starts_again) return;
    allocator_.reset_peak();
    highest_ = s.allocated.current;
    highest_step_ = at_;
  }

  const Program& program_;
  CachingAllocator allocator_;
  SnapshotWriter* snapshot_;
  std::size_t at_ = 0;         ///< of the step that is played
  std::vector<BlockId> live_;  ///< by allocation
  std::vector<Bytes> taken_;   ///< by allocation: its block's size
  Phase phase_{};
  const Operator* operator_ = nullptr;
  Bytes host_{0}, pinned_{0};
  Bytes reserved_peak_{0};
  Bytes highest_{0};
  const Operator* highest_operator_ = nullptr;
  std::size_t highest_step_ = 0;  ///< steps up to it
  MemoryAnswer answer_;
};

Result<MemoryAnswer> replay_on(SegmentSource& device, const Program& program, const CachingAllocatorOptions& options,
                               bool with_snapshot) {
  if (!with_snapshot) return Replayer(program, options, device, nullptr).run();
  SnapshotWriter snapshot("PyTorch " + program.origin.framework);
  WatchedDevice watched(device, snapshot);
  Result<MemoryAnswer> answer = Replayer(program, options, watched, &snapshot).run();
  if (answer) answer->snapshot = std::make_shared<PredictedSnapshot>(snapshot.take());
  return answer;
}

/// Of expandable segments: room for the largest take, which on a device without a limit may be more than the options
/// say.
Bytes space_for(const Program& program, const CachingAllocatorOptions& options) {
  Bytes largest{0};
  for (const Allocation& a : program.allocations)
    if (a.memory == Memory::device) largest = std::max(largest, a.bytes);
  SimulatedDevice none;
  return std::max(options.expandable_space, CachingAllocator(none, options).rounded(largest));
}

/// Without a capacity within kMost, which has addresses.
Result<MemoryAnswer> replay_within(std::optional<Bytes> capacity, const Program& program,
                                   const ReplayOptions& options) {
  constexpr Bytes kMost{std::int64_t{1} << 45};
  CachingAllocatorOptions allocator = options.allocator;
  if (!capacity) {
    allocator.allowed.reset();
    allocator.expandable_space = space_for(program, allocator);
  }
  const Bytes most = std::min(capacity.value_or(kMost), kMost);
  if (program.origin.addresses_upwards) {
    SimulatedDevice device(most);
    return replay_on(device, program, allocator, options.snapshot);
  }
  LinuxDevice device(most);
  return replay_on(device, program, allocator, options.snapshot);
}

}  // namespace

Result<MemoryAnswer> replay(const Program& program, const ReplayOptions& options) {
  Result<MemoryAnswer> answer = replay_within(options.device_capacity, program, options);
  const bool fits = answer.has_value() || answer.error().code != Errc::does_not_fit;
  if (!fits) answer = replay_within(std::nullopt, program, options);
  if (!answer) return answer;
  answer->rank = program.origin.rank;
  answer->fits = fits;
  answer->device_capacity = options.device_capacity;
  answer->optimizer_state = program.sum_of(Category::optimizer_state);
  return answer;
}

}  // namespace shard::like
