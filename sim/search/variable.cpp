// Dynamic programming over ordered partitions.
#include "sim/search/variable.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <string>
#include <utility>

#include "sim/search/option_checks.h"

namespace shard {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// Best way found to put the parameters before a position into a given number of chunks.
struct State {
  std::int64_t waste = 0;
  std::int64_t boundaries = 0;
  std::int64_t largest = 0;
  std::size_t from = 0;        ///< first parameter of the last chunk
  std::size_t from_state = 0;  ///< which state there

  /// Criteria 2 and 3; both survive any continuation, so a state not better here and not less wasteful is never needed.
  [[nodiscard]] bool worse_than(const State& other) const {
    return boundaries != other.boundaries ? boundaries < other.boundaries : largest > other.largest;
  }
};

/// States none of which is beaten in both waste and criteria: ascending waste, each better than the one before.
using Frontier = std::vector<State>;

void insert(Frontier& frontier, const State& state) {
  const auto at = std::upper_bound(frontier.begin(), frontier.end(), state.waste,
                                   [](std::int64_t waste, const State& other) { return waste < other.waste; });
  if (at != frontier.begin() && !std::prev(at)->worse_than(state)) return;
  // Drop what the newcomer beats: those as wasteful or more that are not better, which stand next to each other.
  auto first = at;
  while (first != frontier.begin() && std::prev(first)->waste == state.waste) --first;
  auto last = at;
  while (last != frontier.end() && !state.worse_than(*last)) ++last;
  frontier.insert(frontier.erase(first, last), state);
}

/// The frontiers of neighbouring positions, the first at `begin`, for one number of chunks.
struct Level {
  std::size_t begin = 0;
  std::vector<Frontier> frontiers;
};

class Partitions {
 public:
  Partitions(const SearchModel& model, std::int64_t world_size, std::int64_t max_chunk)
      : model_(model), world_size_(world_size), count_(model.sizes.size()), prefix_(count_ + 1, 0) {
    for (std::size_t index = 0; index < count_; ++index) prefix_[index + 1] = prefix_[index] + model.sizes[index];
    // Content of at most the largest admissible multiple stays within it when rounded up.
    const std::int64_t room = max_chunk / world_size * world_size;
    reach_.resize(count_);
    fewest_.assign(count_ + 1, 0);
    for (std::size_t first = count_; first-- > 0;) {
      const auto end = std::upper_bound(prefix_.begin(), prefix_.end(), prefix_[first] + room);
      reach_[first] = std::max(first + 1, static_cast<std::size_t>(end - prefix_.begin()) - 1);
      fewest_[first] = 1 + fewest_[reach_[first]];
    }
  }

  /// Whether the fewest chunks may waste more than `limit`. Only then does it matter what waste is least, which takes
  /// parameters x parameters of a chunk to find out.
  [[nodiscard]] bool may_exceed(std::int64_t limit) const { return waste_can_bind(fewest_[0], limit); }
  /// Once, before least_waste() or, where may_exceed(), any search.
  void find_least_waste() {
    least_waste_.assign(count_ + 1, 0);
    for (std::size_t first = count_; first-- > 0;) {
      least_waste_[first] = kNever;
      for (std::size_t last = first + 1; last <= reach_[first]; ++last) {
        least_waste_[first] = std::min(least_waste_[first], padding(first, last) + least_waste_[last]);
      }
    }
  }
  [[nodiscard]] std::int64_t least_waste() const { return least_waste_[0]; }

  /// The fewest chunks with a waste of at most `limit`, which is at least least_waste().
  [[nodiscard]] std::int64_t fewest_chunks(std::int64_t limit) const {
    if (!waste_can_bind(fewest_[0], limit)) return fewest_[0];
    std::vector<std::int64_t> waste(count_ + 1, kNever);  // least for the parameters before, with `chunks` chunks
    waste[0] = 0;
    for (std::int64_t chunks = 1;; ++chunks) {
      std::vector<std::int64_t> next(count_ + 1, kNever);
      for (std::size_t first = 0; first < count_; ++first) {
        if (waste[first] == kNever || waste[first] + least_waste_[first] > limit) continue;
        for (std::size_t last = first + 1; last <= reach_[first]; ++last) {
          next[last] = std::min(next[last], waste[first] + padding(first, last));
        }
      }
      if (next[count_] <= limit) return chunks;
      waste = std::move(next);
      assert(chunks <= static_cast<std::int64_t>(count_));
    }
  }

