// Totals by rank and kind; or counts of spans by rank, kind, phase and step.
#include "traces/compare_collectives.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "traces/base/wrapping.h"
#include "traces/op_spans.h"

namespace shard {
namespace {

struct Calls {
  std::int64_t count = 0, bytes = 0;
  friend bool operator==(const Calls&, const Calls&) = default;
};

using KindOfRank = std::tuple<Rank, Collective>;
/// By phase, then step: what each rank called.
using CallsByStep = std::map<Phase, std::map<std::int32_t, std::map<KindOfRank, Calls>>>;
using OpKinds = std::map<OpId, Collective>;

std::vector<CollectiveComparison> of_whole_runs(const Trace& first, const Trace& second) {
  std::map<KindOfRank, CollectiveComparison> rows;
  const auto fill = [&](const std::vector<CollectiveTotal>& totals, auto side) {
    for (const CollectiveTotal& total : totals) {
      CollectiveComparison& row = rows[{total.rank, total.kind}];
      row.rank = total.rank;
      row.kind = total.kind;
      row.count.*side = wrapping_sum(row.count.*side, total.count);
      row.bytes.*side = wrapping_sum(row.bytes.*side, total.bytes);
    }
  };
  fill(first.collectives, &Pair<std::int64_t>::first);
  fill(second.collectives, &Pair<std::int64_t>::second);
  std::vector<CollectiveComparison> result;
  for (const auto& [key, row] : rows) result.push_back(row);
  return result;
}

/// Which ops are collectives. Where a device's own records stand beside an op, its span says no kind: then the other
/// trace of the same plan does.
void add_kinds(const Trace& trace, OpKinds& kinds) {
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    if (!trace.spans.op[i].valid() || !is_collective(trace.spans.activity[i])) continue;
    for (int kind = 0; kind < kCollectiveCount; ++kind)
      if (activity_of(static_cast<Collective>(kind)) == trace.spans.activity[i])
        kinds.try_emplace(trace.spans.op[i], static_cast<Collective>(kind));
  }
}

CallsByStep calls_by_step(const Trace& trace, const OpKinds& kinds) {
  const SpanTable& spans = trace.spans;
  const OpSpans ops(trace);
  CallsByStep calls;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const auto kind = kinds.find(spans.op[i]);
    if (kind == kinds.end() || !ops.contains(i)) continue;
    const Rank rank = trace.track_of(spans.track[i]).rank;
    Calls& here = calls[spans.phase[i]][spans.step[i]][{rank, kind->second}];
    ++here.count;
    here.bytes = wrapping_sum(here.bytes, spans.bytes[i]);
  }
  return calls;
}

/// Of the phases that both have, each step beside its counterpart; the last one stands for those that one run lacks.
std::vector<CollectiveComparison> of_steps(const CallsByStep& first, const CallsByStep& second) {
  std::map<std::tuple<Rank, Collective, Phase>, CollectiveComparison> rows;
  const auto take = [&](Phase phase, const std::map<KindOfRank, Calls>& a, const std::map<KindOfRank, Calls>& b) {
    std::set<KindOfRank> keys;
    for (const auto& [key, calls] : a) keys.insert(key);
    for (const auto& [key, calls] : b) keys.insert(key);
    for (const KindOfRank& key : keys) {
      const auto [rank, kind] = key;
      const Calls x = a.contains(key) ? a.at(key) : Calls{}, y = b.contains(key) ? b.at(key) : Calls{};
      const auto [at, added] = rows.try_emplace({rank, kind, phase});
      if (!added && !at->second.equal()) continue;  // the first step that differs is the one to show
      at->second = {rank, kind, phase, {x.count, y.count}, {x.bytes, y.bytes}};
    }
  };
  for (const auto& [phase, steps] : first) {
    const auto found = second.find(phase);
    if (found == second.end()) continue;
    auto a = steps.begin();
    auto b = found->second.begin();
    while (true) {
      take(phase, a->second, b->second);
      const bool more_a = std::next(a) != steps.end(), more_b = std::next(b) != found->second.end();
      if (!more_a && !more_b) break;
      if (more_a) ++a;
      if (more_b) ++b;
    }
  }
  std::vector<CollectiveComparison> result;
  for (const auto& [key, row] : rows) result.push_back(row);
  return result;
}

}  // namespace

std::vector<CollectiveComparison> compare_collectives(const Trace& first, const Trace& second,
                                                      const Pair<std::int64_t>& steps) {
  const bool same_plan = !first.header.plan_hash.empty() && first.header.plan_hash == second.header.plan_hash;
  std::vector<CollectiveComparison> totals = of_whole_runs(first, second);
  if (steps.equal() || std::ranges::all_of(totals, &CollectiveComparison::equal)) return totals;
  OpKinds kinds_first, kinds_second;
  add_kinds(first, kinds_first);
  add_kinds(second, kinds_second);
  if (same_plan) {
    kinds_first.insert(kinds_second.begin(), kinds_second.end());
    kinds_second = kinds_first;
  }
  if (kinds_first.empty() || kinds_second.empty()) return totals;
  return of_steps(calls_by_step(first, kinds_first), calls_by_step(second, kinds_second));
}

}  // namespace shard
