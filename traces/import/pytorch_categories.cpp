// Frames give every stack a phase of training; the order of events tells what outlived the phase that it was made in.
#include "traces/import/pytorch_categories.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/import/pytorch_deeds.h"
#include "traces/import/pytorch_kept.h"
#include "traces/snapshot.h"

namespace shard::import {
namespace {

using std::string_view;

/// The blocks of one rank's memory, followed through its events.
class Blocks {
 public:
  explicit Blocks(MemoryTable& memory) : memory_(memory) {}

  void acquired(std::size_t event, Deed deed) {
    enter(deed);
    const Doing doing = deed.doing;
    if (deed.begins_backward) given_back_.clear();
    if (deed.under_backward) given_back_within();
    live_[memory_.buffer[event].value] = {event, doing, backwards_, passes_};
    switch (doing) {
      case Doing::setup: return is(event, Category::parameter);
      case Doing::gathering: return is(event, Category::gathered);
      case Doing::forward: return is(event, Category::activation);
      case Doing::accumulating: return is(event, Category::gradient);
      case Doing::calling: return is(event, Category::workspace);
      case Doing::backward:
      case Doing::stepping: made_here_.push_back(event); return;
      case Doing::own_step: own_made_.push_back(event); return;
      case Doing::other:
      case Doing::unknown: return;
    }
  }

  void released(std::size_t event, Deed deed) {
    const auto at = live_.find(memory_.buffer[event].value);
    if (at == live_.end()) return enter(deed);
    const std::size_t made = at->second.event;
    // Where stacks of allocations alone are recorded (context="alloc"), a free says who allocated.
    if (memory_.stack[event] != memory_.stack[made]) enter(deed);
    if (at->second.doing == Doing::other && phase_ == Doing::backward) is(made, Category::activation);
    // What is made and given back in one backward or one step lives within that pass alone.
    if (memory_.stack[event] != memory_.stack[made] && deed.doing != Doing::unknown && of_pass(at->second))
      is(made, Category::workspace);
    if (memory_.stack[event] == memory_.stack[made] && at->second.doing == Doing::backward && of_pass(at->second))
      given_back_.emplace_back(made, event);
    if (deed.sets_data && deed.doing == Doing::own_step) replaced(made);
    settle(at->second);
    memory_.category[event] = memory_.category[made];
    live_.erase(at);
  }

  void end() {
    for (const auto& [buffer, block] : live_) settle(block);
  }

 private:
  struct Block {
    std::size_t event = 0;
    Doing doing = Doing::unknown;
    int backwards = 0;  // that had begun when it was made
    int passes = 0;     // the same of phases
  };
  /// A forward's blocks that outlived so many backwards were not made for these: caches, workspaces of libraries.
  static constexpr int kBackwards = 2;

  void is(std::size_t event, Category category) { memory_.category[event] = category; }

  [[nodiscard]] bool of_pass(const Block& block) const {
    return block.passes == passes_ && (block.doing == Doing::backward || block.doing == Doing::stepping) &&
           memory_.category[block.event] == Category::not_known;
  }

  /// Where a free says who allocated, only what the same backward makes afterwards tells that it went on: after its
  /// end, gradients are given back in the same way.
  void given_back_within() {
    for (const auto& [made, gone] : given_back_) {
      is(made, Category::workspace);
      is(gone, Category::workspace);
    }
    given_back_.clear();
  }

  [[nodiscard]] bool is_live(std::size_t made) const {
    const auto at = live_.find(memory_.buffer[made].value);
    return at != live_.end() && at->second.event == made;
  }

  /// What was asked for, where that is known: equal tensors take unequal blocks.
  [[nodiscard]] std::int64_t size_of(std::size_t made) const {
    const std::int64_t requested = memory_.requested_bytes[made];
    return requested > 0 ? requested : memory_.delta_bytes[made];
  }

  /// An own optimizer wrote `parameter.data = updated`, which gave `old` back: the latest of its size is the new one.
  void replaced(std::size_t old) {
    const std::int64_t bytes = size_of(old);
    const auto updated = std::ranges::find_if(own_made_.rbegin(), own_made_.rend(), [&](std::size_t made) {
      return made != old && size_of(made) == bytes && is_live(made);
    });
    if (updated == own_made_.rend()) return;
    if (memory_.category[old] == Category::not_known) is(old, Category::parameter);
    is(*updated, Category::parameter);
    replaced_bytes_.insert(bytes);
  }

