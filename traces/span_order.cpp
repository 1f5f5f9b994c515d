// A merge sort that begins with the runs that are there, merging neighbours round by round.
#include "traces/span_order.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "traces/base/parallel.h"

namespace shard {
namespace {

constexpr std::size_t kManySpans = 100'000;
/// Shorter runs are sorted before they are merged.
constexpr std::size_t kShortRun = 64;

}  // namespace

void sort_spans(const SpanTable& spans, std::span<std::uint32_t> order) {
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    if (spans.begin_ns[a] != spans.begin_ns[b]) return spans.begin_ns[a] < spans.begin_ns[b];
    return spans.duration_ns[a] > spans.duration_ns[b];
  };
  const auto at = [&](std::size_t i) { return order.begin() + static_cast<std::ptrdiff_t>(i); };
  std::vector<std::size_t> runs{0};  // where each begins, and the end
  while (runs.back() < order.size()) {
    const std::size_t first = runs.back();
    auto last = static_cast<std::size_t>(std::is_sorted_until(at(first), order.end(), before) - order.begin());
    if (last - first < kShortRun && last < order.size()) {
      last = std::min(order.size(), first + kShortRun);
      std::stable_sort(at(first), at(last), before);
    }
    runs.push_back(last);
  }
  if (runs.size() <= 2) return;
  std::vector<std::uint32_t> other(order.size());
  std::span<std::uint32_t> from = order, to = other;
  while (runs.size() > 2) {
    const std::size_t pairs = runs.size() / 2;  // the last may lack its second run
    const auto run = [&](std::size_t r) { return static_cast<std::ptrdiff_t>(runs[std::min(r, runs.size() - 1)]); };
    for_each_index(pairs, order.size() > kManySpans, [&](std::size_t pair) {
      std::merge(from.begin() + run(2 * pair), from.begin() + run(2 * pair + 1), from.begin() + run(2 * pair + 1),
                 from.begin() + run(2 * pair + 2), to.begin() + run(2 * pair), before);
    });
    std::size_t kept = 0;
    for (std::size_t r = 0; r < runs.size(); r += 2) runs[kept++] = runs[r];
    if (runs.size() % 2 == 0) runs[kept++] = runs.back();
    runs.resize(kept);
    std::swap(from, to);
  }
  if (from.data() != order.data()) std::copy(from.begin(), from.end(), order.begin());
}

}  // namespace shard
