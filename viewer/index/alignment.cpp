// Ops that both documents have give the knots; what would turn time back is left out.
#include "viewer/index/alignment.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "traces/base/numbers.h"
#include "traces/base/rising.h"
#include "traces/memory_by_op.h"
#include "viewer/index/ticks.h"

namespace shard::view {
namespace {

/// An op of a step: rank, op, micro-step. Ops are numbers of SameOps.
using OpOfRank = std::tuple<Rank, std::int64_t, std::int32_t>;

struct OpTime {
  OpOfRank op{};
  TimeRange time{};
  bool in_order = false;  ///< of the compute stream, which follows the plan; those of others run when they may
};

/// A step, or a phase such as creation.
struct StepOps {
  TimeRange range{INT64_MAX, INT64_MIN};  ///< of all its ops
  std::vector<OpTime> ops;
};
using StepKey = std::pair<Phase, std::int32_t>;
using Steps = std::map<StepKey, StepOps>;

void include(TimeRange& range, const TimeRange& more) {
  range = {std::min(range.begin_ns, more.begin_ns), std::max(range.end_ns, more.end_ns)};
}

template <class OpNumber>
Steps steps_of(const Document& document, OpNumber number) {
  const SpanTable& spans = document.trace().spans;
  Steps steps;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (!spans.op[i].valid()) continue;
    const auto span = static_cast<std::uint32_t>(i);
    StepOps& step = steps[{spans.phase[i], spans.step[i]}];
    const TimeRange time = document.time_of(span);
    include(step.range, time);
    const Track& track = document.trace().track_of(spans.track[i]);
    const bool in_order = track.kind == TrackKind::stream && track.stream == Stream::compute;
    if (const std::int64_t op = number(spans.op[i]); op >= 0)
      step.ops.push_back({{track.rank, op, spans.micro_step[i]}, time, in_order});
  }
  for (auto& [key, step] : steps) {
    // Two spans of one op are two parts of it.
    std::ranges::sort(step.ops, {}, [](const OpTime& op) { return std::pair(op.op, op.time.begin_ns); });
    std::vector<OpTime> whole;
    for (const OpTime& op : step.ops) {
      if (!whole.empty() && whole.back().op == op.op) {
        include(whole.back().time, op.time);
      } else {
        whole.push_back(op);
      }
    }
    step.ops = std::move(whole);
  }
  // Other programs' steps are marked and have no ops of ours.
  for (const StepTime& step : document.steps())
    steps.try_emplace({step.phase, step.step}, StepOps{.range = {step.begin_ns, step.end_ns}, .ops = {}});
  return steps;
}

struct StepPair {
  StepKey first, other;
  std::int64_t joined_op_count = 0;        ///< of all ranks
  std::vector<Knot> begins{};              ///< of the ops of one rank that both have, rising in both
  TimeRange first_range{}, other_range{};  ///< of the same
};

/// Both by phase: by number where both have some of a number, else in order.
std::vector<StepPair> paired(const Steps& first, const Steps& other) {
  std::map<Phase, std::array<std::vector<std::int32_t>, 2>> numbers;
  for (const auto& [key, step] : first) numbers[key.first][0].push_back(key.second);
  for (const auto& [key, step] : other) numbers[key.first][1].push_back(key.second);
  std::vector<StepPair> pairs;
  for (const auto& [phase, both] : numbers) {
    std::vector<std::int32_t> shared;
    std::ranges::set_intersection(both[0], both[1], std::back_inserter(shared));
    for (const std::int32_t step : shared) pairs.push_back({.first = {phase, step}, .other = {phase, step}});
    if (!shared.empty()) continue;
    for (std::size_t i = 0; i < std::min(both[0].size(), both[1].size()); ++i)
      pairs.push_back({.first = {phase, both[0][i]}, .other = {phase, both[1][i]}});
  }
  return pairs;
}

/// The knots, by the first time, whose other times rise as well: the longest such list.
std::vector<Knot> rising(std::vector<Knot> knots) {
  std::ranges::sort(knots, {}, [](const Knot& knot) { return std::pair(knot.first_ns, knot.other_ns); });
  std::vector<Knot> kept;
  // Of several at one time of the first, the latest of the other.
  for (const std::size_t at : longest_rising(knots, &Knot::other_ns)) {
    if (!kept.empty() && kept.back().first_ns == knots[at].first_ns) kept.pop_back();
    kept.push_back(knots[at]);
  }
  return kept;
}

void join(StepPair& pair, const StepOps& first, const StepOps& other) {
  pair.first_range = pair.other_range = {INT64_MAX, INT64_MIN};
  std::vector<Knot> begins;
  Rank rank{};  // the first that both have: ranks may be apart, in a prediction too
  auto b = other.ops.begin();
  for (const OpTime& op : first.ops) {
    while (b != other.ops.end() && b->op < op.op) ++b;
    if (b == other.ops.end() || b->op != op.op) continue;
    ++pair.joined_op_count;
    if (!rank.valid()) rank = std::get<Rank>(op.op);
    if (std::get<Rank>(op.op) != rank) continue;
    include(pair.first_range, op.time);
    include(pair.other_range, b->time);
    if (op.in_order && b->in_order) begins.push_back({op.time.begin_ns, b->time.begin_ns});
  }
  if (!rank.valid()) {
    pair.first_range = first.range;
    pair.other_range = other.range;
  }
  begins.push_back({pair.first_range.begin_ns, pair.other_range.begin_ns});
  begins.push_back({pair.first_range.end_ns, pair.other_range.end_ns});
  pair.begins = rising(std::move(begins));
}

/// In the order of time, in both; a step that would turn it back is left out.
std::vector<StepPair> in_order(std::vector<StepPair> pairs) {
  std::ranges::sort(pairs, {}, [](const StepPair& pair) { return pair.first_range.begin_ns; });
  std::vector<StepPair> kept;
  for (StepPair& pair : pairs) {
    if (!kept.empty() && (pair.first_range.begin_ns <= kept.back().first_range.begin_ns ||
                          pair.other_range.begin_ns <= kept.back().other_range.begin_ns))
      continue;
    kept.push_back(std::move(pair));
  }
  return kept;
}

/// Appends where time does not turn back.
void append(std::vector<Knot>& knots, const Knot& knot) {
  if (!knots.empty() && (knot.first_ns <= knots.back().first_ns || knot.other_ns < knots.back().other_ns)) return;
  knots.push_back(knot);
}

/// Every step begins with its counterpart. Where the other is done sooner it rests until the next; where it takes
/// longer than there is room it is drawn shorter.
std::vector<Knot> knots_by_step(const std::vector<StepPair>& pairs) {
  std::vector<Knot> knots;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Knot begin{pairs[i].first_range.begin_ns, pairs[i].other_range.begin_ns};
    append(knots, begin);
    if (i + 1 == pairs.size()) break;
    const Knot next{pairs[i + 1].first_range.begin_ns, pairs[i + 1].other_range.begin_ns};
    const std::int64_t room = next.first_ns - begin.first_ns, needed = next.other_ns - begin.other_ns;
    if (needed < room) append(knots, {begin.first_ns + needed, next.other_ns});
  }
  return knots;
}

