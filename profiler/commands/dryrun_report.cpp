// The text begins with the rank that took most; JSON has all of them.
#include "profiler/commands/dryrun_report.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <sstream>
#include <tuple>
#include <utility>

#include "profiler/commands/routing.h"
#include "sim/cli/output.h"
#include "traces/base/in_words.h"
#include "traces/base/numbers.h"
#include "traces/base/text_table.h"
#include "traces/peaks.h"
#include "traces/sites.h"

namespace shard::dryrun {
namespace {

/// What the allocator was refused fits nowhere, though the program may have gone on.
cluster::Verdict verdict_of(const RankRun& rank, const Card& card) {
  if (rank.run.unmet) return cluster::Verdict::does_not_fit;
  return cluster::verdict_of(Bytes{reserved_bytes(rank)}, card.room());
}

/// Whose workspaces were asked for and count as none.
std::vector<std::string> libraries_with_workspaces(const DryRun& run) {
  constexpr std::array<const char*, standin::kLibraries> kNames{"cuDNN", "cuSOLVER", "cuSPARSE", "cuFFT"};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (run.unknown_workspaces[i] > 0) names.emplace_back(kNames[i]);
  return names;
}

/// The most host memory that the program has, whether or not it was written to here.
std::int64_t host_peak(const DryRun& run) {
  return std::max(run.host_peak_bytes, run.ended.peak_resident_bytes);
}

/// PyTorch's own maximum where it is before the events that are kept; 0: it is not.
std::int64_t unrecorded_peak(const RankRun& rank) {
  return rank.answer && rank.run.allocated_peak_bytes > rank.answer->allocated_bytes ? rank.run.allocated_peak_bytes
                                                                                     : 0;
}

/// What of a rank stands in JSON, whether it is the one that took most or another.
void add_rank(nlohmann::ordered_json& j, const RankRun& rank, const Card& card) {
  const DryRun& run = rank.run;
  j["rank"] = run.rank;
  j["exit_code"] = run.ended.exit_code;
  j["signal"] = run.ended.signal;
  j["out_of_memory"] = run.unmet.has_value();
  if (run.unmet)
    j["unmet"] = {{"requests", run.unmet->requests},
                  {"bytes", run.unmet->bytes},
                  {"file", run.unmet->file},
                  {"line", run.unmet->line},
                  {"function", run.unmet->function}};
  j["steps_seen"] = run.optimizer_steps;
  j["backward_calls"] = run.backward_calls;
  j["kernels_taken_as_tuned"] = run.tuned_kernels;
  j["peak_allocated_bytes"] = rank.answer ? rank.answer->allocated_bytes : 0;
  j["peak_reserved_bytes"] = reserved_bytes(rank);
  j["verdict"] = to_string(verdict_of(rank, card));
  j["headroom_bytes"] = card.place.device_bytes - reserved_bytes(rank) - card.outside.high.count();
  j["unrecorded_peak_bytes"] = unrecorded_peak(rank);
  j["pinned_host_peak_bytes"] = run.pinned_peak_bytes;
  j["host_peak_resident_bytes"] = run.ended.peak_resident_bytes;
  j["host_peak_bytes"] = host_peak(run);
  j["unknown_workspaces"] =
      std::accumulate(run.unknown_workspaces.begin(), run.unknown_workspaces.end(), std::int64_t{0});
  j["unknown_workspaces_of"] = libraries_with_workspaces(run);
  j["values_read_as_zeros"] = run.values_read;
  j["unrecorded_allocations"] = run.allocations_gone;
  j["phases"] = nlohmann::ordered_json::array();
  if (rank.answer)
    for (const PhaseAnswer& each : rank.answer->phases)
      j["phases"].push_back({{"phase", to_string(each.phase)},
                             {"peak_allocated_bytes", each.allocated_bytes},
                             {"peak_seconds", static_cast<double>(each.time_ns - rank.answer->begin_ns) * 1e-9},
                             {"most_by", each.most_by}});
  j["of_absent_ranks"] = nlohmann::ordered_json::array();
  for (const Absent& each : run.absent)
    j["of_absent_ranks"].push_back({{"what", each.what},
                                    {"file", each.file},
                                    {"line", each.line},
                                    {"answer", each.refused    ? "refused"
                                               : each.as_equal ? "as_equal"
                                                               : "zeros"}});
  for (const Routing& each : run.routing)
    j["routing"].push_back({{"assumed", name_of_routing(card.place.routing)},
                            {"file", each.file},
                            {"line", each.line},
                            {"experts", each.experts},
                            {"each", each.each}});
}

std::string in_bytes(std::int64_t count) {
  return with_commas(count) + " bytes (" + show_bytes(Bytes{count}) + ")";
}

/// Why what was taken would fit, and the run does not.
std::string unmet_text(const DryRun& run) {
  if (!run.unmet) return "";
  const Unmet& unmet = *run.unmet;
  return "out of memory   " + in_bytes(unmet.bytes) + " were asked for" +
         (unmet.site.empty() ? "" : " at " + unmet.site) + " and not there" +
         (unmet.requests > 1 ? ", the last of " + with_commas(unmet.requests) + " such requests" : "") + "\n";
}

/// A program that has not trained says nothing about training.
std::string training_text(const DryRun& run, bool used_a_gpu) {
  if (!used_a_gpu) return "";
  if (run.optimizer_steps > 0)
    return "training steps  " + with_commas(run.optimizer_steps) + " steps of optimizers seen\n";
  return run.backward_calls > 0
             ? "no step of a PyTorch optimizer was seen: backward ran " + with_commas(run.backward_calls) +
                   " times; unless parameters are updated some other way, as in backward, this is not "
                   "the peak of a training step\n"
             : "no training step was seen, neither backward nor an optimizer's step: this is not "
               "the peak of training\n";
}

/// What other ranks would have sent, for people.
std::string absent_text(const DryRun& run) {
  std::string text;
  const auto as_equal = std::ranges::count_if(run.absent, [](const Absent& each) { return each.as_equal; });
  if (as_equal > 0)
    text += "other ranks     taken for equal to this one in " + with_commas(as_equal) +
            " places where libraries look at what they send" +
            (run.ended.exit_code == 0 ? "" : "; with --rank all they run, too") + "\n";
  for (const Absent& each : run.absent)
    if (!each.as_equal)
      text += (each.refused ? "refused         " : "read as zeros   ") + each.what + ", at " + each.file + ":" +
              std::to_string(each.line) + "\n";
  return text;
}

/// Where tokens went to experts, for people: an assumption that decides memory.
std::string routing_text(const DryRun& run, const Card& card) {
  std::string text;
  for (const Routing& each : run.routing)
    text += "assumed         " + name_of_routing(card.place.routing) + " routing, " + with_commas(each.each) + " of " +
            with_commas(each.experts) + " experts a token, at " + each.file + ":" + std::to_string(each.line) + "\n";
  return text;
}

/// What a program's first run takes and later ones do not, for people.
std::string tuned_text(const DryRun& run) {
  if (run.tuned_kernels == 0) return "";
  return "assumed         torch.compile has tuned its kernels before (" + with_commas(run.tuned_kernels) +
         "), as its cache has them from the second run on; of the first: --first-run\n";
}

/// Peaks of the parts of a run, where there is more than one.
std::string phases_text(const RankRun& rank) {
  if (!rank.answer || rank.answer->phases.size() < 2) return "";
  TextTable table({"phase", "peak allocated", "at", "most of it held by"}, std::size_t{0});
  for (const PhaseAnswer& each : rank.answer->phases)
    table.add({in_words(to_string(each.phase)), show_bytes(Bytes{each.allocated_bytes}),
               duration(Seconds{static_cast<double>(each.time_ns - rank.answer->begin_ns) * 1e-9}), each.most_by});
  return table.str() + (rank.run.allocations_gone > 0
                            ? "without the first " + with_commas(rank.run.allocations_gone) +
                                  " allocations, of which no events are kept: earlier parts may have taken more\n"
                            : "");
}

/// "transformers 5.24.0, deepspeed 0.19.8; without flash_attn, apex": what changes what is taken.
std::string software_text(const DryRun& run) {
  std::string with, without;
  for (const auto& [module, version] : run.software) {
    std::string& list = version.empty() ? without : with;
    if (module == "torch") continue;
    list += (list.empty() ? "" : ", ") + module + (version.empty() ? "" : " " + version);
  }
  if (with.empty()) return "";  // of PyTorch alone nothing asks for them
  return "software        " + with + (without.empty() ? "" : "; without " + without) + "\n";
}

std::string host_text(const DryRun& run) {
  const std::int64_t resident = run.ended.peak_resident_bytes;
  std::string text = "host memory     " + show_bytes(Bytes{host_peak(run)}) + " resident at most";
  if (run.host_peak_bytes > resident)
    text += ", of which " + show_bytes(Bytes{resident}) + " here: weights and states on the host are not written to";
  return text + "\n";
}

std::string workspaces_text(const DryRun& run) {
  std::string named;
  for (const std::string& library : libraries_with_workspaces(run))
    named += (named.empty() ? "" : ", ") + library + (library == "cuSOLVER" ? " (of the order of its matrices)" : "");
  return named.empty() ? "" : "not counted: workspaces of " + named + ", whose sizes nobody else knows\n";
}

std::string replaced_text(const DryRun& run) {
  std::string text;
  for (const Replaced& each : run.replaced)
    text += "replaced        " + each.what + " by " + each.by + ": " + each.why + "\n";
  return text;
}

/// All ranks, where several ran.
std::string table_of(const DryRuns& runs, const Card& card) {
  if (runs.ranks.size() == 1) return "";
  TextTable table({"rank", "peak allocated", "peak reserved", "steps", "host memory", "", "ended"}, std::size_t{0});
  for (const RankRun& rank : runs.ranks)
    table.add({std::to_string(rank.run.rank), with_commas(rank.answer ? rank.answer->allocated_bytes : 0),
               with_commas(reserved_bytes(rank)), with_commas(rank.run.optimizer_steps),
               show_bytes(Bytes{host_peak(rank.run)}), cluster::to_string(verdict_of(rank, card)),
               rank.run.ended_by_others        ? "by the others' end"
               : rank.run.ended.exit_code == 0 ? "well"
                                               : "exit code " + std::to_string(rank.run.ended.exit_code)});
  return table.str() + "\n";
}

Result<std::vector<PhaseAnswer>> phases_of(const Trace& trace, Rank rank) {
  std::vector<PhaseAnswer> phases;
  std::array<std::size_t, kPhaseCount> began{};
  for (std::size_t i = trace.memory.size(); i-- > 0;)
    if (trace.memory.rank[i] == rank) began[static_cast<std::size_t>(trace.memory.phase[i])] = i;
  for (const MemoryPeak& peak : memory_peaks(trace)) {
    if (peak.rank != rank || peak.memory != Memory::device) continue;
    const Result<Held> held = held_at(trace, {.rank = rank, .time_ns = peak.peak_time_ns});
    if (!held) return held.error();
    phases.push_back({.phase = peak.phase,
                      .allocated_bytes = peak.live_peak_bytes,
                      .time_ns = peak.peak_time_ns,
                      .most_by = held->holders.empty() ? "" : site_text(trace, held->holders.front().site)});
  }
  std::ranges::sort(phases, {}, [&](const PhaseAnswer& each) { return began[static_cast<std::size_t>(each.phase)]; });
  return phases;
}

}  // namespace

std::int64_t reserved_bytes(const RankRun& rank) {
  return rank.answer ? rank.answer->reserved_bytes : rank.run.device_peak_bytes;
}

Result<RankRun> answered(DryRun run, HeldBy by) {
  if (!run.recording || run.recording->trace.memory.empty()) return RankRun{std::move(run), std::nullopt};
  const LoadedTrace& recording = *run.recording;
  Answer answer;
  const Result<Held> held = held_at(recording.trace, {.by = by});
  if (!held) return held.error();
  answer.held = *held;
  answer.allocated_bytes = held->allocated_bytes;
  answer.begin_ns = summarize(recording).begin_ns;
  for (const ArenaSummary& arena : recording.trace.arenas)
    if (arena.rank == held->rank) answer.reserved_bytes = std::max(answer.reserved_bytes, arena.peak_bytes);
  Result<std::vector<PhaseAnswer>> phases = phases_of(recording.trace, held->rank);
  if (!phases) return phases.error();
  answer.phases = std::move(*phases);
  return RankRun{std::move(run), std::move(answer)};
}

void DryRuns::add(RankRun rank) {
  const auto took = [](const RankRun& each) {
    return std::tuple(each.run.unmet.has_value(), each.answer ? each.answer->allocated_bytes : 0, reserved_bytes(each));
  };
  ranks.push_back(std::move(rank));
  const std::size_t last = ranks.size() - 1;
  if (last == 0) return;
  const bool more = took(ranks[last]) > took(ranks[most]);
  ranks[more ? most : last].run.recording.reset();
  if (more) most = last;
}

nlohmann::ordered_json to_json(const DryRuns& runs, const Card& card, std::size_t top) {
  const Place& place = card.place;
  const RankRun& worst = runs.worst();
  nlohmann::ordered_json j = cli::json_document("dryrun");
  j["cluster"] = place.name;
  j["world_size"] = place.world_size;
  j["pytorch_version"] = worst.run.pytorch.version;
  j["software"] = nlohmann::ordered_json::object();
  for (const auto& [module, version] : worst.run.software)
    j["software"][module] = version.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(version);
  j["replaced"] = nlohmann::ordered_json::array();
  for (const Replaced& each : worst.run.replaced)
    j["replaced"].push_back({{"what", each.what}, {"by", each.by}, {"why", each.why}});
  j["capacity_bytes"] = place.device_bytes;
  j["outside_allocator_bytes"] = {{"low", card.outside.low.count()}, {"high", card.outside.high.count()}};
  j["timed_out"] = worst.run.ended.timed_out;
  j["unknown_functions"] = worst.run.unknown_functions;
  add_rank(j, worst, card);
  j["holders"] = nlohmann::ordered_json::array();
  if (worst.answer) {
    nlohmann::ordered_json held =
        shard::to_json(worst.run.recording->trace, worst.answer->held, top, worst.answer->begin_ns);
    j["peak_seconds"] = held["time_seconds"];
    j["peak_requested_bytes"] = held["requested_bytes"];
    j["categories"] = std::move(held["categories"]);
    j["categories_inferred"] = std::move(held["categories_inferred"]);
    j["holders"] = std::move(held["holders"]);
    j["rest"] = std::move(held["rest"]);
  }
  j["ranks"] = nlohmann::ordered_json::array();
  for (const RankRun& rank : runs.ranks) {
    nlohmann::ordered_json of_rank;
    add_rank(of_rank, rank, card);
    j["ranks"].push_back(std::move(of_rank));
  }
  return j;
}

std::string to_text(const DryRuns& runs, const Card& card, std::size_t top) {
  const Place& place = card.place;
  const RankRun& rank = runs.worst();
  const DryRun& run = rank.run;
  const std::optional<Answer>& answer = rank.answer;
  std::ostringstream text;
  text << "on one " << place.name << " that is not there";
  if (place.world_size > 1) text << ", as rank " << run.rank << " of " << place.world_size;
  if (runs.ranks.size() > 1)
    text << ", the one of " << (std::cmp_equal(runs.ranks.size(), place.world_size) ? "all " : "the ")
         << runs.ranks.size() << (run.unmet ? " that ran out of memory" : " that took most");
  text << " (PyTorch " << run.pytorch.version << ")\n";
  if (answer) text << "peak allocated  " << in_bytes(answer->allocated_bytes) << "\n";
  const std::int64_t reserved = reserved_bytes(rank);
  if (reserved > 0) text << "peak reserved   " << in_bytes(reserved) << "\n";
  if (reserved > 0 || run.unmet)
    text << cluster::verdict_line(verdict_of(rank, card), Bytes{reserved}, card.room()) << unmet_text(run);
  text << training_text(run, answer.has_value()) << absent_text(run) << routing_text(run, card) << tuned_text(run);
  if (run.pinned_peak_bytes > 0) text << "pinned on host  " << in_bytes(run.pinned_peak_bytes) << "\n";
  text << host_text(run);
  text << software_text(run) << replaced_text(run);
  text << workspaces_text(run);
  if (run.values_read > 0)
    text << "values read     " << with_commas(run.values_read) << " times that no kernel has computed: zeros\n";
  if (const std::int64_t peak = unrecorded_peak(rank); peak > 0)
    text << "an earlier peak of " << in_bytes(peak) << " is not among the last " << with_commas(kMostEvents)
         << " events, which are kept\n";
  if (const std::string table = table_of(runs, card); !table.empty()) text << "\n" << table;
  if (const std::string table = phases_text(rank); !table.empty()) text << "\n" << table;
  if (answer) {
    text << "\n" << shard::to_text(run.recording->trace, answer->held, top, answer->begin_ns);
  } else {
    text << (!run.fault.empty()           ? "PyTorch gave no record of its allocator: " + run.fault
             : run.unmet                  ? "nothing was held: the first request got no memory"
             : run.device_peak_bytes == 0 ? "the program used no GPU"
                                          : "the program ended before it could say who held it")
         << "\n";
  }
  if (run.ended.timed_out) text << "ended by --timeout\n";
  if (run.ended.signal != 0) text << "ended by signal " << run.ended.signal << "\n";
  if (run.ended.signal == 0 && run.ended.exit_code != 0) text << "exit code " << run.ended.exit_code << "\n";
  return text.str();
}

}  // namespace shard::dryrun
