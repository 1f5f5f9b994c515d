// Steps give the anchors of the common axis; traces/compare gives the residuals; memory curves are merged event by
// event.
#include "viewer/index/compare_view.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "traces/base/numbers.h"
#include "viewer/index/ticks.h"

namespace shard::view {
namespace {

/// An op of a step, whatever the step's number.
using OpOfRank = std::tuple<Rank, OpId, std::int32_t>;

std::set<OpOfRank> ops_of(const Document& document, const StepTime& step) {
  const SpanTable& table = document.trace().spans;
  std::set<OpOfRank> ops;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table.step[i] != step.step || table.phase[i] != step.phase || !table.op[i].valid()) continue;
    ops.emplace(document.rank_of(static_cast<std::uint32_t>(i)), table.op[i], table.micro_step[i]);
  }
  return ops;
}

/// When some ops of a step ran.
TimeRange time_of_ops(const Document& document, const StepTime& step, const std::vector<OpOfRank>& ops) {
  const SpanTable& table = document.trace().spans;
  TimeRange range{INT64_MAX, INT64_MIN};
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table.step[i] != step.step || table.phase[i] != step.phase || !table.op[i].valid()) continue;
    const auto span = static_cast<std::uint32_t>(i);
    const OpOfRank op{document.rank_of(span), table.op[i], table.micro_step[i]};
    if (!std::binary_search(ops.begin(), ops.end(), op)) continue;
    const TimeRange time = document.time_of(span);
    range = {std::min(range.begin_ns, time.begin_ns), std::max(range.end_ns, time.end_ns)};
  }
  return range;
}

/// The first steady step of either document with the same number in both; else the first of each.
std::pair<const StepTime*, const StepTime*> reference_steps(const Document& first, const Document& other) {
  for (const Phase phase : {Phase::steady_step, Phase::first_step}) {
    const StepTime *a = nullptr, *b = nullptr;
    for (const StepTime& step : first.steps()) {
      if (step.phase != phase) continue;
      if (a == nullptr) a = &step;
      for (const StepTime& candidate : other.steps()) {
        if (candidate.phase == phase && candidate.step == step.step) return {&step, &candidate};
      }
    }
    for (const StepTime& step : other.steps()) {
      if (step.phase == phase && b == nullptr) b = &step;
    }
    if (a != nullptr && b != nullptr) return {a, b};
  }
  return {nullptr, nullptr};
}

std::int64_t rounded(double ns) {
  return std::llround(std::clamp(ns, -4.6e18, 4.6e18));
}

std::string step_name(std::int32_t step) {
  return "step " + std::to_string(step);
}

struct ResidualKey {
  Rank rank;
  OpId op;
  Phase phase;
  std::int32_t micro_step;
  friend auto operator<=>(const ResidualKey&, const ResidualKey&) = default;
};

/// The first span of each op in question; steady steps before what came earlier only where the phase says so.
std::map<ResidualKey, std::uint32_t> first_spans(const Document& document, const std::set<ResidualKey>& wanted) {
  const SpanTable& table = document.trace().spans;
  std::set<OpId> ops;
  for (const ResidualKey& key : wanted) ops.insert(key.op);
  std::int32_t most = -1;
  for (const OpId op : ops) most = std::max(most, op.value);
  std::map<ResidualKey, std::uint32_t> spans;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table.op[i].value > most || !ops.contains(table.op[i])) continue;
    const auto span = static_cast<std::uint32_t>(i);
    const ResidualKey key{document.rank_of(span), table.op[i], table.phase[i], table.micro_step[i]};
    if (!wanted.contains(key)) continue;
    const auto [at, added] = spans.try_emplace(key, span);
    if (!added && table.begin_ns[i] < table.begin_ns[at->second]) at->second = span;
  }
  return spans;
}

std::int64_t bytes_per_step(std::int64_t bytes, std::int64_t steps) {
  return steps > 0 ? bytes / steps : 0;
}

}  // namespace

const char* to_string(AlignMode mode) {
  switch (mode) {
    case AlignMode::step: return "step";
    case AlignMode::stretch: return "stretch";
    case AlignMode::clock: return "clock";
  }
  return "?";
}

std::int64_t Alignment::to_other(std::int64_t time_ns) const {
  if (scale == 1) return time_ns - anchor_ns + other_anchor_ns;
  return other_anchor_ns + rounded(static_cast<double>(time_ns - anchor_ns) * scale);
}

std::int64_t Alignment::to_first(std::int64_t other_ns) const {
  if (scale == 1) return other_ns - other_anchor_ns + anchor_ns;
  return anchor_ns + rounded(static_cast<double>(other_ns - other_anchor_ns) / scale);
}

TimeRange Alignment::to_other(TimeRange range) const {
  const std::int64_t begin = to_other(range.begin_ns);
  const std::int64_t end = to_other(range.end_ns);
  return {begin, range.empty() ? end : std::max(begin + 1, end)};
}

std::string Alignment::text() const {
  const std::int64_t offset = offset_ns();
  std::string text =
      std::string("offset ") + (offset >= 0 ? "+" : "") + duration_text(offset) + ", scale " + show_number(scale);
  if (step >= 0) text += " (" + step_name(other_step) + " on " + step_name(step) + ")";
  return text;
}

