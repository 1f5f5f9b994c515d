// Chooses classes by what they held at most, then keeps running sums as the series itself does.
#include "viewer/index/memory_classes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "traces/base/wrapping.h"
#include "traces/sites.h"

namespace shard::view {
namespace {

constexpr std::size_t kStretch = 16;
/// Frames of a stack that are looked at: a damaged file may have stacks without measure.
constexpr int kFramesLookedAt = 1000;
/// Of the sites with a class of their own, so many are those of the peak.
constexpr std::ptrdiff_t kAtPeak = 6;
/// ... and these only with more than this part of it.
constexpr std::int64_t kWorthIt = 100;
constexpr std::size_t kOthers = kMostSites;
constexpr std::size_t kNoStack = kMostSites + 1;

/// "optimizer_state" in words.
[[nodiscard]] std::string name_of(Category category) {
  std::string name = to_string(category);
  std::ranges::replace(name, '_', ' ');
  return name;
}

/// A stack in few words: its site, and who called that.
[[nodiscard]] std::string stack_name(const Trace& trace, StackId stack, FrameId site) {
  const std::string name = site_text(trace, site);
  int looked = 0;
  bool below = false;
  for (StackId at = stack; at.valid() && looked < kFramesLookedAt; at = trace.stack_of(at).caller, ++looked) {
    const FrameId frame = trace.stack_of(at).frame;
    if (!frame.valid() || !trace.name_of(trace.frame_of(frame).file).ends_with(".py")) continue;
    if (below) return name + " \u2190 " + site_text(trace, frame);
    below = frame == site;
  }
  return name;
}

/// Calls `change(block, begins)` for every begin and end of a block, in plan order.
template <class Change>
void walk(const MemorySeries& series, const BlockList& blocks, Change change) {
  for (std::size_t moment = 1; moment <= series.event_count(); ++moment) {
    const std::uint32_t block = blocks.at(moment);
    if (block != kNone) change(block, blocks.all()[block].begin == moment, moment);
  }
}

}  // namespace

MemoryClasses::MemoryClasses(const Trace& trace, const MemorySeries& series, const BlockList& blocks,
                             const std::vector<FrameId>& site_of_stack, MemoryBy by) {
  of_block_.assign(blocks.all().size(), 0);
  if (by == MemoryBy::category) {
    choose_categories(trace, series, blocks);
  } else {
    choose_sites(trace, series, blocks, site_of_stack, by);
  }
  order_by_steadiness(series, blocks);
  index_stacks(series, blocks);
  const ClassStack peak = at(blocks, series.peak_moment());
  for (std::size_t c = 0; c < classes_.size(); ++c) classes_[c].peak_bytes = peak.bytes[c];
}

void MemoryClasses::choose_sites(const Trace& trace, const MemorySeries& series, const BlockList& blocks,
                                 const std::vector<FrameId>& site_of_stack, MemoryBy by) {
  // Sites of one name are one, as lists of holders show them: numbered in order of appearance.
  std::map<std::int32_t, std::uint32_t> number_of;  // of a frame, or a stack
  std::vector<FrameId> frame_of;
  std::vector<StackId> stack_of;
  std::vector<std::uint32_t> site_of_block(blocks.all().size());
  for (std::size_t b = 0; b < site_of_block.size(); ++b) {
    const StackId stack = trace.memory.stack[blocks.all()[b].acquired];
    const FrameId frame = stack.valid() ? site_of_stack[static_cast<std::size_t>(stack.value)] : FrameId{};
    const std::int32_t key = by == MemoryBy::stack ? stack.value : frame.value;
    const auto [at, added] = number_of.try_emplace(key, static_cast<std::uint32_t>(frame_of.size()));
    if (added) {
      frame_of.push_back(frame);
      stack_of.push_back(stack);
    }
    site_of_block[b] = at->second;
  }
  std::vector<std::int64_t> live(frame_of.size()), most(frame_of.size()), at_peak(frame_of.size());
  walk(series, blocks, [&](std::uint32_t block, bool begins, std::size_t moment) {
    const std::uint32_t site = site_of_block[block];
    const std::int64_t bytes = blocks.all()[block].bytes;
    live[site] = wrapping_sum(live[site], begins ? bytes : wrapping_product(-1, bytes));
    most[site] = std::max(most[site], live[site]);
    if (moment <= series.peak_moment()) at_peak[site] = live[site];
  });
  std::vector<std::size_t> order;
  for (std::size_t site = 0; site < frame_of.size(); ++site) {
    if (frame_of[site].valid()) order.push_back(site);
  }
  // First what held most at the peak, which people ask for first; the rest by what it ever held.
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t site) { return at_peak[site]; });
  const std::int64_t worth = series.peak_bytes() / kWorthIt;
  const auto little = std::ranges::find_if(order, [&](std::size_t site) { return at_peak[site] <= worth; });
  const auto first = std::min<std::ptrdiff_t>(little - order.begin(), kAtPeak);
  std::ranges::stable_sort(order.begin() + first, order.end(), std::ranges::greater{},
                           [&](std::size_t site) { return most[site]; });
  std::vector<std::uint8_t> class_of(frame_of.size(), 0);
  const std::size_t shown = order.size() <= kMostSites + 1 ? order.size() : kMostSites;
  for (std::size_t n = 0; n < shown; ++n) {
    class_of[order[n]] = static_cast<std::uint8_t>(classes_.size());
    const FrameId frame = frame_of[order[n]];
    classes_.push_back(
        {.name = by == MemoryBy::stack ? stack_name(trace, stack_of[order[n]], frame) : site_text(trace, frame),
         .color = n});
  }
  if (shown < order.size()) {
    for (std::size_t n = shown; n < order.size(); ++n) class_of[order[n]] = static_cast<std::uint8_t>(classes_.size());
    classes_.push_back({.name = by == MemoryBy::stack ? "other stacks" : "other sites",
                        .color = kOthers,
                        .sites = static_cast<std::int64_t>(order.size() - shown)});
  }
  if (order.size() < frame_of.size()) {
    for (std::size_t site = 0; site < frame_of.size(); ++site) {
      if (!frame_of[site].valid()) class_of[site] = static_cast<std::uint8_t>(classes_.size());
    }
    classes_.push_back({.name = "no stack", .color = kNoStack, .sites = 0});
  }
  for (std::size_t b = 0; b < site_of_block.size(); ++b) of_block_[b] = class_of[site_of_block[b]];
}

