// Loading, with what was lost on the way.
#include "viewer/commands/load_session.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "traces/import/combine.h"
#include "viewer/index/ticks.h"
#include "viewer/ui/text.h"

namespace shard::view {
namespace {

/// Of the whole progress, reading a file takes about this share; preparing it the rest.
constexpr double kReading = 0.5;

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::string kept_text(const Document& document) {
  const Trace& trace = document.trace();
  return "shown: " + show_count(static_cast<std::int64_t>(trace.spans.size())) + " spans and " +
         show_count(static_cast<std::int64_t>(trace.memory.size())) + " memory events over " +
         duration_text(document.range().length_ns());
}

void note_losses(const Document& document, const std::string& file, Session& session) {
  const Trace& trace = document.trace();
  for (const Truncated& loss : trace.truncated)
    session.problems.push_back({file,
                                loss.why + " (at byte " + show_count(static_cast<std::int64_t>(loss.offset)) + ")",
                                kept_text(document), ""});
  if (trace.dropped_count > 0)
    session.problems.push_back(
        {file, "the producer lost " + show_count(trace.dropped_count) + " events", kept_text(document), ""});
}

/// A snapshot beside a profile is the same run seen twice, and becomes one trace with it; anything else is compared.
Result<std::vector<NamedTrace>> one_of_each_run(std::vector<NamedTrace> traces) {
  const auto is = [](TraceFormat format) {
    return [format](const NamedTrace& each) { return each.loaded.format == format; };
  };
  const bool both = std::ranges::any_of(traces, is(TraceFormat::pytorch_snapshot)) &&
                    std::ranges::all_of(traces,
                                        [](const NamedTrace& each) {
                                          return each.loaded.format == TraceFormat::pytorch_snapshot ||
                                                 each.loaded.format == TraceFormat::kineto;
                                        }) &&
                    std::ranges::any_of(traces, is(TraceFormat::kineto));
  if (!both) return traces;
  std::string name;
  for (const NamedTrace& each : traces) name += (name.empty() ? "" : " + ") + each.name;
  Result<LoadedTrace> one = combine(std::move(traces));
  if (!one) return one.error();
  std::vector<NamedTrace> result;
  result.push_back({name, std::move(*one)});
  return result;
}

}  // namespace

Result<Session> load_session(const Sources& sources, const LoadProgress& progress) {
  Session session;
  const auto report = [&](const std::string& what, double share) {
    if (progress) progress(what, share);
  };
  if (!sources.search.empty()) {
    Result<SearchResult> search = load_search_result(sources.search);
    if (!search) return search.error();
    session.search = std::move(*search);
  }
  const double each = 1.0 / static_cast<double>(std::max<std::size_t>(1, sources.traces.size()));
  std::vector<NamedTrace> traces;
  for (std::size_t i = 0; i < sources.traces.size(); ++i) {
    const std::string& path = sources.traces[i];
    report("reading " + file_name(path), kReading * static_cast<double>(i) * each);
    Result<LoadedTrace> loaded = load_any(std::filesystem::path(path));
    if (!loaded) return loaded.error();
    if (Result<void> whole = check_whole(*loaded, path); !whole && !sources.incomplete) return whole.error();
    traces.push_back({file_name(path), std::move(*loaded)});
  }
  Result<std::vector<NamedTrace>> shown = one_of_each_run(std::move(traces));
  if (!shown) return shown.error();
  for (std::size_t i = 0; i < shown->size(); ++i) {
    const std::string& name = (*shown)[i].name;
    const auto prepared = [&](double share) {
      report("preparing " + name, kReading + (1 - kReading) * (static_cast<double>(i) + share) * each);
    };
    LoadedTrace& loaded = (*shown)[i].loaded;
    session.documents.push_back(Document::build(std::move(loaded.trace), name, prepared, std::move(loaded.snapshot)));
    note_losses(session.documents.back(), name, session);
  }
  for (std::size_t i = 1; i < session.documents.size(); ++i) {
    report("comparing", 1);
    Result<CompareView> compared = compare_documents(session.documents[0], session.documents[i], sources.force);
    if (!compared) return compared.error();
    session.compared.push_back(std::move(*compared));
  }
  return session;
}

Session session_of(const Error& error) {
  Session session;
  session.problems.push_back({error.where.empty() ? "open" : error.where, error.what, "", error.help});
  return session;
}

}  // namespace shard::view