Alignment align(const Document& first, const Document& other, AlignMode mode) {
  Alignment alignment;
  alignment.mode = mode;
  if (mode == AlignMode::clock) {
    const Header &a = first.trace().header, &b = other.trace().header;
    const bool wall = a.wall_ns != 0 && b.wall_ns != 0;
    // wall = clock + (wall_ns - clock_ns) in each.
    if (wall) {
      alignment.anchor_ns = a.clock_ns - a.wall_ns + b.wall_ns;
      alignment.other_anchor_ns = b.clock_ns;
    }
    return alignment;
  }
  TimeRange a = first.range(), b = other.range();
  if (const auto [x, y] = reference_steps(first, other); x != nullptr) {
    alignment.step = x->step;
    alignment.other_step = y->step;
    a = {x->begin_ns, x->end_ns};
    b = {y->begin_ns, y->end_ns};
    const std::set<OpOfRank> ops_a = ops_of(first, *x), ops_b = ops_of(other, *y);
    std::vector<OpOfRank> both;
    std::set_intersection(ops_a.begin(), ops_a.end(), ops_b.begin(), ops_b.end(), std::back_inserter(both));
    alignment.joined_op_count = static_cast<std::int64_t>(both.size());
    if (!both.empty()) {
      a = time_of_ops(first, *x, both);
      b = time_of_ops(other, *y, both);
    }
  }
  alignment.anchor_ns = a.begin_ns;
  alignment.other_anchor_ns = b.begin_ns;
  if (mode == AlignMode::stretch && !a.empty() && !b.empty()) {
    alignment.scale = static_cast<double>(b.length_ns()) / static_cast<double>(a.length_ns());
  }
  return alignment;
}

Result<CompareView> compare_documents(const Document& first, const Document& other, AlignMode mode, bool force,
                                      std::size_t max_ops) {
  CompareOptions options;
  options.force = force;
  options.max_ops = static_cast<std::size_t>(-1);  // all: those with the largest difference in bytes are wanted too
  Result<Comparison> comparison = compare_traces(first.trace(), other.trace(), options, first.label(), other.label());
  if (!comparison) return comparison.error();
  CompareView view;
  view.comparison = std::move(comparison).value();
  view.swapped = first.trace().header.kind == TraceKind::measured && other.trace().header.kind == TraceKind::predicted;
  view.alignment = align(first, other, mode);
  std::vector<Residual> all;
  all.reserve(view.comparison.ops.size());
  const int sign = view.swapped ? -1 : 1;
  for (const OpComparison& op : view.comparison.ops) {
    const std::int64_t bytes =
        bytes_per_step(op.bytes.second, op.steps.second) - bytes_per_step(op.bytes.first, op.steps.first);
    all.push_back({op, sign * (op.seconds.second - op.seconds.first), sign * bytes, std::nullopt, std::nullopt});
  }
  const auto top = [&](auto magnitude) {
    std::vector<Residual> rows = all;
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const Residual& x, const Residual& y) { return magnitude(x) > magnitude(y); });
    if (rows.size() > max_ops) rows.resize(max_ops);
    return rows;
  };
  view.by_time = top([](const Residual& r) { return std::abs(r.seconds); });
  std::erase_if(all, [](const Residual& r) { return r.op.bytes_equal(); });
  view.by_bytes = top([](const Residual& r) { return std::abs(static_cast<double>(r.bytes)); });
  if (view.comparison.ops.size() > max_ops) view.comparison.ops.resize(max_ops);

  std::set<ResidualKey> wanted;
  const auto key_of = [](const Residual& r) { return ResidualKey{r.op.rank, r.op.op, r.op.phase, r.op.micro_step}; };
  for (const Residual& r : view.by_time) wanted.insert(key_of(r));
  for (const Residual& r : view.by_bytes) wanted.insert(key_of(r));
  const auto spans_a = first_spans(first, wanted), spans_b = first_spans(other, wanted);
  for (std::vector<Residual>* rows : {&view.by_time, &view.by_bytes}) {
    for (Residual& row : *rows) {
      if (const auto at = spans_a.find(key_of(row)); at != spans_a.end()) row.first_span = at->second;
      if (const auto at = spans_b.find(key_of(row)); at != spans_b.end()) row.other_span = at->second;
    }
  }
  return view;
}

StepCurve memory_difference(const MemorySeries* first, const MemorySeries* other, const Alignment& alignment) {
  if (first == nullptr || other == nullptr) return {};
  std::vector<std::int64_t> times;
  std::vector<double> values;
  times.reserve(first->event_count() + other->event_count());
  values.reserve(times.capacity());
  std::size_t a = 0, b = 0;
  while (a < first->event_count() || b < other->event_count()) {
    const std::int64_t time_a = a < first->event_count() ? first->time_of(a + 1) : INT64_MAX;
    const std::int64_t time_b = b < other->event_count() ? alignment.to_first(other->time_of(b + 1)) : INT64_MAX;
    // Events at one time are taken in pairs, in plan order: two equal traces differ at no moment.
    if (time_a <= time_b) ++a;
    if (time_b <= time_a) ++b;
    times.push_back(std::min(time_a, time_b));
    values.push_back(static_cast<double>(other->bytes_at(b)) - static_cast<double>(first->bytes_at(a)));
  }
  return {std::move(times), std::move(values)};
}

}  // namespace shard::view