  /// Criteria 2 and 3 with exactly `chunks` chunks.
  [[nodiscard]] VariableAnswer best(std::int64_t chunks, std::int64_t limit) const {
    const bool waste_binds = waste_can_bind(chunks, limit);
    const auto levels = static_cast<std::size_t>(chunks);
    std::vector<Level> table = levels_for(levels);
    table[0].frontiers[0] = {State{}};
    for (std::size_t level = 0; level < levels; ++level) {
      const Level& here = table[level];
      Level& next = table[level + 1];
      for (std::size_t offset = 0; offset < here.frontiers.size(); ++offset) {
        const std::size_t first = here.begin + offset;
        const Frontier& frontier = here.frontiers[offset];
        for (std::size_t index = 0; index < frontier.size(); ++index) {
          for (std::size_t last = std::max(first + 1, next.begin); last <= reach_[first]; ++last) {
            if (last >= next.begin + next.frontiers.size()) break;
            State state = frontier[index];
            if (waste_binds) {
              state.waste += padding(first, last);
              if (state.waste + least_waste_[last] > limit) continue;
            }
            state.boundaries += last < count_ && model_.module[last - 1] != model_.module[last] ? 1 : 0;
            state.largest = std::max(state.largest, prefix_[last] - prefix_[first] + padding(first, last));
            state.from = first;
            state.from_state = index;
            insert(next.frontiers[last - next.begin], state);
          }
        }
      }
    }
    return unwind(table);
  }

 private:
  [[nodiscard]] std::int64_t padding(std::size_t first, std::size_t last) const {
    const std::int64_t used = prefix_[last] - prefix_[first];
    return (world_size_ - used % world_size_) % world_size_;
  }
  [[nodiscard]] bool waste_can_bind(std::int64_t chunks, std::int64_t limit) const {
    return world_size_ > 1 && chunks > limit / (world_size_ - 1);
  }
  /// The positions that `levels` chunks in all can pass after each number of chunks: reachable from the start, and such
  /// that the rest can be put into exactly the chunks that are left (splitting further is always possible).
  [[nodiscard]] std::vector<Level> levels_for(std::size_t levels) const {
    std::vector<Level> table(levels + 1);
    std::size_t furthest = 0;
    std::size_t nearest = 0;
    for (std::size_t level = 0; level <= levels; ++level) {
      const std::size_t left = levels - level;
      while (fewest_[nearest] > static_cast<std::int64_t>(left)) ++nearest;
      const std::size_t begin = std::max(nearest, level);
      const std::size_t end = std::min(furthest, count_ - left);
      assert(begin <= end);
      table[level].begin = begin;
      table[level].frontiers.resize(end - begin + 1);
      if (furthest < count_) furthest = reach_[furthest];
    }
    return table;
  }

  [[nodiscard]] VariableAnswer unwind(const std::vector<Level>& table) const {
    VariableAnswer answer;
    const Frontier& whole = table.back().frontiers.back();
    assert(!whole.empty());
    const State* state = &whole.back();  // the best; frontiers are ordered
    answer.module_boundaries = state->boundaries;
    answer.largest_chunk = Elems{state->largest};
    std::size_t position = count_;
    for (std::size_t level = table.size() - 1; level > 0; --level) {
      answer.waste += Elems{padding(state->from, position)};
      position = state->from;
      answer.chunk_starts.push_back(position);
      const Level& before = table[level - 1];
      state = &before.frontiers[position - before.begin][state->from_state];
    }
    std::reverse(answer.chunk_starts.begin(), answer.chunk_starts.end());
    return answer;
  }

  const SearchModel& model_;
  std::int64_t world_size_;
  std::size_t count_;
  std::vector<std::int64_t> prefix_;
  std::vector<std::size_t> reach_;         ///< one past the last parameter of the longest chunk from here
  std::vector<std::int64_t> fewest_;       ///< chunks for the parameters from here on
  std::vector<std::int64_t> least_waste_;  ///< for the parameters from here on, with any number of chunks
};

}  // namespace

Result<VariableAnswer> search_variable(const SearchModel& model, const VariableOptions& options) {
  if (auto error = check_world_size(options.world_size)) return *error;
  if (auto error = check_elems("--max-chunk", options.max_chunk, 1)) return *error;
  Partitions partitions(model, options.world_size, options.max_chunk.count());
  const std::int64_t limit = model.total / kVariableWasteDivisor;
  const bool may_exceed = partitions.may_exceed(limit);
  if (may_exceed) partitions.find_least_waste();
  if (may_exceed && partitions.least_waste() > limit) {
    return Error{Errc::contradiction,
                 "rule variable allows a waste of 0.1 %, " + std::to_string(limit) + " of " +
                     std::to_string(model.total) + " elements, but padding to --world-size " +
                     std::to_string(options.world_size) + " wastes at least " +
                     std::to_string(partitions.least_waste()),
                 "", "a smaller --world-size, a larger --max-chunk, or --rule exact"};
  }
  return partitions.best(partitions.fewest_chunks(limit), limit);
}

}  // namespace shard
