// Holders of the first trace, and what is left when the largest are told.
#include "viewer/commands/report_holders.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "traces/base/wrapping.h"
#include "traces/sites.h"
#include "viewer/index/ticks.h"
#include "viewer/ui/derived.h"
#include "viewer/ui/text.h"

namespace shard::view {
namespace {

/// Callers that a row by stack names.
constexpr std::size_t kCallers = 6;

cli::Cell share_cell(std::int64_t part, std::int64_t whole) {
  const double share = static_cast<double>(part) / static_cast<double>(std::max<std::int64_t>(1, whole));
  return {share, show_percent(share)};
}

std::string when(const commands::HoldersOptions& options) {
  return options.at_ns ? "at " + exact_time_text(*options.at_ns) : "at the peak";
}

std::string callers(const Trace& trace, StackId stack) {
  std::string text;
  for (const std::string& frame : stack_text(trace, stack, kCallers)) text += (text.empty() ? "" : " \u2190 ") + frame;
  return text;
}

}  // namespace

Result<std::optional<commands::HoldersAnswer>> who_held(const Session& session,
                                                        const commands::HoldersOptions& options) {
  const Document& document = session.documents[0];
  if (!document.of_allocator()) return std::optional<commands::HoldersAnswer>();
  commands::HoldersOptions asked = options;
  // Without stacks the segments are still worth a word.
  asked.asked = options.asked || document.highest_memory() != nullptr;
  return asked.of(document.trace(), document.snapshot(), document.range().begin_ns);
}

ReportTable holders_table(const Session& session, const commands::HoldersAnswer& answer,
                          const commands::HoldersOptions& options) {
  const Document& document = session.documents[0];
  const Trace& trace = document.trace();
  const Held& held = answer.held;
  const bool by_stack = options.by == HeldBy::stack;
  ReportTable result{"Who held memory " + when(options), {}, ""};
  std::vector<cli::Column>& columns = result.table.columns;
  columns = {{"held_by", "held by", cli::Align::left}, {"file", "file", cli::Align::left}};
  if (by_stack) columns.push_back({"stack", "called from", cli::Align::left});
  for (const auto& [key, title] :
       {std::pair{"blocks", "blocks"}, {"bytes", "takes"}, {"requested_bytes", "asked for"}, {"share", "share"}})
    columns.push_back({key, title});
  const auto row = [&](const std::string& name, const std::string& file, const std::string& stack, const Holder& of) {
    std::vector<cli::Cell> cells{name, file};
    if (by_stack) cells.emplace_back(stack);
    for (cli::Cell& cell : std::vector<cli::Cell>{of.blocks, bytes_cell(of.bytes), bytes_cell(of.requested_bytes),
                                                  share_cell(of.bytes, held.allocated_bytes)})
      cells.push_back(std::move(cell));
    result.table.rows.push_back(std::move(cells));
  };
  const std::size_t shown = std::min(static_cast<std::size_t>(options.top), held.holders.size());
  Holder rest;
  for (std::size_t i = 0; i < held.holders.size(); ++i) {
    const Holder& holder = held.holders[i];
    if (i >= shown) {
      rest.bytes = wrapping_sum(rest.bytes, holder.bytes);
      rest.requested_bytes = wrapping_sum(rest.requested_bytes, holder.requested_bytes);
      rest.blocks += holder.blocks;
      continue;
    }
    const std::string name = site_text(trace, holder.site);
    const std::string file(holder.site.valid() ? trace.name_of(trace.frame_of(holder.site).file) : "");
    row(name.empty() ? "no stack" : name, file, callers(trace, holder.stack), holder);
  }
  if (rest.blocks > 0)
    row("(" + show_count(static_cast<std::int64_t>(held.holders.size() - shown)) + " others)", "", "", rest);
  result.note = "Rank " + std::to_string(held.rank.value) + ", " + to_string(held.memory) + ", " +
                exact_time_text(wrapping_sum(held.time_ns, wrapping_product(-1, document.range().begin_ns))) +
                " after the begin: " + size_text(held.allocated_bytes) + " in " + show_count(held.blocks) +
                " blocks, of which " + size_text(held.allocated_bytes - held.requested_bytes) +
                " were not asked for (what the allocator rounds up and does not split off).";
  return result;
}

ReportTable holders_by_op(const Session& session, const commands::HoldersOptions& options) {
  ReportTable result{"Largest holders " + when(options), {}, ""};
  result.table.columns = {{"category", "category", cli::Align::left},
                          {"of", "of", cli::Align::left},
                          {"buffers", "buffers"},
                          {"bytes", "bytes"},
                          {"share", "share"}};
  const Document& document = session.documents[0];
  ViewState state;
  if (options.rank) state.rank = Rank{static_cast<std::int32_t>(*options.rank)};
  if (options.asked || options.memory != Memory::device) state.memory = options.memory;
  const MemorySeries* series = shown_memory(document, state);
  if (series == nullptr) return result;
  const std::size_t moment = options.at_ns ? series->moment_at(wrapping_sum(document.range().begin_ns, *options.at_ns))
                                           : series->peak_moment();
  const std::int64_t total = series->bytes_at(moment);
  struct Sum {
    Category category{};
    std::string of;
    std::int64_t count = 0, bytes = 0;
  };
  std::map<std::tuple<Category, std::string>, Sum> sums;
  for (const LiveBuffer& buffer : series->live_at(document.trace().memory, moment)) {
    const auto span = buffer.op.valid() ? find_op(document, buffer.op, series->rank()) : std::nullopt;
    const std::string of = buffer.unit.valid() ? document.chunks().name_of(buffer.unit)
                           : span              ? document.name_of(*span)
                                               : std::string("-");
    Sum& sum = sums.try_emplace({buffer.category, of}, Sum{buffer.category, of}).first->second;
    ++sum.count;
    sum.bytes += buffer.bytes;
  }
  std::vector<Sum> rows;
  for (auto& [key, sum] : sums) rows.push_back(std::move(sum));
  std::ranges::stable_sort(rows, std::ranges::greater{}, &Sum::bytes);
  const std::size_t all = rows.size(), most = static_cast<std::size_t>(options.top);
  if (rows.size() > most) rows.resize(most);
  std::int64_t listed = 0;
  for (const Sum& row : rows) {
    listed += row.bytes;
    result.table.rows.push_back(
        {in_words(to_string(row.category)), row.of, row.count, bytes_cell(row.bytes), share_cell(row.bytes, total)});
  }
  result.note = "Rank " + std::to_string(series->rank().value) + ", " + to_string(series->memory()) + ", " +
                size_text(total) + " live.";
  if (all > rows.size())
    result.note += " The other " + std::to_string(all - rows.size()) + " hold " + size_text(total - listed) + ".";
  return result;
}

}  // namespace shard::view