void MemoryClasses::choose_categories(const Trace& trace, const MemorySeries& series, const BlockList& blocks) {
  std::array<std::uint8_t, kCategoryCount> class_of{};
  for (const Category category : series.categories()) {
    class_of[static_cast<std::size_t>(category)] = static_cast<std::uint8_t>(classes_.size());
    classes_.push_back({.name = name_of(category), .color = static_cast<std::size_t>(category)});
  }
  for (std::size_t b = 0; b < of_block_.size(); ++b)
    of_block_[b] = class_of[static_cast<std::size_t>(trace.memory.category[blocks.all()[b].acquired])];
}

/// How much of its most a class holds on the average over the recording.
void MemoryClasses::order_by_steadiness(const MemorySeries& series, const BlockList& blocks) {
  std::vector<double> sum(classes_.size());
  std::vector<std::int64_t> live(classes_.size()), most(classes_.size()), since(classes_.size());
  const auto settle = [&](std::size_t c, std::int64_t time_ns) {
    sum[c] += static_cast<double>(live[c]) * static_cast<double>(time_ns - since[c]);
    since[c] = time_ns;
  };
  if (series.event_count() == 0) return;
  std::ranges::fill(since, series.time_of(0));
  walk(series, blocks, [&](std::uint32_t block, bool begins, std::size_t moment) {
    const std::size_t c = of_block_[block];
    settle(c, series.time_of(moment));
    const std::int64_t bytes = blocks.all()[block].bytes;
    live[c] = wrapping_sum(live[c], begins ? bytes : wrapping_product(-1, bytes));
    most[c] = std::max(most[c], live[c]);
  });
  for (std::size_t c = 0; c < classes_.size(); ++c) settle(c, series.time_of(series.event_count()));
  std::vector<std::size_t> order(classes_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t c) { return most[c] > 0 ? sum[c] / static_cast<double>(most[c]) : 0.0; });
  std::vector<MemoryClass> sorted;
  std::vector<std::uint8_t> place(classes_.size());
  for (const std::size_t c : order) {
    place[c] = static_cast<std::uint8_t>(sorted.size());
    sorted.push_back(std::move(classes_[c]));
  }
  classes_ = std::move(sorted);
  for (std::uint8_t& of : of_block_) of = place[of];
}

void MemoryClasses::apply(const BlockList& blocks, std::size_t moment, ClassStack& stack) const {
  const std::uint32_t number = blocks.at(moment);
  if (number == kNone) return;
  const Block& block = blocks.all()[number];
  const bool begins = block.begin == moment;
  const std::size_t c = of_block_[number];
  stack.bytes[c] = wrapping_sum(stack.bytes[c], begins ? block.bytes : wrapping_product(-1, block.bytes));
  stack.blocks[c] += begins ? 1 : -1;
}

void MemoryClasses::index_stacks(const MemorySeries& series, const BlockList& blocks) {
  ClassStack stack;
  stacks_.reserve(series.event_count() / kStretch + 1);
  for (std::size_t moment = 0; moment <= series.event_count(); ++moment) {
    if (moment > 0) apply(blocks, moment, stack);
    if (moment % kStretch == 0) stacks_.push_back(stack);
  }
}

ClassStack MemoryClasses::at(const BlockList& blocks, std::size_t moment) const {
  ClassStack stack = stacks_[moment / kStretch];
  for (std::size_t m = moment / kStretch * kStretch + 1; m <= moment; ++m) apply(blocks, m, stack);
  return stack;
}

std::vector<std::size_t> MemoryClasses::by_peak() const {
  std::vector<std::size_t> order(classes_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    const bool last_a = classes_[a].sites > 1, last_b = classes_[b].sites > 1;
    return last_a != last_b ? last_b : classes_[a].peak_bytes > classes_[b].peak_bytes;
  });
  return order;
}

}  // namespace shard::view
