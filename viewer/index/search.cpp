// Names are matched once each; spans are then found row by row, from the time in question outward.
#include "viewer/index/search.h"

#include <algorithm>
#include <string>
#include <tuple>

namespace shard::view {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](char c) { return lower(c); });
  return result;
}

/// Where a span stands in the order of begin, then index.
using Key = std::pair<std::int64_t, std::int64_t>;

}  // namespace

NameMatch find_names(const Document& document, std::string_view text) {
  const Trace& trace = document.trace();
  NameMatch match;
  match.hits.assign(trace.names.size(), 0);
  if (text.empty()) return match;
  const std::string wanted = lower(text);
  for (std::size_t i = 0; i < trace.names.size(); ++i) {
    if (lower(trace.names[i]).find(wanted) == std::string::npos) continue;
    match.hits[i] = 1;
    match.names.push_back(NameId{static_cast<std::int32_t>(i)});
  }
  if (match.names.empty()) return match;
  for (const NameId name : trace.spans.name) match.span_count += match.contains(name) ? 1 : 0;
  return match;
}

std::optional<std::uint32_t> next_match(const Document& document, const NameMatch& match, std::int64_t time_ns,
                                        std::optional<std::uint32_t> after) {
  if (match.empty()) return std::nullopt;
  const SpanTable& table = document.trace().spans;
  const Key least = after ? Key{table.begin_ns[*after], *after} : Key{time_ns, -1};
  Key best{INT64_MAX, INT64_MAX};
  for (const Row& row : document.rows()) {
    const RowIndex& index = row.index;
    for (std::size_t i = index.begin_before(table, least.first); i < index.size(); ++i) {
      const std::uint32_t span = index.spans()[i];
      const Key key{table.begin_ns[span], span};
      if (key.first > best.first) break;
      if (key > least && key < best && match.contains(table.name[span])) best = key;
    }
  }
  if (best.second == INT64_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(best.second);
}

std::optional<std::uint32_t> previous_match(const Document& document, const NameMatch& match, std::int64_t time_ns,
                                            std::optional<std::uint32_t> before) {
  if (match.empty()) return std::nullopt;
  const SpanTable& table = document.trace().spans;
  const Key most = before ? Key{table.begin_ns[*before], *before} : Key{time_ns, INT64_MAX};
  Key best{INT64_MIN, -1};
  for (const Row& row : document.rows()) {
    const RowIndex& index = row.index;
    for (std::size_t i = index.begin_before(table, most.first + 1); i-- > 0;) {
      const std::uint32_t span = index.spans()[i];
      const Key key{table.begin_ns[span], span};
      if (key.first < best.first) break;
      if (key < most && key > best && match.contains(table.name[span])) best = key;
    }
  }
  if (best.second < 0) return std::nullopt;
  return static_cast<std::uint32_t>(best.second);
}

std::optional<std::uint32_t> find_op(const Document& document, OpId op, Rank rank, std::int64_t not_before_ns) {
  const SpanTable& table = document.trace().spans;
  std::optional<std::uint32_t> best;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table.op[i] != op || table.begin_ns[i] < not_before_ns) continue;
    const auto span = static_cast<std::uint32_t>(i);
    if (rank.valid() && document.rank_of(span) != rank) continue;
    if (!best || table.begin_ns[i] < table.begin_ns[*best]) best = span;
  }
  return best;
}

std::optional<std::uint32_t> counterpart(const Document& from, std::uint32_t span, const Document& to) {
  const SpanTable &a = from.trace().spans, &b = to.trace().spans;
  if (!a.op[span].valid()) return std::nullopt;
  const Rank rank = from.rank_of(span);
  std::optional<std::uint32_t> best;
  const auto badness = [&](std::size_t i) { return std::tuple(b.step[i] != a.step[span], b.step[i], b.begin_ns[i]); };
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (b.op[i] != a.op[span] || b.phase[i] != a.phase[span] || b.micro_step[i] != a.micro_step[span]) continue;
    const auto candidate = static_cast<std::uint32_t>(i);
    if (to.rank_of(candidate) != rank) continue;
    if (!best || badness(i) < badness(*best)) best = candidate;
  }
  return best;
}

}  // namespace shard::view