std::vector<Knot> knots_by_op(const std::vector<StepPair>& pairs) {
  std::vector<Knot> knots;
  for (const StepPair& pair : pairs)
    for (const Knot& knot : pair.begins) append(knots, knot);
  return knots;
}

std::vector<Knot> knots_by_clock(const Header& a, const Header& b) {
  // wall = clock + (wall_ns - clock_ns) in each.
  if (a.wall_ns == 0 || b.wall_ns == 0) return {{0, 0}};
  return {{a.clock_ns - a.wall_ns + b.wall_ns, b.clock_ns}};
}

std::int64_t rounded(double ns) {
  return std::llround(std::clamp(ns, -4.6e18, 4.6e18));
}

/// `value` from [from, from_end] to [to, to_end].
std::int64_t between(std::int64_t value, std::int64_t from, std::int64_t from_end, std::int64_t to,
                     std::int64_t to_end) {
  if (from_end - from == to_end - to) return to + (value - from);
  const double share = static_cast<double>(value - from) / static_cast<double>(from_end - from);
  return std::clamp(to + rounded(share * static_cast<double>(to_end - to)), to, to_end);
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
  if (knots.empty()) return time_ns;
  const auto next = std::ranges::upper_bound(knots, time_ns, {}, &Knot::first_ns);
  const Knot& from = next == knots.begin() ? *next : *std::prev(next);
  if (next == knots.begin() || next == knots.end()) return from.other_ns + (time_ns - from.first_ns);
  return between(time_ns, from.first_ns, next->first_ns, from.other_ns, next->other_ns);
}

std::int64_t Alignment::to_first(std::int64_t other_ns) const {
  if (knots.empty()) return other_ns;
  const auto next = std::ranges::upper_bound(knots, other_ns, {}, &Knot::other_ns);
  const Knot& from = next == knots.begin() ? *next : *std::prev(next);
  if (next == knots.begin() || next == knots.end()) return from.first_ns + (other_ns - from.other_ns);
  return between(other_ns, from.other_ns, next->other_ns, from.first_ns, next->first_ns);
}

