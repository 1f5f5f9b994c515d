// Facts about all open documents.
#include "viewer/ui/session.h"

#include <algorithm>

namespace shard::view {

const Alignment& alignment_of(const Session& session, AlignMode mode, std::size_t document) {
  static const Alignment identity;
  if (document == 0 || document > session.compared.size()) return identity;
  return session.compared[document - 1].alignments[static_cast<std::size_t>(mode)];
}

TimeRange whole_range(const Session& session, AlignMode mode) {
  TimeRange whole;
  for (std::size_t i = 0; i < session.documents.size(); ++i) {
    TimeRange range = session.documents[i].range();
    if (range.empty() && session.documents[i].trace().memory.empty()) continue;
    if (i > 0) {
      const Alignment& alignment = alignment_of(session, mode, i);
      range = {alignment.to_first(range.begin_ns), alignment.to_first(range.end_ns)};
    }
    whole = whole.empty() ? range
                          : TimeRange{std::min(whole.begin_ns, range.begin_ns), std::max(whole.end_ns, range.end_ns)};
  }
  return whole;
}

std::string short_name(const Session& session, std::size_t document) {
  const TraceKind kind = session.documents[document].trace().header.kind;
  const auto alike =
      std::ranges::count_if(session.documents, [&](const Document& d) { return d.trace().header.kind == kind; });
  if (alike <= 1 && session.documents.size() > 1) return to_string(kind);
  return session.documents[document].label();
}

}  // namespace shard::view
