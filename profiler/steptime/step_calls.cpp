// Operators of a thread lie within each other, so one walk through a thread's calls and operators finds each its own.
#include "profiler/steptime/step_calls.h"

#include <algorithm>
#include <map>

namespace shard::steptime {
namespace {

/// Steps end at marks; `from` and `to` are items.
struct Window {
  std::int64_t step = 0;
  std::size_t from = 0, to = 0;
};

/// The step that most operators begin in.
Window window_of(const WorkList& work, const import::KinetoProgram& program) {
  std::vector<Window> windows;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < work.items.size(); ++i)
    if (work.items[i].kind == Work::step) {
      windows.push_back({.step = work.items[i].numbers[0], .from = begin, .to = i});
      begin = i + 1;
    }
  if (windows.empty()) return {.step = 0, .from = 0, .to = work.items.size()};
  if (program.operators.empty()) return windows.back();
  std::vector<std::int64_t> begins;
  for (const import::KinetoOperator& each : program.operators) begins.push_back(each.begin_ns);
  std::ranges::nth_element(begins, begins.begin() + static_cast<std::ptrdiff_t>(begins.size() / 2));
  const std::int64_t middle = begins[begins.size() / 2];
  for (const Window& window : windows)
    if (middle <= work.items[window.to].time_ns) return window;
  return windows.back();
}

bool has_tensors(const import::KinetoOperator& each) {
  return std::ranges::any_of(each.inputs, [](const auto& input) { return !input.sizes.empty(); });
}

/// Of one thread, in the order of time; outer ones before inner ones.
using OfThread = std::vector<std::int32_t>;

std::map<std::int64_t, OfThread> by_thread(const std::vector<import::KinetoOperator>& operators) {
  std::map<std::int64_t, OfThread> threads;
  for (std::size_t i = 0; i < operators.size(); ++i)
    threads[operators[i].thread].push_back(static_cast<std::int32_t>(i));
  for (auto& [thread, list] : threads)
    std::ranges::stable_sort(list, [&](std::int32_t a, std::int32_t b) {
      const auto &first = operators[static_cast<std::size_t>(a)], &second = operators[static_cast<std::size_t>(b)];
      return std::pair(first.begin_ns, -first.end_ns) < std::pair(second.begin_ns, -second.end_ns);
    });
  return threads;
}

/// Goes through a thread's operators as its calls come.
class Walk {
 public:
  Walk(const std::vector<import::KinetoOperator>& operators, const OfThread& order)
      : operators_(operators), order_(order) {}

  /// How many operators began since the last time.
  std::int32_t to(std::int64_t time_ns) {
    const std::size_t before = next_;
    for (; next_ < order_.size() && of(order_[next_]).begin_ns <= time_ns; ++next_) {
      leave(of(order_[next_]).begin_ns);
      open_.push_back(order_[next_]);
    }
    leave(time_ns);
    return static_cast<std::int32_t>(next_ - before);
  }
  [[nodiscard]] std::int32_t innermost_with_tensors() const {
    for (std::size_t i = open_.size(); i > 0; --i)
      if (has_tensors(of(open_[i - 1]))) return open_[i - 1];
    return open_.empty() ? -1 : open_.back();
  }
  [[nodiscard]] std::int32_t innermost_with_ranks() const {
    for (std::size_t i = open_.size(); i > 0; --i)
      if (!of(open_[i - 1]).process_group.empty()) return open_[i - 1];
    return -1;
  }
  [[nodiscard]] std::int32_t outermost() const { return open_.empty() ? -1 : open_.front(); }

 private:
  [[nodiscard]] const import::KinetoOperator& of(std::int32_t index) const {
    return operators_[static_cast<std::size_t>(index)];
  }
  void leave(std::int64_t time_ns) {
    while (!open_.empty() && of(open_.back()).end_ns < time_ns) open_.pop_back();
  }

  const std::vector<import::KinetoOperator>& operators_;
  const OfThread& order_;
  std::size_t next_ = 0;
  std::vector<std::int32_t> open_;
};

}  // namespace

StepCalls step_calls(const WorkList& work, const import::KinetoProgram& program) {
  const Window window = window_of(work, program);
  const std::map<std::int64_t, OfThread> threads = by_thread(program.operators);
  std::map<std::int64_t, Walk> walks;
  for (const auto& [thread, order] : threads) walks.emplace(thread, Walk(program.operators, order));
  StepCalls found{.step = window.step, .calls = {}, .captured = {}};
  for (std::size_t i = 0; i < work.items.size(); ++i) {
    const bool in_step = i >= window.from && i < window.to;
    if (!in_step && work.items[i].capture == 0) continue;
    Call call{.item = i};
    if (const auto walk = walks.find(work.items[i].thread); walk != walks.end()) {
      call.operators_before = walk->second.to(work.items[i].time_ns);
      call.operator_index = walk->second.innermost_with_tensors();
      call.group = walk->second.innermost_with_ranks();
      call.outermost = walk->second.outermost();
    }
    if (in_step) found.calls.push_back(call);
    if (work.items[i].capture != 0) found.captured.push_back(call);
  }
  return found;
}

}  // namespace shard::steptime
