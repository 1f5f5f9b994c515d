// Hash join of spans; ordered joins of peaks and totals.
#include "traces/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "traces/base/wrapping.h"
#include "traces/compare_collectives.h"
#include "traces/inspect.h"
#include "traces/op_spans.h"
#include "traces/peaks.h"

namespace shard {
namespace {

struct OpKey {
  std::int32_t rank, op, micro_step;
  Phase phase;
  friend auto operator<=>(const OpKey&, const OpKey&) = default;
};

struct OpKeyHash {
  std::size_t operator()(const OpKey& key) const {
    std::uint64_t hash = static_cast<std::uint32_t>(key.rank);
    for (const std::uint32_t part : {static_cast<std::uint32_t>(key.op), static_cast<std::uint32_t>(key.micro_step),
                                     static_cast<std::uint32_t>(key.phase)}) {
      hash = (hash ^ part) * 0x9e37'79b9'7f4a'7c15u;  // 2^64 / golden ratio
      hash ^= hash >> 29;
    }
    return static_cast<std::size_t>(hash);
  }
};

/// What one trace says about an op.
struct OpTotal {
  std::int64_t steps = 0;
  std::int32_t last_step = 0;
  double nanoseconds = 0;  // without waiting
  double waiting_nanoseconds = 0;
  std::int64_t bytes = 0;
  NameId name{};
  TrackId track{};
};

struct JoinedOp {
  Pair<OpTotal> total;
};

using Joined = std::unordered_map<OpKey, JoinedOp, OpKeyHash>;

void collect(const Trace& trace, OpTotal Pair<OpTotal>::*side, Joined& joined) {
  const SpanTable& spans = trace.spans;
  const OpSpans ops(trace);
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (!ops.contains(i)) continue;  // host spans and the like belong to no op
    const OpKey key{trace.track_of(spans.track[i]).rank.value, spans.op[i].value, spans.micro_step[i], spans.phase[i]};
    OpTotal& total = joined[key].total.*side;
    if (total.steps == 0 || total.last_step != spans.step[i]) ++total.steps;
    total.last_step = spans.step[i];
    total.nanoseconds += static_cast<double>(spans.busy_ns(i));
    total.waiting_nanoseconds += static_cast<double>(spans.waiting_ns[i]);
    total.bytes = wrapping_sum(total.bytes, spans.bytes[i]);
    total.name = spans.name[i];
    total.track = spans.track[i];
  }
}

double per_step(double sum, std::int64_t steps) {
  return steps == 0 ? 0 : sum / static_cast<double>(steps);
}

double residual(const Pair<double>& seconds) {
  return std::abs(seconds.second - seconds.first);
}

/// Adds one joined op to a sum.
void add(GroupComparison& group, const OpComparison& op) {
  ++group.op_count;
  group.seconds.first += op.seconds.first;
  group.seconds.second += op.seconds.second;
  group.waiting_seconds.first += op.waiting_seconds.first;
  group.waiting_seconds.second += op.waiting_seconds.second;
  group.bytes.first += per_step(static_cast<double>(op.bytes.first), op.steps.first);
  group.bytes.second += per_step(static_cast<double>(op.bytes.second), op.steps.second);
}

void compare_ops(const Trace& first, const Trace& second, const CompareOptions& options, Comparison& result) {
  Joined joined;
  collect(first, &Pair<OpTotal>::first, joined);
  collect(second, &Pair<OpTotal>::second, joined);

  // Sums of doubles depend on their order; a hash table's is not to be seen.
  std::vector<std::pair<OpKey, const JoinedOp*>> sorted;
  sorted.reserve(joined.size());
  for (const auto& [key, op] : joined) sorted.emplace_back(key, &op);
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });

  std::map<std::tuple<Phase, std::string>, GroupComparison> names;
  std::map<std::tuple<Phase, Stream>, GroupComparison> streams;
  std::map<std::tuple<Phase, Rank>, GroupComparison> ranks;
  for (const auto& [key, entry] : sorted) {
    const Pair<OpTotal>& total = entry->total;
    const bool in_first = total.first.steps > 0;
    if (!in_first) ++result.unmatched_op_count.second;
    if (total.second.steps == 0) ++result.unmatched_op_count.first;
    const Trace& named = in_first ? first : second;
    const OpTotal& namer = in_first ? total.first : total.second;
    OpComparison op{Rank{key.rank},
                    OpId{key.op},
                    key.phase,
                    key.micro_step,
                    named.track_of(namer.track).stream,
                    std::string(named.name_of(namer.name)),
                    {total.first.steps, total.second.steps},
                    {per_step(total.first.nanoseconds, total.first.steps) / 1e9,
                     per_step(total.second.nanoseconds, total.second.steps) / 1e9},
                    {total.first.bytes, total.second.bytes},
                    {per_step(total.first.waiting_nanoseconds, total.first.steps) / 1e9,
                     per_step(total.second.waiting_nanoseconds, total.second.steps) / 1e9}};
    if (in_first && total.second.steps > 0) {
      ++result.joined_op_count;
      if (!op.bytes_equal()) ++result.unequal_op_bytes_count;
      GroupComparison& name = names[{op.phase, op.name}];
      name.key = op.name;
      GroupComparison& stream = streams[{op.phase, op.stream}];
      stream.key = to_string(op.stream);
      GroupComparison& rank = ranks[{op.phase, op.rank}];
      rank.rank = op.rank;
      for (GroupComparison* group : {&name, &stream, &rank}) {
        group->phase = op.phase;
        add(*group, op);
      }
    }
    result.ops.push_back(std::move(op));
  }
  const auto larger = [](const auto& a, const auto& b) { return residual(a.seconds) > residual(b.seconds); };
  std::stable_sort(result.ops.begin(), result.ops.end(), larger);
  if (result.ops.size() > options.max_ops) result.ops.resize(options.max_ops);
  for (auto& [key, group] : names) result.names.push_back(std::move(group));
  std::stable_sort(result.names.begin(), result.names.end(), larger);
  for (auto& [key, group] : streams) result.streams.push_back(std::move(group));
  for (auto& [key, group] : ranks) result.ranks.push_back(std::move(group));
}

