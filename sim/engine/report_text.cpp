// A simulation as text for a terminal.
#include <algorithm>
#include <cstdio>

#include "sim/engine/report.h"
#include "traces/base/numbers.h"

namespace shard::engine {
namespace {

template <class... Values>
std::string format(const char* pattern, Values... values) {
  char text[256];
  const int length = std::snprintf(text, sizeof text, pattern, values...);
  return std::string(text, static_cast<std::size_t>(std::clamp(length, 0, static_cast<int>(sizeof text) - 1)));
}

/// Of a table's cell.
int columns_of(ShowBytes show) {
  return show == show_exact ? 20 : 15;
}

std::string device_line(const Simulation& s, ShowBytes show) {
  const Bytes peak = s.largest().peak[kDevice];
  if (!s.device_capacity) return cluster::unlimited_line(peak, s.room(), show);
  return cluster::account_of(peak, s.room(), show) + ", headroom " + show(*s.headroom()) + "\n";
}

/// One row per category, one column per phase, at each phase's live peak.
std::string memory_table(const ClassResult& c, ShowBytes show) {
  const int width = columns_of(show);
  std::string text = format("%-18s", "");
  for (const PhaseResult& p : c.phases)
    text += format("%*s", width, (std::string(to_string(p.phase)) + (p.in_run ? "" : "*")).c_str());
  text += "\n";
  const auto row = [&](const char* name, auto bytes_of, bool always) {
    const bool any =
        std::any_of(c.phases.begin(), c.phases.end(), [&](const PhaseResult& p) { return bytes_of(p) != Bytes{0}; });
    if (!any && !always) return;
    text += format("  %-16s", name);
    for (const PhaseResult& p : c.phases) {
      text += format("%*s", width, bytes_of(p) == Bytes{0} ? "-" : show(bytes_of(p)).c_str());
    }
    text += "\n";
  };
  for (std::size_t k = 0; k < kCategoryCount; ++k) {
    row(
        to_string(static_cast<Category>(k)), [&](const PhaseResult& p) { return p.memory[kDevice].by_category[k]; },
        false);
  }
  row(
      "live peak", [](const PhaseResult& p) { return p.memory[kDevice].live_peak; }, true);
  row(
      "peak (extent)", [](const PhaseResult& p) { return p.memory[kDevice].peak; }, true);
  if (std::any_of(c.phases.begin(), c.phases.end(), [](const PhaseResult& p) { return !p.in_run; })) {
    text += "  * not part of the run\n";
  }
  return text;
}

std::string rank_list(const ClassResult& c) {
  if (c.ranks.size() == 1) return "rank " + std::to_string(c.ranks.front());
  std::string text = "ranks ";
  for (std::size_t i = 0; i < c.ranks.size();) {
    std::size_t end = i;
    while (end + 1 < c.ranks.size() && c.ranks[end + 1] == c.ranks[end] + 1) ++end;
    if (i > 0) text += ",";
    text += std::to_string(c.ranks[i]);
    if (end > i) text += "-" + std::to_string(c.ranks[end]);
    i = end + 1;
  }
  return text;
}

}  // namespace

std::string between_text(const Simulation& s, Seconds time) {
  return duration_between(time, s.low(time), s.high(time));
}

std::string time_text(const Simulation& s) {
  if (s.step_seconds <= Seconds{0}) return "";
  std::string text = "step: " + between_text(s, s.step_seconds) + ", the first " + duration(s.first_step_seconds);
  if (const PhaseResult* p = s.largest().find(Phase::steady_step)) {
    text += format(", compute %.0f %%, communication %.0f %%, exposed (while nothing computes) %.0f %%",
                   100 * share(p->compute_seconds, p->seconds), 100 * share(p->communication_seconds, p->seconds),
                   100 * share(p->exposed_communication_seconds, p->seconds));
  }
  text += "\n" + show_number(s.tokens_per_second) + " tokens/s, " + show_number(s.flops_per_second / 1e12, 3) +
          " TFLOP/s per device\n";
  return text;
}

std::string moments_table(const std::vector<Moment>& moments, ShowBytes show) {
  const int width = columns_of(show);
  std::string text = format("%-18s", "");
  for (const Moment& m : moments) text += format("%*s", width, m.name.c_str());
  text += "\n";
  const auto row = [&](const char* name, auto bytes_of) {
    text += format("  %-16s", name);
    for (const Moment& m : moments)
      text += format("%*s", width, bytes_of(m) == Bytes{0} ? "-" : show(bytes_of(m)).c_str());
    text += "\n";
  };
  for (std::size_t k = 0; k < kCategoryCount; ++k)
    if (std::any_of(moments.begin(), moments.end(), [&](const Moment& m) { return m.by_category[k] != Bytes{0}; }))
      row(to_string(static_cast<Category>(k)), [&](const Moment& m) { return m.by_category[k]; });
  row("live", [](const Moment& m) { return m.live; });
  return text;
}

ShowBytes unit_of(const Simulation& s) {
  return one_unit(std::max(s.largest().peak[kDevice] + s.outside.high, s.host_peak));
}

std::string verdict_text(const Simulation& s, const std::optional<Change>& change, ShowBytes show) {
  const bool host_short = s.short_of().value_or(Memory::device) != Memory::device;
  const std::string headline = cluster::headline_of(s.verdict());
  const std::string device = device_line(s, show);
  std::string text;
  if (host_short) {
    text = headline + cluster::host_account(s.host_peak, s.pinned_peak, s.host, show) + "\n";
    text += (s.device_capacity ? "device memory: " : "") + device;
  } else {
    text = (s.device_capacity ? headline : "") + device;
    if (s.host_peak > Bytes{0}) text += cluster::host_line(s.host_peak, s.pinned_peak, s.host, show);
  }
  const Bytes disk = s.largest(Memory::disk).peak[static_cast<std::size_t>(Memory::disk)];
  if (disk > Bytes{0}) text += "disk: " + show(disk) + " of a rank\n";
  if (!s.fits && change) text += "  try: " + change->text + " (" + show(change->peak) + ")\n";
  return text;
}

std::string details_text(const Simulation& s, ShowBytes show) {
  std::string text;
  for (const ClassResult& c : s.classes) {
    text += (text.empty() ? "" : "\n") + rank_list(c) + ": device memory at the live peak of each phase\n" +
            memory_table(c, show);
    if (!c.moments.empty()) text += "  live after each part of the run:\n" + moments_table(c.moments, show);
    const Memory shown = s.short_of().value_or(Memory::device);
    if (const PhaseResult* p = c.peak_phase(shown)) {
      text += "  largest at the peak of " + std::string(to_string(p->phase));
      text += shown == Memory::device ? ":\n" : std::string(" in ") + to_string(shown) + " memory:\n";
      for (const Holder& h : p->memory[static_cast<std::size_t>(shown)].largest_holders) {
        text += format("    %*s  %-16s ", columns_of(show) - 3, show(h.bytes).c_str(), to_string(h.category)) + h.name;
        if (h.buffers > 1) text += format(" (%d buffers)", h.buffers);
        text += "\n";
      }
    }
  }
  bool heading = false;
  for (std::size_t k = 0; k < kCollectiveCount; ++k) {
    const PhaseResult* p = s.classes.front().find(Phase::steady_step);
    if (p == nullptr || p->collectives[k].count == 0) continue;
    if (!heading) text += "\ncommunication per step and rank:\n";
    heading = true;
    text += format("  %-15s %8lld calls %*s\n", to_string(static_cast<Collective>(k)),
                   static_cast<long long>(p->collectives[k].count), columns_of(show) - 3,
                   show(p->collectives[k].bytes).c_str());
  }
  return text;
}

}  // namespace shard::engine
