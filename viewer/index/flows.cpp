// Flow frames name spans by track and time; without them the lifetimes of units' buffers say who feeds whom.
#include "viewer/index/flows.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <unordered_map>

namespace shard::view {
namespace {

/// The span of a track that covers a time: the innermost; else one that ends, or has no length, just there.
std::optional<std::uint32_t> span_covering(const Document& document, TrackId track, std::int64_t time_ns) {
  const SpanTable& table = document.trace().spans;
  std::optional<std::uint32_t> best;
  const auto duration = [&](std::uint32_t span) { return table.duration_ns[span]; };
  for (const TrackRows& rows : document.tracks()) {
    if (rows.track != track) continue;
    for (std::size_t row = rows.first_row; row < rows.first_row + rows.row_count; ++row) {
      const std::optional<std::uint32_t> span = document.span_at(row, time_ns);
      if (span && (!best || duration(*span) < duration(*best))) best = span;
    }
    for (std::size_t row = rows.first_row; !best && row < rows.first_row + rows.row_count; ++row) {
      const RowIndex& index = document.rows()[row].index;
      const std::size_t next = index.begin_before(table, time_ns + 1);
      if (next > 0 && document.time_of(index.spans()[next - 1]).end_ns == time_ns) best = index.spans()[next - 1];
    }
  }
  return best;
}

/// One run of an op on one rank.
using OpRun = std::tuple<Rank, OpId, Phase, std::int32_t>;

/// The first span of each run of the ops in question.
class SpansOfOps {
 public:
  void want(OpId op) {
    if (op.valid()) wanted_[op.value] = true;
  }
  void find(const Document& document) {
    const SpanTable& table = document.trace().spans;
    for (std::size_t i = 0; i < table.size(); ++i) {
      if (!table.op[i].valid() || !wanted_.contains(table.op[i].value)) continue;
      const auto span = static_cast<std::uint32_t>(i);
      const auto [at, added] =
          spans_.try_emplace({document.rank_of(span), table.op[i], table.phase[i], table.step[i]}, span);
      if (!added && table.begin_ns[i] < table.begin_ns[at->second]) at->second = span;
    }
  }
  [[nodiscard]] std::optional<std::uint32_t> operator()(const OpRun& run) const {
    const auto at = spans_.find(run);
    return at == spans_.end() ? std::nullopt : std::optional(at->second);
  }

 private:
  std::unordered_map<std::int32_t, bool> wanted_;
  std::map<OpRun, std::uint32_t> spans_;
};

OpRun run_of(const MemoryTable& table, std::size_t event) {
  return {table.rank[event], table.op[event], table.phase[event], table.step[event]};
}

std::vector<FlowLink> from_buffers(const Document& document) {
  const Trace& trace = document.trace();
  const MemoryTable& memory = trace.memory;
  struct Lifetime {
    std::size_t acquired, released;
  };
  std::vector<Lifetime> lifetimes;
  SpansOfOps spans;
  std::map<std::tuple<Rank, Memory, BufferId>, std::size_t> open;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const bool carries = memory.category[i] == Category::gathered || memory.category[i] == Category::gradient;
    if (!carries || !memory.unit[i].valid()) continue;
    const std::tuple key{memory.rank[i], memory.memory[i], memory.buffer[i]};
    if (memory.delta_bytes[i] > 0) {
      open[key] = i;
    } else if (const auto at = open.find(key); at != open.end()) {
      lifetimes.push_back({at->second, i});
      spans.want(memory.op[at->second]);
      spans.want(memory.op[i]);
      open.erase(at);
    }
  }
  spans.find(document);

  std::vector<FlowLink> links;
  std::vector<std::tuple<Rank, UnitId, std::uint32_t>> steps;
  for (const Lifetime& life : lifetimes) {
    const auto from = spans(run_of(memory, life.acquired)), to = spans(run_of(memory, life.released));
    if (!from || !to || *from == *to) continue;
    links.push_back({*from, *to, FlowKind::dependency, true});
    if (document.class_of(*to) == SpanClass::optimizer) {
      steps.emplace_back(memory.rank[life.released], memory.unit[life.released], *to);
    }
  }
  if (steps.empty()) return links;

  std::map<std::pair<Rank, UnitId>, std::vector<std::uint32_t>> gathers;
  const SpanTable& table = trace.spans;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto span = static_cast<std::uint32_t>(i);
    if (!table.unit[i].valid() || trace.track_of(table.track[i]).stream != Stream::communication) continue;
    if (document.class_of(span) == SpanClass::gather) gathers[{document.rank_of(span), table.unit[i]}].push_back(span);
  }
  const auto by_begin = [&](std::uint32_t a, std::uint32_t b) { return table.begin_ns[a] < table.begin_ns[b]; };
  for (auto& [key, list] : gathers) std::stable_sort(list.begin(), list.end(), by_begin);
  for (const auto& [rank, unit, step] : steps) {
    const auto at = gathers.find({rank, unit});
    if (at == gathers.end()) continue;
    const std::int64_t end = document.time_of(step).end_ns;
    const auto next = std::find_if(at->second.begin(), at->second.end(),
                                   [&](std::uint32_t span) { return table.begin_ns[span] >= end; });
    if (next != at->second.end()) links.push_back({step, *next, FlowKind::dependency, true});
  }
  return links;
}

std::vector<FlowLink> from_file(const Document& document) {
  std::vector<FlowLink> links;
  for (const Flow& flow : document.trace().flows) {
    const auto from = span_covering(document, flow.from_track, flow.from_ns);
    const auto to = span_covering(document, flow.to_track, flow.to_ns);
    if (from && to) links.push_back({*from, *to, flow.kind, false});
  }
  return links;
}

}  // namespace

FlowIndex::FlowIndex(const Document& document)
    : links_(document.trace().flows.empty() ? from_buffers(document) : from_file(document)) {
  const auto less = [](const FlowLink& a, const FlowLink& b) {
    return std::tuple(a.from, a.to, a.kind) < std::tuple(b.from, b.to, b.kind);
  };
  std::sort(links_.begin(), links_.end(), less);
  links_.erase(std::unique(links_.begin(), links_.end()), links_.end());
  by_target_.resize(links_.size());
  std::iota(by_target_.begin(), by_target_.end(), 0u);
  std::sort(by_target_.begin(), by_target_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(links_[a].to, links_[a].from) < std::pair(links_[b].to, links_[b].from);
  });
}

std::vector<FlowLink> FlowIndex::from(std::uint32_t span) const {
  const auto first = std::lower_bound(links_.begin(), links_.end(), span,
                                      [](const FlowLink& link, std::uint32_t s) { return link.from < s; });
  std::vector<FlowLink> result;
  for (auto at = first; at != links_.end() && at->from == span; ++at) result.push_back(*at);
  return result;
}

std::vector<FlowLink> FlowIndex::to(std::uint32_t span) const {
  const auto first = std::lower_bound(by_target_.begin(), by_target_.end(), span,
                                      [&](std::uint32_t link, std::uint32_t s) { return links_[link].to < s; });
  std::vector<FlowLink> result;
  for (auto at = first; at != by_target_.end() && links_[*at].to == span; ++at) result.push_back(links_[*at]);
  return result;
}

}  // namespace shard::view