using MemoryKey = std::tuple<Rank, Memory, Phase>;
using Peaks = std::map<MemoryKey, std::pair<std::int64_t, std::int64_t>>;  // extent, live

/// Peaks that the producer reported. A phase that ran several times counts with its highest.
Peaks reported_peaks(const Trace& trace) {
  Peaks peaks;
  for (const ArenaSummary& arena : trace.arenas) {
    auto& [extent, live] = peaks[{arena.rank, arena.memory, arena.phase}];
    extent = std::max(extent, arena.peak_bytes);
    live = std::max(live, arena.live_peak_bytes);
  }
  return peaks;
}

Peaks event_peaks(const std::vector<MemoryPeak>& events) {
  Peaks peaks;
  for (const MemoryPeak& peak : events) {
    peaks[{peak.rank, peak.memory, peak.phase}] = {peak.peak_bytes, peak.live_peak_bytes};
  }
  return peaks;
}

std::set<Phase> phases_of(const Peaks& peaks) {
  std::set<Phase> phases;
  for (const auto& [key, peak] : peaks) phases.insert(std::get<Phase>(key));
  return phases;
}

void compare_memory(const Trace& first, const Trace& second, Comparison& result) {
  const Pair<std::vector<MemoryPeak>> events{memory_peaks(first), memory_peaks(second)};
  const bool reported = !first.arenas.empty() && !second.arenas.empty();
  Pair<Peaks> peaks;
  peaks.first = reported ? reported_peaks(first) : event_peaks(events.first);
  peaks.second = reported ? reported_peaks(second) : event_peaks(events.second);
  const Pair<std::set<Phase>> phases{phases_of(peaks.first), phases_of(peaks.second)};

  std::map<MemoryKey, MemoryComparison> rows;
  const auto fill = [&](const Peaks& from, auto side) {
    for (const auto& [key, peak] : from) {
      MemoryComparison& row = rows[key];
      std::tie(row.rank, row.memory, row.phase) = key;
      row.peak_bytes.*side = peak.first;
      row.live_peak_bytes.*side = peak.second;
      row.compared = phases.first.contains(row.phase) && phases.second.contains(row.phase);
    }
  };
  fill(peaks.first, &Pair<std::int64_t>::first);
  fill(peaks.second, &Pair<std::int64_t>::second);
  for (const auto& [key, row] : rows) result.memory.push_back(row);

  std::map<std::tuple<Rank, Memory, Category>, CategoryComparison> categories;
  const Pair<std::set<Phase>> event_phases{phases_of(event_peaks(events.first)), phases_of(event_peaks(events.second))};
  const auto fill_categories = [&](const std::vector<MemoryPeak>& from, auto side) {
    for (const MemoryPeak& peak : from) {
      if (!event_phases.first.contains(peak.phase) || !event_phases.second.contains(peak.phase)) continue;
      for (int c = 0; c < kCategoryCount; ++c) {
        const std::int64_t bytes = peak.category_peak_bytes[static_cast<std::size_t>(c)];
        if (bytes == 0) continue;
        CategoryComparison& row = categories[{peak.rank, peak.memory, static_cast<Category>(c)}];
        row.rank = peak.rank;
        row.memory = peak.memory;
        row.category = static_cast<Category>(c);
        row.peak_bytes.*side = std::max(row.peak_bytes.*side, bytes);
      }
    }
  };
  fill_categories(events.first, &Pair<std::int64_t>::first);
  fill_categories(events.second, &Pair<std::int64_t>::second);
  for (const auto& [key, row] : categories) result.categories.push_back(row);
}

