// Lives of one rank's blocks are laid out first; each rule then reads all of them, and speaks only where counts agree.
#include "traces/import/pytorch_kept.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace shard::import {
namespace {

/// Smaller blocks are of too many things to tell from their size what they are.
constexpr std::int64_t kTelling = 1 << 20;
/// Of Adam's, of each parameter's size: the parameter and its two averages.
constexpr std::size_t kOfAdam = 3;
/// What PyTorch gives cuBLAS unless told otherwise, but on Hopper (aten/src/ATen/cuda/CublasHandlePool.cpp:
/// ":4096:2:16:8"), and how many there are as a rule: of the main thread's handle, and of autograd's.
constexpr std::int64_t kCublasWorkspace = 2 * 4096 * 1024 + 8 * 16 * 1024;
constexpr std::size_t kHandles = 2;

constexpr std::size_t kNever = static_cast<std::size_t>(-1);

struct Life {
  std::size_t made = 0, gone = kNever;  ///< events
  Deed deed;
  StackId stack{};
  bool at_start = false;     ///< there before the recording, and who made it is not known
  std::int64_t bytes = 0;    ///< that it takes
  std::int64_t telling = 0;  ///< that were asked for, where that is known
};

using Lives = std::vector<Life*>;
using BySize = std::map<std::int64_t, Lives>;

/// How many of `lives` there were at once, at the most.
std::size_t most_at_once(const Lives& lives) {
  std::vector<std::pair<std::size_t, bool>> ends;
  for (const Life* life : lives) {
    ends.emplace_back(life->made, true);
    if (life->gone != kNever) ends.emplace_back(life->gone, false);
  }
  std::ranges::sort(ends);
  std::size_t now = 0, most = 0;
  for (const auto& [event, made] : ends) most = std::max(most, made ? ++now : --now);
  return most;
}

/// The blocks of one rank's memory.
class Kept {
 public:
  explicit Kept(MemoryTable& memory) : memory_(memory) {}

  void acquired(std::size_t event, Deed deed, bool recorded) {
    doings_.insert(deed.doing);
    adam_ |= deed.adam_step;
    const std::int64_t bytes = memory_.delta_bytes[event], requested = memory_.requested_bytes[event];
    const StackId stack = memory_.stack[event];
    at_[memory_.buffer[event].value] = lives_.size();
    lives_.push_back({.made = event,
                      .deed = deed,
                      .stack = stack,
                      .at_start = !recorded && !stack.valid(),
                      .bytes = bytes,
                      .telling = requested > 0 ? requested : bytes});
  }

  void released(std::size_t event, Deed deed) {
    doings_.insert(deed.doing);
    adam_ |= deed.adam_step;
    const auto at = at_.find(memory_.buffer[event].value);
    if (at == at_.end()) return;
    lives_[at->second].gone = event;
    at_.erase(at);
  }

  void settle() {
    workspaces();
    three_for_each_gradient();
    parameters_of_adams_state();
    parameters_of_forwards_alone();
    inputs();
  }

 private:
  [[nodiscard]] Category category(const Life& life) const { return memory_.category[life.made]; }
  void is(const Life& life, Category category) {
    memory_.category[life.made] = category;
    if (life.gone != kNever) memory_.category[life.gone] = category;
  }

  /// By the bytes that blocks take: those of which `wanted` is true.
  template <typename Wanted>
  BySize by_bytes(const Wanted& wanted) {
    BySize result;
    for (Life& life : lives_)
      if (wanted(life)) result[life.bytes].push_back(&life);
    return result;
  }
  /// That were there before the recording, stay, and are not known.
  BySize stayed() {
    return by_bytes([this](const Life& life) {
      return life.at_start && life.gone == kNever && category(life) == Category::not_known;
    });
  }
  std::map<std::int64_t, std::size_t> most_gradients() {
    std::map<std::int64_t, std::size_t> most;
    for (const auto& [bytes, lives] :
         by_bytes([this](const Life& life) { return category(life) == Category::gradient; }))
      most[bytes] = most_at_once(lives);
    return most;
  }

  void workspaces() {
    std::set<std::int64_t> sizes{kCublasWorkspace};
    for (const Life& life : lives_)
      if (life.deed.doing == Doing::calling) sizes.insert(life.bytes);
    const std::map<std::int64_t, std::size_t> gradients = most_gradients();
    for (const auto& [bytes, blocks] : stayed()) {
      if (!sizes.contains(bytes) || bytes < kTelling || blocks.size() > kHandles || gradients.contains(bytes)) continue;
      for (const Life* life : blocks) is(*life, Category::workspace);
    }
  }

  /// Which of equal blocks is the parameter is what no figure depends on.
  void three_for_each_gradient() {
    if (!adam_) return;
    BySize there = stayed();
    const std::map<std::int64_t, std::size_t> gradients = most_gradients();
    for (const auto& [bytes, count] : gradients)
      if (bytes >= kTelling && there[bytes].size() != kOfAdam * count) return;
    for (const auto& [bytes, count] : gradients) {
      const Lives& blocks = there[bytes];
      if (blocks.size() != kOfAdam * count) continue;
      for (std::size_t i = 0; i < blocks.size(); ++i)
        is(*blocks[i], i < count ? Category::parameter : Category::optimizer_state);
    }
  }

