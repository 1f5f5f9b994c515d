// Options of `view`.
#include "viewer/commands/view_options.h"

#include <algorithm>
#include <charconv>

#include "sim/cli/sizes.h"
#include "sim/cli/times.h"
#include "viewer/commands/time_option.h"
#include "viewer/ui/actions.h"

namespace shard::view {
namespace {

Result<PixelSize> parse_size(std::string_view text, std::string_view where) {
  const std::size_t x = text.find('x');
  PixelSize size{0, 0};
  if (x != std::string_view::npos) {
    std::from_chars(text.data(), text.data() + x, size.width);
    std::from_chars(text.data() + x + 1, text.data() + text.size(), size.height);
  }
  // Below this nothing is readable; beyond it a picture takes more memory than most traces.
  if (size.width < 160 || size.height < 120 || size.width > 16384 || size.height > 16384)
    return Error{Errc::usage, "'" + std::string(text) + "' is no size of a picture", std::string(where),
                 "WIDTHxHEIGHT, from 160x120 to 16384x16384, such as 1600x1000"};
  return size;
}

Result<ByteRange> parse_byte_range(std::string_view text, std::string_view where) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos)
    return Error{Errc::usage, "'" + std::string(text) + "' is no range of bytes", std::string(where),
                 "two sizes with a colon between, such as 1Gi:1.2Gi"};
  const Result<Bytes> low = cli::parse_bytes(text.substr(0, colon), where);
  if (!low) return low.error();
  const Result<Bytes> high = cli::parse_bytes(text.substr(colon + 1), where);
  if (!high) return high.error();
  if (high->count() <= low->count())
    return Error{Errc::usage, "the range '" + std::string(text) + "' is empty", std::string(where),
                 "the smaller size first"};
  return ByteRange{static_cast<double>(low->count()), static_cast<double>(high->count())};
}

std::vector<cli::Choice<std::optional<Pane>>> pane_choices(int first, int last) {
  std::vector<cli::Choice<std::optional<Pane>>> choices;
  for (int p = first; p < last; ++p) choices.push_back({to_string(static_cast<Pane>(p)), static_cast<Pane>(p)});
  return choices;
}

Result<TimeRange> range_of_step(const Session& session, std::int64_t number) {
  const std::vector<StepTime> none;
  const std::vector<StepTime>& steps = session.empty() ? none : session.documents[0].steps();
  for (const StepTime& step : steps) {
    if (step.step == number) return TimeRange{step.begin_ns, step.end_ns};
  }
  return Error{Errc::contradiction, "the first trace has no step " + std::to_string(number), "--step",
               steps.empty()
                   ? "--range A:B, since it has none at all"
                   : "steps " + std::to_string(steps.front().step) + " to " + std::to_string(steps.back().step)};
}

}  // namespace

void add_view_options(cli::Command& command, ViewOptions& options) {
  cli::Group where = command.group("What to show");
  where.add_custom("at", "peak|TIME",
                   "put the marker at the memory's peak or there (12.5ms; since the begin of the first trace)",
                   [&options](std::string_view text, std::string_view from, const cli::Range&) -> Result<void> {
                     options.at_ns.reset();
                     options.at_peak = text == "peak";
                     if (options.at_peak) return {};
                     const Result<std::int64_t> time = cli::parse_time(text, from);
                     if (!time) return time.error();
                     options.at_ns = *time;
                     return {};
                   });
  where.add_custom("range", "A:B", "select this range of time and show it",
                   [&options](std::string_view text, std::string_view from, const cli::Range&) -> Result<void> {
                     const Result<TimeRange> range = parse_range(text, from);
                     if (!range) return range.error();
                     options.range = *range;
                     return {};
                   });
  where.add("step", &options.step, "N", "show this step of the first trace").least(0).most(2147483647);
  where.add("select", &options.op, "OP", "select the first span of this op and zoom to it").least(0).most(2147483647);
  where.add("rank", &options.rank, "R", "only this rank").least(0).most(2147483647);
  where.add("find", &options.find, "NAME", "search for spans by name, as / does");
  where.add_choice("pane", &options.pane, pane_choices(0, kPaneCount), "one pane fills the picture");
  where.add_choice("tab", &options.tab, pane_choices(static_cast<int>(Pane::selection), kPaneCount),
                   "which table the side panel shows");
  where.add_choice("memory-by", &options.memory_by,
                   {{"site", MemoryBy::site, "the line of your own code that asked for a block"},
                    {"stack", MemoryBy::stack, "the whole stack"},
                    {"category", MemoryBy::category, "what it is for, as far as that is known"}},
                   "what the colours of memory stand for, of an allocator's recording");
  where.add_custom("bytes", "LOW:HIGH", "of an allocator's memory, show this part of the axis (1Gi:1.2Gi)",
                   [&options](std::string_view text, std::string_view from, const cli::Range&) -> Result<void> {
                     const Result<ByteRange> range = parse_byte_range(text, from);
                     if (!range) return range.error();
                     options.bytes = *range;
                     return {};
                   });
  where.add_choice(
      "align", &options.align,
      std::vector<cli::Choice<AlignMode>>{{"step", AlignMode::step, "every step begins with its counterpart"},
                                          {"stretch", AlignMode::stretch, "every op begins with its counterpart"},
                                          {"clock", AlignMode::clock, "by the traces' own clocks"}},
      "how further traces are lined up with the first");
  cli::Group look = command.group("Look");
  look.add_choice("theme", &options.theme,
                  std::vector<cli::Choice<ThemeName>>{{"dark", ThemeName::dark}, {"light", ThemeName::light}},
                  "colours");
  look.add_custom("size", "WIDTHxHEIGHT", "of the picture or window (1600x1000)",
                  [&options](std::string_view text, std::string_view from, const cli::Range&) -> Result<void> {
                    const Result<PixelSize> size = parse_size(text, from);
                    if (!size) return size.error();
                    options.size = *size;
                    return {};
                  });
  look.add("scale", &options.scale, "FACTOR", "size of text and lines; 2 for a high-density picture")
      .default_text("1, in a window the screen's")
      .least(0.5)
      .most(4);
}

