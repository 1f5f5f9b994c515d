// What panes share.
#include "viewer/ui/derived.h"

namespace shard::view {

const char* to_string(Pane pane) {
  switch (pane) {
    case Pane::timeline: return "timeline";
    case Pane::memory: return "memory";
    case Pane::chunks: return "chunks";
    case Pane::counters: return "counters";
    case Pane::segments: return "segments";
    case Pane::selection: return "selection";
    case Pane::live: return "live";
    case Pane::statistics: return "statistics";
    case Pane::residuals: return "residuals";
    case Pane::search: return "search";
  }
  return "?";
}

ViewState initial_state(const Session& session) {
  ViewState state;
  const TimeRange whole = whole_range(session);
  const std::int64_t origin = session.empty() ? 0 : session.documents[0].range().begin_ns;
  state.camera = fit(origin, whole);
  if (session.documents.size() > 1) state.tab = Pane::residuals;
  if (session.documents.empty() && session.search) state.tab = Pane::search;
  return state;
}

const NameMatch& matches(const Session& session, const ViewState& state, Derived& derived) {
  return derived.match.get({state.document, state.query}, [&] {
    return session.empty() ? NameMatch{} : find_names(session.documents[state.document], state.query);
  });
}

const MemorySeries* shown_memory(const Document& document, const ViewState& state, const MemorySeries* like) {
  if (like != nullptr) return document.memory_of(like->rank(), like->memory());
  const MemorySeries* best = nullptr;
  for (const MemorySeries& series : document.memory()) {
    if (state.rank.valid() && series.rank() != state.rank) continue;
    if (state.memory && series.memory() != *state.memory) continue;
    // Device memory is what runs out, however large the host's is.
    const auto weight = [](const MemorySeries& s) { return std::pair(s.memory() == Memory::device, s.peak_bytes()); };
    if (best == nullptr || weight(series) > weight(*best)) best = &series;
  }
  return best;
}

std::int64_t marker_time(const Session& session, const ViewState& state) {
  if (state.marker_ns) return *state.marker_ns;
  if (session.empty()) return 0;
  const MemorySeries* series = shown_memory(session.documents[0], state);
  return series == nullptr ? session.documents[0].range().begin_ns : series->peak_time_ns();
}

TimeRange range_of_interest(const ViewState& state) {
  return state.range ? *state.range : visible(state.camera);
}

std::optional<std::uint32_t> span_of_op(const Session& session, Derived& derived, std::size_t document, OpId op,
                                        Rank rank) {
  const auto key = std::tuple(document, op, rank);
  const auto found = derived.op_spans.find(key);
  if (found != derived.op_spans.end()) return found->second;
  return derived.op_spans.emplace(key, find_op(session.documents[document], op, rank)).first->second;
}

const FlowIndex& flows_of(const Session& session, Derived& derived, std::size_t document) {
  const auto found = derived.flows.find(document);
  if (found != derived.flows.end()) return found->second;
  return derived.flows.emplace(document, FlowIndex(session.documents[document])).first->second;
}

}  // namespace shard::view
