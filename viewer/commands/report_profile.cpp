// Where the time went, as tables of a report.
#include <algorithm>

#include "traces/profile_report.h"
#include "viewer/commands/report.h"
#include "viewer/index/ticks.h"
#include "viewer/ui/text.h"

namespace shard::view {
namespace {

constexpr std::size_t kProfileNames = 20;
constexpr std::size_t kProfileSteps = 40;

using Align = cli::Align;

cli::Cell time_cell(std::int64_t ns) {
  return {static_cast<double>(ns) / 1e9, duration_text(ns)};
}
cli::Cell portion_cell(std::int64_t part, std::int64_t whole) {
  const double share = whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
  return {share, show_percent(share)};
}
cli::Cell device_cell(const DevicePlace& place, bool on_host = false) {
  const std::string name = device_name(place, on_host);
  return name.empty() ? cli::Cell("device") : cli::Cell(name);
}
cli::Cell rank_cell(const DevicePlace& place) {
  return static_cast<std::int64_t>(place.rank.value);
}

ReportTable devices_table(const Profile& profile) {
  ReportTable result{
      "What devices did", {}, "Idle: neither a kernel nor a copy runs. Hidden: a kernel runs beside the collective."};
  result.table.columns = {{"rank", "rank"},
                          {"device", "device", Align::left},
                          {"window_seconds", "recorded"},
                          {"busy_seconds", "busy"},
                          {"busy_share", "share"},
                          {"idle_seconds", "idle"},
                          {"idle_between_seconds", "idle between its first and last work"},
                          {"kernel_seconds", "computes"},
                          {"copy_seconds", "copies"},
                          {"communication_seconds", "collectives"},
                          {"hidden_seconds", "hidden"},
                          {"exposed_seconds", "exposed"}};
  for (const DeviceUse& use : profile.devices) {
    const DeviceTime& time = use.time;
    result.table.rows.push_back({rank_cell(use.place), device_cell(use.place), time_cell(time.window_ns),
                                 time_cell(time.busy_ns), portion_cell(time.busy_ns, time.window_ns),
                                 time_cell(time.idle_ns), time_cell(use.idle_between_ns), time_cell(time.kernel_ns),
                                 time_cell(time.copy_ns), time_cell(time.communication_ns), time_cell(time.hidden_ns),
                                 time_cell(time.exposed_ns)});
  }
  return result;
}

ReportTable steps_table(const Profile& profile) {
  ReportTable result{"Steps", {}, ""};
  result.table.columns = {{"step", "step"},
                          {"rank", "rank"},
                          {"device", "device", Align::left},
                          {"seconds", "takes"},
                          {"busy_seconds", "busy"},
                          {"idle_seconds", "idle"},
                          {"communication_seconds", "collectives"},
                          {"hidden_seconds", "hidden"},
                          {"exposed_seconds", "exposed"}};
  const std::size_t shown = std::min(kProfileSteps, profile.steps.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const DeviceStep& step = profile.steps[i];
    result.table.rows.push_back({static_cast<std::int64_t>(step.step), rank_cell(step.place), device_cell(step.place),
                                 time_cell(step.time.window_ns), time_cell(step.time.busy_ns),
                                 time_cell(step.time.idle_ns), time_cell(step.time.communication_ns),
                                 time_cell(step.time.hidden_ns), time_cell(step.time.exposed_ns)});
  }
  if (shown < profile.steps.size())
    result.note = "The first " + std::to_string(shown) + " of " + std::to_string(profile.steps.size()) + ".";
  return result;
}

ReportTable collectives_table(const Profile& profile) {
  ReportTable result{"Collectives", {}, ""};
  result.table.columns = {{"rank", "rank"},
                          {"device", "device", Align::left},
                          {"kind", "collective", Align::left},
                          {"count", "calls"},
                          {"bytes", "bytes"},
                          {"calls_without_bytes", "calls that say no bytes"},
                          {"seconds", "time"},
                          {"hidden_seconds", "hidden"},
                          {"exposed_seconds", "exposed"}};
  for (const CollectiveUse& use : profile.collectives) {
    const auto known = [&](std::int64_t ns) { return use.on_host ? cli::Cell() : time_cell(ns); };
    result.table.rows.push_back(
        {rank_cell(use.place), device_cell(use.place, use.on_host), in_words(to_string(use.kind)), use.count,
         use.without_bytes == use.count ? cli::Cell() : bytes_cell(use.bytes), use.without_bytes,
         time_cell(use.total_ns), known(use.hidden_ns), known(use.exposed_ns)});
  }
  return result;
}

ReportTable copies_table(const Profile& profile) {
  ReportTable result{"Copies", {}, ""};
  result.table.columns = {{"rank", "rank"},
                          {"device", "device", Align::left},
                          {"direction", "copy", Align::left},
                          {"count", "count"},
                          {"bytes", "bytes"},
                          {"seconds", "time"}};
  for (const CopyUse& use : profile.copies)
    result.table.rows.push_back({rank_cell(use.place), device_cell(use.place), in_words(to_string(use.direction)),
                                 use.count, bytes_cell(use.bytes), time_cell(use.total_ns)});
  return result;
}

ReportTable names_table(const char* title, const std::vector<NamedTime>& names, bool kernels) {
  ReportTable result{title, {}, ""};
  result.table.columns = {{"name", "name", Align::left},
                          {"activity", "is", Align::left},
                          {"count", "count"},
                          {"total_seconds", "time"},
                          {kernels ? "mean_seconds" : "self_seconds", kernels ? "mean" : "its own"},
                          {"share", "share"}};
  std::int64_t all = 0, rest = 0;
  for (const NamedTime& named : names) all += named.self_ns;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const NamedTime& named = names[i];
    if (i >= kProfileNames) {
      rest += named.self_ns;
      continue;
    }
    const char* is = kernels && is_collective(named.activity) ? "collective" : to_string(named.activity);
    result.table.rows.push_back({named.name, is, named.count, time_cell(named.total_ns),
                                 time_cell(kernels ? named.total_ns / named.count : named.self_ns),
                                 portion_cell(named.self_ns, all)});
  }
  if (names.size() > kProfileNames)
    result.note =
        "The other " + std::to_string(names.size() - kProfileNames) + " names take " + duration_text(rest) + ".";
  return result;
}

}  // namespace

void add_profile(const Session& session, Report& report) {
  for (const Document& document : session.documents) {
    const Profile found = profile(document.trace());
    std::vector<ReportTable> tables{
        devices_table(found),
        steps_table(found),
        collectives_table(found),
        copies_table(found),
        names_table("Kernels that took longest", found.kernels, true),
        names_table("Operations of the host, by the time of their own", found.operations, false)};
    for (ReportTable& table : tables) {
      if (session.documents.size() > 1) table.title += ": " + document.label();
      report.tables.push_back(std::move(table));
    }
    if (const auto at = document.trace().header.metadata.find("aligned"); at != document.trace().header.metadata.end())
      report.verdicts.push_back("Put on one axis: " + at->second + ".");
  }
}

}  // namespace shard::view
