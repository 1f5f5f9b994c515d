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

Result<CompareView> compare_documents(const Document& first, const Document& other, bool force, std::size_t max_ops) {
  CompareOptions options;
  options.force = force;
  options.max_ops = static_cast<std::size_t>(-1);  // all: those with the largest difference in bytes are wanted too
  Result<Comparison> comparison = compare_traces(first.trace(), other.trace(), options, first.label(), other.label());
  if (!comparison) return comparison.error();
  CompareView view;
  view.comparison = std::move(comparison).value();
  view.swapped = first.trace().header.kind == TraceKind::measured && other.trace().header.kind == TraceKind::predicted;
  view.alignments = align(first, other);
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

StepCurve memory_difference_by_time(const MemorySeries* first, const MemorySeries* other, const Alignment& alignment) {
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

MemoryDifference memory_difference(const Document& first, const MemorySeries* first_series, const Document& other,
                                   const MemorySeries* other_series, const Alignment& alignment) {
  if (first_series == nullptr || other_series == nullptr) return {};
  const SameOps ops(first.trace(), other.trace());
  MemoryByOp joined = memory_by_op(first.trace(), first_series->events(), other.trace(), other_series->events(), ops);
  if (joined.points.empty()) return {memory_difference_by_time(first_series, other_series, alignment), std::nullopt};
  std::vector<std::int64_t> times;
  std::vector<double> values;
  times.reserve(joined.points.size());
  values.reserve(joined.points.size());
  std::int64_t latest = INT64_MIN;
  for (const MemoryPoint& point : joined.points) {
    const bool here = point.of_first && !point.first_again;
    const std::int64_t time = here ? first_series->time_of(point.first_moment)
                                   : alignment.to_first(other_series->time_of(point.other_moment));
    latest = std::max(latest, time);
    times.push_back(latest);
    values.push_back(static_cast<double>(point.bytes));
  }
  return {StepCurve(std::move(times), std::move(values)), std::move(joined)};
}

}  // namespace shard::view