Result<ViewState> first_state(const Session& session, const ViewOptions& options) {
  ViewState state = initial_state(session);
  state.theme = options.theme;
  state.only = options.pane;
  state.align = options.align;
  state.memory_by = options.memory_by;
  state.bytes = options.bytes;
  state.camera = fit(state.camera.origin_ns, whole_range(session, state.align));
  state.query = options.find;
  if (options.rank) {
    const Rank rank{static_cast<std::int32_t>(*options.rank)};
    const bool known = std::ranges::any_of(
        session.documents, [&](const Document& d) { return std::ranges::find(d.ranks(), rank) != d.ranks().end(); });
    if (!known)
      return Error{Errc::contradiction, "no trace has a rank " + std::to_string(rank.value), "--rank",
                   session.empty() ? "" : "ranks 0 to " + std::to_string(session.documents[0].ranks().back().value)};
    state.rank = rank;
  }
  const std::int64_t origin = state.camera.origin_ns;
  std::optional<TimeRange> asked;  // where --select looks first
  if (options.step) {
    if (options.range)
      return Error{Errc::contradiction, "--step and --range both say what to show", "options", "keep one of them"};
    const Result<TimeRange> step = range_of_step(session, *options.step);
    if (!step) return step.error();
    asked = *step;
    state.camera = fit(origin, *step);
  }
  if (options.range) {
    state.range = TimeRange{origin + options.range->begin_ns, origin + options.range->end_ns};
    state.camera = fit(origin, *state.range);
    state.tab = Pane::statistics;
    asked = state.range;
  }
  if (options.at_ns) {
    state.marker_ns = origin + *options.at_ns;
    if (!visible(state.camera).contains(*state.marker_ns)) state.camera = center(state.camera, *state.marker_ns);
    state.tab = Pane::live;
  }
  if (options.at_peak) {
    go_to_peak(session, state);
    state.tab = Pane::live;
  }
  if (options.op) {
    bool found = false;
    for (std::size_t d = 0; d < session.documents.size() && !found; ++d) {
      const OpId op{static_cast<std::int32_t>(*options.op)};
      // With a range or a step, the op as it ran there.
      std::int64_t not_before = asked ? asked->begin_ns : INT64_MIN;
      if (asked && d > 0) not_before = alignment_of(session, state.align, d).to_other(not_before);
      const SpanTable& spans = session.documents[d].trace().spans;
      auto span = find_op(session.documents[d], op, state.rank, not_before);
      // Another rank may still be in the step before.
      while (d == 0 && options.step && span && spans.step[*span] < *options.step)
        span = find_op(session.documents[d], op, state.rank, spans.begin_ns[*span] + 1);
      if (!span) span = find_op(session.documents[d], op, state.rank);
      if (!span) continue;
      found = true;
      state.document = d;
      state.tab = Pane::selection;
      go_to_span(session, state, {d, *span}, !asked);
    }
    if (!found)
      return Error{Errc::contradiction, "no trace has a span of op " + std::to_string(*options.op), "--select",
                   "'shardscope plan' lists the ops"};
  }
  if (options.tab) state.tab = *options.tab;
  return state;
}

}  // namespace shard::view