  /// Adam makes two blocks for each parameter, of its size and type.
  void parameters_of_adams_state() {
    BySize states;
    for (Life& life : lives_)
      if (life.deed.adam_state && life.telling >= kTelling && category(life) == Category::optimizer_state)
        states[life.telling].push_back(&life);
    for (const auto& [bytes, state] : states) {
      const std::size_t first = state.front()->made, last = state.back()->made;
      std::size_t pairs = most_at_once(state);
      if (pairs % 2 != 0 || pairs != state.size()) continue;
      pairs /= 2;
      Lives candidates;
      std::size_t known = 0;
      for (Life& life : lives_) {
        if (life.telling != bytes || life.made > first || life.gone < last) continue;
        if (category(life) == Category::parameter) ++known;
        const bool of_nobody = life.deed.doing == Doing::other || life.deed.doing == Doing::unknown;
        if (category(life) == Category::not_known && of_nobody) candidates.push_back(&life);
      }
      if (known >= pairs) continue;
      const std::size_t wanted = pairs - known;
      // Of more than that, only those that one line made are alike enough not to tell which.
      const bool alike =
          !candidates.empty() && candidates.front()->stack.valid() &&
          std::ranges::all_of(candidates, [&](const Life* life) { return life->stack == candidates.front()->stack; });
      if (candidates.size() != wanted && !(candidates.size() > wanted && alike)) continue;
      for (std::size_t i = 0; i < wanted; ++i) is(*candidates[i], Category::parameter);
    }
  }

  /// Whether of every size there are so many that each parameter could have brought `each` blocks of its size. Sizes
  /// with fewer are of single things: a batch, a buffer.
  static bool could_be(const BySize& sizes, std::size_t each) {
    return std::ranges::all_of(sizes,
                               [&](const auto& of) { return of.second.size() < each || of.second.size() % each == 0; });
  }

  void parameters_of_forwards_alone() {
    constexpr std::array kTraining = {Doing::backward, Doing::accumulating, Doing::stepping, Doing::own_step};
    if (!doings_.contains(Doing::forward)) return;
    if (std::ranges::any_of(kTraining, [&](Doing doing) { return doings_.contains(doing); })) return;
    const BySize there = stayed();
    std::size_t large = 0;
    for (const auto& [bytes, blocks] : there)
      if (bytes >= kTelling) large += blocks.size();
    Lives kept;
    for (Life& life : lives_)
      if (life.deed.doing == Doing::forward) kept.push_back(&life);
    // Autograd keeps an input for the gradient of each parameter. Where less is kept, gradients are off, and caches of
    // keys and values are as likely.
    if (large == 0 || most_at_once(kept) < large) return;
    // A gradient or a momentum is one more of each size, Adam's state two; with a gradient three, which is even.
    if (could_be(there, 2) || could_be(there, kOfAdam)) return;
    for (const auto& [bytes, blocks] : there)
      for (const Life* life : blocks)
        if (bytes >= kTelling) is(*life, Category::parameter);
  }

  void inputs() {
    std::map<std::int64_t, std::size_t> parameters;
    for (const auto& [bytes, lives] :
         by_bytes([this](const Life& life) { return category(life) == Category::parameter; }))
      parameters[bytes] = lives.size();
    const std::map<std::int64_t, std::size_t> gradients = most_gradients();
    for (const Life& life : lives_) {
      if (!life.deed.to_device || life.deed.doing != Doing::other || life.bytes < kTelling) continue;
      // Autograd may hold a batch as long as what it saved itself.
      if (category(life) != Category::not_known && category(life) != Category::activation) continue;
      const auto gradient = gradients.find(life.bytes);
      // Somebody may have brought a parameter to the device in the same way.
      if (gradient == gradients.end() || gradient->second <= parameters[life.bytes]) is(life, Category::input);
    }
  }

  MemoryTable& memory_;
  std::vector<Life> lives_;
  std::unordered_map<std::int32_t, std::size_t> at_;  // of lives_, by buffer
  std::set<Doing> doings_;
  bool adam_ = false;
};

}  // namespace

void tell_kept(Trace& trace, const std::vector<Deed>& of, std::size_t recorded_from) {
  std::map<std::pair<Rank, Memory>, Kept> ranks;
  MemoryTable& memory = trace.memory;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    Kept& kept = ranks.try_emplace({memory.rank[i], memory.memory[i]}, memory).first->second;
    const StackId stack = memory.stack[i];
    const Deed deed = stack.valid() ? of[static_cast<std::size_t>(stack.value)] : Deed{};
    memory.delta_bytes[i] < 0 ? kept.released(i, deed) : kept.acquired(i, deed, i >= recorded_from);
  }
  for (auto& [rank, kept] : ranks) kept.settle();
}

}  // namespace shard::import