/// The plans are one, or one was made again from the other.
bool same_plan(const Header& a, const Header& b) {
  if (a.plan_hash == b.plan_hash) return true;
  const auto made_from = [](const Header& child, const Header& parent) {
    return !parent.plan_hash.empty() && child.parent_plan_hash == parent.plan_hash;
  };
  return made_from(a, b) || made_from(b, a);
}

/// Fields of both strategies that differ, in the order of the first.
std::vector<FieldComparison> strategy_differences(const Header& a, const Header& b) {
  std::map<std::string_view, std::string_view> others;
  for (const StrategyField& field : b.strategy) others.emplace(field.name, field.value);
  std::vector<FieldComparison> differences;
  for (const StrategyField& field : a.strategy) {
    const auto other = others.find(field.name);
    if (other != others.end() && other->second != field.value)
      differences.push_back({field.name, {field.value, std::string(other->second)}});
  }
  return differences;
}

std::string listed(const std::vector<FieldComparison>& differences) {
  constexpr std::size_t kMost = 4;
  const auto said = [](const std::string& value) { return value.empty() ? "not set" : value; };
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, differences.size()); ++i) {
    const FieldComparison& field = differences[i];
    text += (i == 0 ? "; " : ", ") + field.name + " " + said(field.value.first) + " and " + said(field.value.second);
  }
  return text + (differences.size() > kMost ? ", ..." : "");
}

std::string described(const std::string& hash) {
  return hash.empty() ? "no plan" : "plan " + hash.substr(0, 16);
}

}  // namespace

bool OpComparison::bytes_equal() const {
  __extension__ using Wide = __int128;  // cross-multiplied: per step without rounding
  return static_cast<Wide>(bytes.first) * steps.second == static_cast<Wide>(bytes.second) * steps.first;
}

bool Comparison::memory_compared() const {
  return std::any_of(memory.begin(), memory.end(), [](const auto& row) { return row.compared; });
}

bool Comparison::memory_equal() const {
  return memory_compared() && memory_by_op.bytes == 0 &&
         std::all_of(memory.begin(), memory.end(), [](const auto& row) { return !row.compared || row.equal(); });
}

bool Comparison::communication_equal() const {
  return communication_compared() &&
         std::all_of(collectives.begin(), collectives.end(), [](const auto& row) { return row.equal(); });
}

Result<Comparison> compare_traces(const Trace& a, const Trace& b, const CompareOptions& options,
                                  const std::string& name_a, const std::string& name_b) {
  Comparison result;
  result.same_plan = same_plan(a.header, b.header);
  if (!result.same_plan && !options.force) {
    return Error{Errc::contradiction,
                 "traces of two different plans: " + described(a.header.plan_hash) + " and " +
                     described(b.header.plan_hash) + listed(strategy_differences(a.header, b.header)),
                 name_a + ", " + name_b, "record both with the same options, or line them up anyway with --force"};
  }
  const bool swapped = a.header.kind == TraceKind::measured && b.header.kind == TraceKind::predicted;
  const Trace& first = swapped ? b : a;
  const Trace& second = swapped ? a : b;
  if (a.header.kind == b.header.kind) {
    result.label = {"a", "b"};
  } else {
    result.label = {"predicted", "measured"};
  }
  result.plan_hash = {first.header.plan_hash, second.header.plan_hash};
  result.strategy = strategy_differences(first.header, second.header);
  result.complete = {first.complete() && first.dropped_count == 0, second.complete() && second.dropped_count == 0};
  result.world_size = std::max(first.header.world_size, second.header.world_size);
  const Pair<std::vector<StepTime>> steps{step_times(first), step_times(second)};
  result.steps = {static_cast<std::int64_t>(steps.first.size()), static_cast<std::int64_t>(steps.second.size())};
  result.step_seconds = {median_step_seconds(steps.first), median_step_seconds(steps.second)};
  compare_memory(first, second, result);
  result.memory_by_op = largest_memory_difference(first, second);
  result.collectives = compare_collectives(first, second, result.steps);
  compare_ops(first, second, options, result);
  return result;
}

}  // namespace shard