  /// What an own optimizer made besides parameters of the same size, and keeps, is its state. One that was not seen to
  /// replace parameters may have made these as well.
  void settle_own_step() {
    for (const std::size_t made : own_made_) {
      if (is_live(made) && memory_.category[made] == Category::not_known && replaced_bytes_.contains(size_of(made)))
        is(made, Category::optimizer_state);
    }
    own_made_.clear();
    replaced_bytes_.clear();
  }

  void settle(const Block& block) {
    if (block.doing == Doing::forward && backwards_ - block.backwards > kBackwards)
      is(block.event, Category::not_known);
  }

  /// Where another phase begins, what was made in the one before and is still there has outlived it.
  void enter(Deed deed) {
    Doing doing = deed.doing;
    if (doing == Doing::accumulating || deed.under_backward) doing = Doing::backward;
    if (doing == Doing::own_step) doing = Doing::stepping;
    if (doing == Doing::unknown || doing == Doing::calling || doing == phase_) return;
    const Category outlived = phase_ == Doing::backward ? Category::gradient : Category::optimizer_state;
    for (const std::size_t made : made_here_)
      if (is_live(made)) is(made, outlived);
    made_here_.clear();
    given_back_.clear();
    settle_own_step();
    if (doing == Doing::backward) ++backwards_;
    phase_ = doing;
    ++passes_;
  }

  MemoryTable& memory_;
  std::unordered_map<std::int32_t, Block> live_;                 // by buffer
  std::vector<std::size_t> made_here_;                           // in this backward, in this step
  std::vector<std::pair<std::size_t, std::size_t>> given_back_;  // in this backward: made and gone, by whom not known
  std::vector<std::size_t> own_made_;                            // in this step of an own optimizer
  std::set<std::int64_t> replaced_bytes_;                        // of parameters, in the same step
  Doing phase_ = Doing::unknown;
  int backwards_ = 0;
  int passes_ = 0;
};

/// By stack: what one of its frames calls a category.
[[nodiscard]] std::vector<std::optional<Category>> said_categories(const Trace& trace) {
  std::vector<std::optional<Category>> of(trace.stacks.size());
  for (std::size_t i = 0; i < of.size(); ++i) {
    const StackNode& node = trace.stacks[i];
    if (node.caller.valid()) of[i] = of[static_cast<std::size_t>(node.caller.value)];
    if (!node.frame.valid()) continue;
    const StackFrame& frame = trace.frame_of(node.frame);
    if (trace.name_of(frame.file) != kCategoryFile) continue;
    for (int c = 0; c < kCategoryCount; ++c)
      if (trace.name_of(frame.function) == to_string(static_cast<Category>(c))) of[i] = static_cast<Category>(c);
  }
  return of;
}

/// Nothing is left to find out in a snapshot whose stacks say categories. Returns whether this is one.
bool take_said_categories(Trace& trace) {
  const std::vector<std::optional<Category>> said = said_categories(trace);
  bool any = false;
  for (std::size_t i = 0; i < trace.memory.size(); ++i) {
    const StackId stack = trace.memory.stack[i];
    if (!stack.valid() || !said[static_cast<std::size_t>(stack.value)]) continue;
    trace.memory.category[i] = *said[static_cast<std::size_t>(stack.value)];
    any = true;
  }
  return any;
}

}  // namespace

void recognise_categories(Trace& trace, std::size_t recorded_from) {
  if (trace.stacks.empty() || take_said_categories(trace)) return;
  const bool python_alone = std::ranges::all_of(
      trace.frames, [&](const StackFrame& frame) { return trace.name_of(frame.file).ends_with(".py"); });
  const std::vector<Deed> of = deeds(trace);
  std::map<std::pair<Rank, Memory>, Blocks> memories;
  MemoryTable& memory = trace.memory;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (memory.category[i] != Category::not_known) continue;
    Blocks& blocks = memories.try_emplace({memory.rank[i], memory.memory[i]}, memory).first->second;
    const StackId stack = memory.stack[i];
    const Deed without_frames{.doing = python_alone && i >= recorded_from ? Doing::backward : Doing::unknown};
    const Deed deed = stack.valid() ? of[static_cast<std::size_t>(stack.value)] : without_frames;
    memory.delta_bytes[i] < 0 ? blocks.released(i, deed) : blocks.acquired(i, deed);
  }
  for (auto& [of_rank, blocks] : memories) blocks.end();
  tell_kept(trace, of, recorded_from);
}

}  // namespace shard::import
