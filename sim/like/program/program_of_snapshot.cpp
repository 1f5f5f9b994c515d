// Events to steps: an alloc takes, a free gives back, a free that waits for another stream lets go first.
#include "sim/like/program/program_of_snapshot.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>

#include "traces/base/numbers.h"
#include "traces/base/printable.h"
#include "traces/sites.h"

namespace shard::like {
namespace {

bool gives_segments_back(SnapshotAction action) {
  return action == SnapshotAction::segment_free || action == SnapshotAction::segment_unmap;
}

bool takes_segments(SnapshotAction action) {
  return action == SnapshotAction::segment_alloc || action == SnapshotAction::segment_map;
}

/// What the trace's memory events say of an alloc.
struct Taken {
  Category category = Category::not_known;
  Phase phase = Phase::steady_step;
};

/// By event, of which every alloc has a memory event, in order.
std::vector<Taken> taken(const Snapshot& snapshot, const Trace& names) {
  std::vector<Taken> of(snapshot.events.size());
  std::size_t row = snapshot.at_start.blocks.size();
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (snapshot.events[i].action != SnapshotAction::alloc) continue;
    while (row < names.memory.size() && names.memory.delta_bytes[row] < 0) ++row;
    if (row == names.memory.size() || names.memory.stack[row] != snapshot.events[i].stack) break;
    of[i] = {names.memory.category[row], names.memory.phase[row]};
    ++row;
  }
  return of;
}

/// What PYTORCH_CUDA_ALLOC_CONF was, or would have to be.
std::string settings_of(const Snapshot& snapshot) {
  const auto all = snapshot.others.find("allocator_settings");
  if (all == snapshot.others.end() || !all->is_object()) return {};
  for (const char* const variable : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"})
    if (const auto text = all->find(variable); text != all->end() && text->is_string() && !text->empty())
      if (std::string said = text->get<std::string>(); !said.empty()) return said;
  const auto expandable = all->find("expandable_segments");
  return expandable != all->end() && expandable->is_boolean() && expandable->get<bool>() ? "expandable_segments:True"
                                                                                         : "";
}

class SnapshotConversion {
 public:
  SnapshotConversion(const Snapshot& snapshot, const Trace& names, std::optional<Bytes> capacity)
      : snapshot_(snapshot),
        names_(names),
        capacity_(capacity),
        device_(busiest_device(snapshot)),
        sites_(sites(names)),
        taken_(taken(snapshot, names)) {}

  SnapshotProgram run() {
    Program& program = result_.program;
    program.origin.allocator = settings_of(snapshot_);
    const std::vector<Phase>& phases = names_.memory.phase;
    if (std::ranges::adjacent_find(phases, std::ranges::not_equal_to()) != phases.end()) {
      parts_known_ = true;
      phase_ = phases.front();
    }
    program.begin_phase(phase_);
    begin();
    for (at_ = 0; at_ < snapshot_.events.size(); ++at_) {
      const SnapshotEvent& event = snapshot_.events[at_];
      if (event.device == device_)
        add(event);
      else
        result_.other_devices = true;
    }
    program.mark({.name = keep("end of the recording"), .starts_again = false});
    return std::move(result_);
  }

 private:
  [[nodiscard]] plan::Name keep(std::string_view text) { return result_.program.pool->text({text}); }

  void begin() {
    for (const SnapshotSegment& segment : snapshot_.at_start.segments)
      if (segment.device == device_) reserved_ += Bytes{segment.bytes};
    for (const Snapshot::Start::Live& block : snapshot_.at_start.blocks) {
      if (block.device != device_) continue;
      ++result_.there_before;
      take(block.address, block.requested_bytes > 0 ? block.requested_bytes : block.bytes, block.stack, 0,
           Category::not_known);
    }
  }

  void add(const SnapshotEvent& event) {
    switch (event.action) {
      case SnapshotAction::alloc:
        if (const Phase phase = taken_[at_].phase; parts_known_ && phase != phase_)
          result_.program.begin_phase(phase_ = phase);
        return take(event.address, event.bytes, event.stack, event.stream, taken_[at_].category);
      case SnapshotAction::free_requested: return let_go(event.address);
      case SnapshotAction::free_completed: return give_back(event.address);
      case SnapshotAction::segment_alloc:
      case SnapshotAction::segment_map: reserved_ += Bytes{event.bytes}; return;
      case SnapshotAction::segment_free:
      case SnapshotAction::segment_unmap: return segments_given_back();
      case SnapshotAction::oom:
      case SnapshotAction::snapshot:
      case SnapshotAction::user_defined: return;
    }
  }

  void take(std::uint64_t address, std::int64_t bytes, StackId stack, std::uint64_t stream, Category category) {
    begin_operator(stack);
    const auto number = streams_.try_emplace(stream, static_cast<ProgramStream>(streams_.size())).first->second;
    live_[address] = result_.program.take({.bytes = Bytes{bytes}, .category = category, .stream = number});
  }

  /// The line that asks; told once, as long as it goes on asking.
  void begin_operator(StackId stack) {
    const FrameId site = stack.valid() ? sites_[static_cast<std::size_t>(stack.value)] : FrameId{};
    if (asking_ == site && !result_.program.operators.empty()) return;
    asking_ = site;
    const auto [known, fresh] = operators_.try_emplace(site.value, plan::Name{});
    if (fresh) {
      const std::string text = site_text(names_, site);
      known->second = keep(text.empty() ? "not known" : text);
    }
    result_.program.begin({.module = {}, .name = known->second});
  }

  /// Without anything between, it is given back at once.
  void let_go(std::uint64_t address) {
    const auto at = live_.find(address);
    if (at == live_.end()) return;
    for (std::size_t next = at_ + 1; next < snapshot_.events.size(); ++next) {
      const SnapshotEvent& event = snapshot_.events[next];
      if (event.device != device_) continue;
      if (event.action == SnapshotAction::free_completed && event.address == address) return;
      break;
    }
    result_.program.let_go(at->second);
  }

  void give_back(std::uint64_t address) {
    const auto at = live_.find(address);
    if (at == live_.end()) return;
    result_.program.give_back(at->second);
    live_.erase(at);
  }

  /// From here to the last of them, which is where the run goes on.
  void segments_given_back() {
    const Bytes before = reserved_;
    std::size_t next = at_;
    for (; next < snapshot_.events.size(); ++next) {
      const SnapshotEvent& event = snapshot_.events[next];
      if (event.device != device_) continue;
      if (!gives_segments_back(event.action)) break;
      reserved_ -= Bytes{event.bytes};
      at_ = next;
    }
    const bool asks_again = next < snapshot_.events.size() && takes_segments(snapshot_.events[next].action) &&
                            capacity_ && before + Bytes{snapshot_.events[next].bytes} > *capacity_;
    const bool in_vain = next < snapshot_.events.size() && snapshot_.events[next].action == SnapshotAction::oom;
    if (!asks_again && !in_vain) result_.program.empty_cache();
  }

  const Snapshot& snapshot_;
  const Trace& names_;
  std::optional<Bytes> capacity_;
  std::int32_t device_;
  std::vector<FrameId> sites_;
  std::vector<Taken> taken_;
  bool parts_known_ = false;  ///< events are of several phases
  Phase phase_ = Phase::first_step;
  std::size_t at_ = 0;
  Bytes reserved_{0};
  FrameId asking_{};
  std::map<std::int32_t, plan::Name> operators_;  ///< by site
  std::map<std::uint64_t, ProgramStream> streams_{{0, 0}};
  std::unordered_map<std::uint64_t, BufferId> live_;  ///< by address
  SnapshotProgram result_;
};

}  // namespace

SnapshotProgram program_of_snapshot(const Snapshot& snapshot, const Trace& names, std::optional<Bytes> capacity) {
  return SnapshotConversion(snapshot, names, capacity).run();
}

std::vector<std::string> notes(const SnapshotProgram& made, std::string_view label) {
  std::vector<std::string> lines;
  const std::string of = printable_line(label) + ": ";
  if (made.there_before > 0)
    lines.push_back(of + with_commas(made.there_before) +
                    " blocks were there before the recording began; they are taken first, so that figures may differ");
  if (made.other_devices) lines.push_back(of + "only the device with the most events is in the program");
  return lines;
}

}  // namespace shard::like
