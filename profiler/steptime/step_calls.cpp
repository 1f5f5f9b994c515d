// Steps end where the stand-in says; operators are found by thread and time.
#include "profiler/steptime/step_calls.h"

#include <algorithm>

#include "sim/price/operator_walk.h"

namespace shard::steptime {
namespace {

/// Steps end at marks; `from` and `to` are items.
struct Window {
  std::int64_t step = 0;
  std::size_t from = 0, to = 0;
};

Window window_of(const WorkList& work, const import::KinetoProgram& program, std::int64_t step) {
  std::vector<Window> windows;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < work.items.size(); ++i)
    if (work.items[i].kind == Work::step) {
      windows.push_back({.step = work.items[i].numbers[0], .from = begin, .to = i});
      begin = i + 1;
    }
  if (windows.empty()) return {.step = 0, .from = 0, .to = work.items.size()};
  if (const auto asked = std::ranges::find(windows, step, &Window::step); asked != windows.end()) return *asked;
  if (program.operators.empty()) return windows.back();
  std::vector<std::int64_t> begins;
  for (const import::KinetoOperator& each : program.operators) begins.push_back(each.begin_ns);
  std::ranges::nth_element(begins, begins.begin() + static_cast<std::ptrdiff_t>(begins.size() / 2));
  const std::int64_t middle = begins[begins.size() / 2];
  for (const Window& window : windows)
    if (middle <= work.items[window.to].time_ns) return window;
  return windows.back();
}

}  // namespace

StepCalls step_calls(const WorkList& work, const import::KinetoProgram& program, std::int64_t step) {
  const Window window = window_of(work, program, step);
  price::OperatorWalk walk(program.operators);
  StepCalls found{.step = window.step, .calls = {}, .captured = {}};
  for (std::size_t i = 0; i < work.items.size(); ++i) {
    const bool in_step = i >= window.from && i < window.to;
    if (!in_step && work.items[i].capture == 0) continue;
    Call call{.item = i};
    if (walk.to(work.items[i].thread, work.items[i].time_ns)) {
      call.operators_before = walk.begun();
      call.operator_index = walk.innermost_with_tensors();
      call.group = walk.innermost_with_ranks();
      call.outermost = walk.outermost();
    }
    if (in_step) found.calls.push_back(call);
    if (work.items[i].capture != 0) found.captured.push_back(call);
  }
  return found;
}

}  // namespace shard::steptime
