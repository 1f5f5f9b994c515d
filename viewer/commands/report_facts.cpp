// The numbers and pictures of a report.
#include <algorithm>
#include <cmath>
#include <optional>

#include "traces/idle.h"
#include "traces/profile.h"
#include "viewer/commands/pictures.h"
#include "viewer/commands/report.h"
#include "viewer/commands/report_allocator.h"
#include "viewer/commands/report_holders.h"
#include "viewer/index/ticks.h"
#include "viewer/ui/chunk_pane.h"
#include "viewer/ui/derived.h"
#include "viewer/ui/segment_pane.h"
#include "viewer/ui/span_text.h"
#include "viewer/ui/text.h"

namespace shard::view {

cli::Cell bytes_cell(std::int64_t bytes) {
  return {bytes, size_text(bytes)};
}

namespace {

constexpr std::size_t kResiduals = 20;
constexpr std::size_t kKept = 5;
constexpr int kPictureWidth = 1200;
/// Twice the pixels: pages are looked at on dense screens.
constexpr int kPictureScale = 2;

cli::Cell seconds_cell(double seconds) {
  return {seconds, duration_text(static_cast<std::int64_t>(std::llround(seconds * 1e9)))};
}

ReportTable overview(const Session& session) {
  ReportTable result{"What was recorded", {}, ""};
  cli::Table& table = result.table;
  table.columns = {{"trace", "trace", cli::Align::left},
                   {"kind", "kind", cli::Align::left},
                   {"ranks", "ranks"},
                   {"world_size", "of"},
                   {"spans", "spans"},
                   {"memory_events", "memory events"},
                   {"length_seconds", "length"},
                   {"step_seconds", "median step"},
                   {"model", "model", cli::Align::left}};
  for (const Document& document : session.documents) {
    const Trace& trace = document.trace();
    const auto& metadata = trace.header.metadata;
    const auto model = metadata.find("model");
    table.rows.push_back({document.label(), to_string(trace.header.kind),
                          static_cast<std::int64_t>(ranks_of(trace).size()),
                          static_cast<std::int64_t>(trace.header.world_size),
                          static_cast<std::int64_t>(trace.spans.size()), static_cast<std::int64_t>(trace.memory.size()),
                          seconds_cell(static_cast<double>(document.range().length_ns()) * 1e-9),
                          document.steps().empty() ? cli::Cell() : seconds_cell(median_step_seconds(document.steps())),
                          model == metadata.end() ? cli::Cell() : cli::Cell(model->second)});
  }
  if (!session.documents.empty()) {
    for (const auto& [name, value] : plan_facts(session.documents[0]))
      result.note += (result.note.empty() ? "Planned with " : ", ") + name + " " + value;
    if (!result.note.empty()) result.note += ".";
  }
  return result;
}

/// Peaks of all ranks; the highest alone where there are many.
ReportTable peaks(const Session& session) {
  ReportTable result{"Memory peaks", {}, ""};
  cli::Table& table = result.table;
  const bool reserved = std::ranges::all_of(session.documents, &Document::of_allocator);
  table.columns = {{"trace", "trace", cli::Align::left},
                   {"rank", "rank"},
                   {"memory", "memory", cli::Align::left},
                   {"live_peak_bytes", "live peak"},
                   {"peak_bytes", reserved ? "reserved at most" : "arena's extent"},
                   {"capacity_bytes", "capacity"},
                   {"time_seconds", "at"}};
  for (std::size_t d = 0; d < session.documents.size(); ++d) {
    const Document& document = session.documents[d];
    std::vector<const MemorySeries*> all;
    for (const MemorySeries& series : document.memory()) all.push_back(&series);
    constexpr std::size_t kMost = 16;
    if (all.size() > kMost) {
      std::ranges::stable_sort(all, std::ranges::greater{}, [](const MemorySeries* s) { return s->peak_bytes(); });
      result.note = "The highest " + std::to_string(kMost) + " of " + std::to_string(all.size()) + ".";
      all.resize(kMost);
    }
    for (const MemorySeries* series : all) {
      const auto known = [](std::int64_t bytes) { return bytes > 0 ? bytes_cell(bytes) : cli::Cell(); };
      table.rows.push_back(
          {short_name(session, d), static_cast<std::int64_t>(series->rank().value), to_string(series->memory()),
           bytes_cell(series->peak_bytes()), known(series->arena_peak_bytes()), known(series->capacity_bytes()),
           seconds_cell(static_cast<double>(series->peak_time_ns() - document.range().begin_ns) * 1e-9)});
    }
  }
  return result;
}

ReportTable residuals(const Session& session, std::size_t other) {
  const CompareView& view = session.compared[other - 1];
  ReportTable result{"Largest residuals: " + short_name(session, other) + " against " + short_name(session, 0), {}, ""};
  result.table.columns = {{"op", "op", cli::Align::left},
                          {"rank", "rank"},
                          {"phase", "phase", cli::Align::left},
                          {"first_seconds", short_name(session, 0)},
                          {"other_seconds", short_name(session, other)},
                          {"residual_seconds", "residual"},
                          {"first_waiting_seconds", short_name(session, 0) + " waiting"},
                          {"other_waiting_seconds", short_name(session, other) + " waiting"}};
  for (std::size_t i = 0; i < std::min(kResiduals, view.by_time.size()); ++i) {
    const Residual& row = view.by_time[i];
    const double first = view.swapped ? row.op.seconds.second : row.op.seconds.first;
    const double second = view.swapped ? row.op.seconds.first : row.op.seconds.second;
    cli::Cell difference = seconds_cell(row.seconds);
    difference.shown = with_sign(difference.shown, row.seconds);
    result.table.rows.push_back(
        {row.op.name, static_cast<std::int64_t>(row.op.rank.value), in_words(to_string(row.op.phase)),
         seconds_cell(first), seconds_cell(second), difference,
         seconds_cell(view.swapped ? row.op.waiting_seconds.second : row.op.waiting_seconds.first),
         seconds_cell(view.swapped ? row.op.waiting_seconds.first : row.op.waiting_seconds.second)});
  }
  result.note = "Seconds per step, waiting apart; lined up: " +
                view.alignments[static_cast<std::size_t>(AlignMode::stretch)].text() + ".";
  return result;
}

std::vector<std::string> verdicts(const Session& session, const std::optional<commands::HoldersAnswer>& held) {
  std::vector<std::string> lines;
  const Document& document = session.documents[0];
  if (std::string idle = verdict(idle_time(document.trace())); !idle.empty()) lines.push_back(std::move(idle));
  if (const MemorySeries* series = document.highest_memory()) {
    std::string line = "Peak " + size_text(series->peak_bytes()) + " of " + to_string(series->memory()) +
                       " memory, on rank " + std::to_string(series->rank().value) + ", " +
                       duration_text(series->peak_time_ns() - document.range().begin_ns) + " after the begin";
    if (series->capacity_bytes() > 0)
      line += "; " +
              show_percent(static_cast<double>(series->peak_bytes()) / static_cast<double>(series->capacity_bytes())) +
              " of the capacity of " + size_text(series->capacity_bytes());
    lines.push_back(line + ".");
  }
  if (held && held->segments) {
    for (std::string& words : in_words(document.trace(), *held->segments, fragmentation_of(*held->segments), kKept))
      lines.push_back(std::move(words));
  }
  for (std::size_t d = 1; d < session.documents.size(); ++d) {
    const Comparison& c = session.compared[d - 1].comparison;
    const std::string pair = short_name(session, d) + " against " + short_name(session, 0);
    lines.push_back(pair + ": memory " +
                    (!c.memory_equal()         ? "differs"
                     : c.memory_by_op.compared ? "equal at every op, every compared peak to the byte"
                                               : "equal, every compared peak to the byte") +
                    "; communication " + (c.communication_equal() ? "equal, counts and bytes" : "differs") + ".");
    const bool swapped = session.compared[d - 1].swapped;
    const double own = swapped ? c.step_seconds.second : c.step_seconds.first;
    const double theirs = swapped ? c.step_seconds.first : c.step_seconds.second;
    if (own > 0 && theirs > 0)
      lines.push_back(pair + ": a step takes " + duration_text(static_cast<std::int64_t>(theirs * 1e9)) +
                      " instead of " + duration_text(static_cast<std::int64_t>(own * 1e9)) + ", " +
                      show_number(theirs / own) + " times as long.");
    if (!c.same_plan) lines.push_back(pair + ": the plans differ; lined up because --force was given.");
  }
  for (const Problem& problem : session.problems)
    lines.push_back(problem.file + ": " + problem.what + "; " + problem.kept + ".");
  return lines;
}

/// What tells more than the whole run: with several traces the step that they are lined up by, from its begin to its
/// end in all of them; else the first steps.
ViewState telling_view(const Session& session, ViewState state) {
  const std::vector<StepTime>& steps = session.documents[0].steps();
  if (session.documents.size() > 1) {
    state.align = AlignMode::stretch;
    const Alignment& alignment = alignment_of(session, state.align, 1);
    for (const StepTime& step : steps) {
      if (step.step == alignment.step) state.camera = fit(state.camera.origin_ns, {step.begin_ns, step.end_ns});
    }
  } else if (steps.size() > 1) {
    state.camera =
        fit(state.camera.origin_ns, {steps.front().begin_ns, steps[std::min<std::size_t>(steps.size(), 3) - 1].end_ns});
  }
  return state;
}

}  // namespace

Result<Report> make_report(const Session& session, bool light, const commands::HoldersOptions& options) {
  Report report;
  Result<std::optional<commands::HoldersAnswer>> held = who_held(session, options);
  if (!held) return held.error();
  report.held = std::move(*held);
  report.title = session.documents.size() > 1 ? "Shardscope: " : "Shardscope: memory and time of ";
  for (std::size_t d = 0; d < session.documents.size(); ++d)
    report.title += (d == 0 ? "" : " against ") + session.documents[d].label();
  report.verdicts = verdicts(session, report.held);
  ViewState state = initial_state(session);
  state.theme = light ? ThemeName::light : ThemeName::dark;
  if (report.held) {
    state.rank = report.held->held.rank;
    state.memory = report.held->held.memory;
    if (options.by == HeldBy::stack) state.memory_by = MemoryBy::stack;
    if (options.at_ns) state.marker_ns = report.held->held.time_ns;
  }
  const ViewState step = telling_view(session, state);
  const bool compares = session.documents.size() > 1;
  const Document& first = session.documents[0];
  const bool memory = first.highest_memory() != nullptr;
  struct Wanted {
    bool there;
    std::string title;
    Pane pane;
    const ViewState* from;
    int height;
  };
  ViewState by_category = state;
  by_category.memory_by = MemoryBy::category;
  const bool sites = report.held && !first.trace().stacks.empty();
  const std::string memory_title =
      compares ? "Memory over the whole run"
      : sites  ? (state.memory_by == MemoryBy::stack ? "Memory by stack" : "Memory by the line that asked for it")
               : "Memory by category";
  // A picture that says "not known" alone says nothing.
  const bool categories =
      sites && std::ranges::any_of(first.trace().memory.category, [](Category c) { return c != Category::not_known; });
  const std::string where = compares ? "one step, as long in all" : "the first steps";
  for (const Wanted& each :
       {Wanted{memory && compares, "Memory over " + where + ", with the difference below", Pane::memory, &step, 460},
        Wanted{memory, memory_title, Pane::memory, &state,
               report.held ? 560
               : compares  ? 460
                           : 400},
        Wanted{categories, "Memory by category", Pane::memory, &by_category, 400},
        Wanted{report.held && report.held->segments, "The allocator's segments, their blocks and gaps", Pane::segments,
               &state, 300},
        Wanted{!first.trace().spans.empty(), "Lanes over " + where, Pane::timeline, &step, compares ? 420 : 320},
        Wanted{chunk_document(session, state).has_value(), "Which chunk is where", Pane::chunks, &step, 300}}) {
    if (!each.there) continue;
    ViewState only = *each.from;
    only.only = each.pane;
    const Picture drawn =
        picture_of(session, only, kPictureWidth * kPictureScale, each.height * kPictureScale, kPictureScale);
    Result<std::string> png = png_bytes(drawn, PngEffort::small);
    if (!png) return png.error();
    report.pictures.push_back({each.title, std::move(*png), kPictureWidth});
  }
  // Of an allocator's recording the one question is who held memory.
  if (report.held) {
    report.tables.push_back(holders_table(session, *report.held, options));
    if (std::optional<ReportTable> settings = allocator_table(session, report.held->held.rank))
      report.tables.push_back(*std::move(settings));
  }
  report.tables.push_back(overview(session));
  report.tables.push_back(peaks(session));
  if (!report.held) report.tables.push_back(holders_by_op(session, options));
  for (std::size_t d = 1; d < session.documents.size(); ++d) report.tables.push_back(residuals(session, d));
  add_profile(session, report);
  std::erase_if(report.tables, [](const ReportTable& table) { return table.table.rows.empty(); });
  return report;
}

}  // namespace shard::view