TimeRange Alignment::to_other(TimeRange range) const {
  const std::int64_t begin = to_other(range.begin_ns);
  const std::int64_t end = to_other(range.end_ns);
  return {begin, range.empty() ? end : std::max(begin + 1, end)};
}

PixelRange Alignment::to_other(const PixelRange& view) const {
  const auto before = [&](std::int64_t time_ns) {
    return std::ranges::upper_bound(knots, time_ns, {}, &Knot::first_ns);
  };
  const TimeRange range = to_other(view.time);
  const auto piece = before(view.time.begin_ns);
  if (piece == before(view.time.end_ns - 1) && range.length_ns() >= view.width) return {range, view.width, nullptr};
  auto cuts = std::make_shared<std::vector<std::int64_t>>();
  cuts->reserve(static_cast<std::size_t>(view.width) + 1);
  for (std::int32_t column = 0; column <= view.width; ++column) cuts->push_back(to_other(view.begin(column)));
  return {range, view.width, std::move(cuts)};
}

std::string Alignment::text() const {
  if (mode == AlignMode::clock) {
    const std::int64_t offset = knots.empty() ? 0 : knots.front().first_ns - knots.front().other_ns;
    return std::string("clocks, ") + (offset >= 0 ? "+" : "") + duration_text(offset);
  }
  if (step_count == 0) return "begin on begin: they have no step in common";
  std::string text = std::to_string(step_count) + (step_count == 1 ? " step" : " steps") +
                     (mode == AlignMode::step ? ", begin on begin" : ", op on op");
  if (step >= 0)
    text += "; step " + std::to_string(other_step) + " on step " + std::to_string(step) + ", " +
            show_number(std::round(scale * 1000) / 1000) + " times as long";
  return text;
}

Alignments align(const Document& first, const Document& other) {
  const SameOps ops(first.trace(), other.trace());
  const Steps a = steps_of(first, [&](OpId op) { return ops.of_first(op); });
  const Steps b = steps_of(other, [&](OpId op) { return ops.of_other(op); });
  std::vector<StepPair> pairs = paired(a, b);
  for (StepPair& pair : pairs) join(pair, a.at(pair.first), b.at(pair.other));
  pairs = in_order(std::move(pairs));
  Alignment alignment;
  alignment.step_count = static_cast<std::int64_t>(pairs.size());
  for (const Phase phase : {Phase::steady_step, Phase::first_step}) {
    const auto found = std::ranges::find(pairs, phase, [](const StepPair& pair) { return pair.first.first; });
    if (found == pairs.end()) continue;
    alignment.step = found->first.second;
    alignment.other_step = found->other.second;
    alignment.joined_op_count = found->joined_op_count;
    if (!found->first_range.empty() && !found->other_range.empty())
      alignment.scale =
          static_cast<double>(found->other_range.length_ns()) / static_cast<double>(found->first_range.length_ns());
    break;
  }
  const Knot begins{first.range().begin_ns, other.range().begin_ns};
  const auto with = [&](AlignMode mode, std::vector<Knot> knots) {
    Alignment result = alignment;
    result.mode = mode;
    for (const StepPair& pair : pairs) result.begins.push_back({pair.first_range.begin_ns, pair.other_range.begin_ns});
    result.knots = knots.empty() ? std::vector{begins} : std::move(knots);
    return result;
  };
  return {with(AlignMode::step, knots_by_step(pairs)), with(AlignMode::stretch, knots_by_op(pairs)),
          with(AlignMode::clock, knots_by_clock(first.trace().header, other.trace().header))};
}

StepCurve lateness(const Alignment& by_op) {
  std::vector<std::int64_t> times;
  std::vector<double> values;
  auto step = by_op.begins.begin();
  for (const Knot& knot : by_op.knots) {
    if (step == by_op.begins.end()) break;
    while (std::next(step) != by_op.begins.end() && std::next(step)->first_ns <= knot.first_ns) ++step;
    times.push_back(knot.first_ns);
    values.push_back(static_cast<double>((knot.other_ns - step->other_ns) - (knot.first_ns - step->first_ns)));
  }
  return {std::move(times), std::move(values)};
}

Alignment align(const Document& first, const Document& other, AlignMode mode) {
  return align(first, other)[static_cast<std::size_t>(mode)];
}

}  // namespace shard::view
