// The slowest rank's step in front; of what no law knows the names.
#include "profiler/commands/time_report.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "profiler/steptime/work_list.h"
#include "traces/base/numbers.h"
#include "traces/import/kineto_program.h"

namespace shard::dryrun {
namespace {

using steptime::Forecast;

constexpr std::size_t kMostNames = 3;

/// Of the last step that was kept; where a graph was captured also of those before, one behind another: it may be
/// launched in a later one.
Result<import::KinetoProgram> operators_of(const DryRun& run, const steptime::WorkList& work) {
  import::KinetoProgram all;
  const bool captures = std::ranges::any_of(work.items, [](const auto& item) { return item.capture != 0; });
  auto from = run.operators.begin();
  if (!captures && from != run.operators.end()) from = std::prev(run.operators.end());
  for (; from != run.operators.end(); ++from) {
    Result<import::KinetoProgram> read = import::read_kineto_program(from->second);
    if (!read) return read.error();
    std::ranges::move(read->operators, std::back_inserter(all.operators));
  }
  return all;
}

RankTime time_of(const RankRun& rank, steptime::Where where) {
  const auto none = [](std::string why) { return RankTime{.forecast = {}, .none = std::move(why), .error = {}}; };
  if (rank.run.work.empty()) return none("the program gave no GPU anything");
  const Result<steptime::WorkList> work = steptime::read_work(rank.run.work);
  if (!work) return none(work.error().what);
  const Result<import::KinetoProgram> operators = operators_of(rank.run, *work);
  if (!operators) return none(operators.error().what);
  if (!rank.run.operators.empty()) where.step = rank.run.operators.rbegin()->first;
  Result<Forecast> made = steptime::forecast(*work, *operators, where);
  if (!made) return {.forecast = {}, .none = made.error().what, .error = made.error()};
  return {.forecast = std::move(*made), .none = {}, .error = {}};
}

/// In the unit that the middle asks for.
std::string in_unit(Seconds of, Seconds middle) {
  const double scale = middle.count() < 1 ? 1e3 : 1;
  return show_number(scale * of.count(), 3);
}

std::string percent(double share) {
  constexpr double kWhole = 0.9999;  // what is left out shows
  return show_fixed(std::floor(1000 * share) / 10, share > kWhole ? 0 : 1) + " %";
}

/// Up to its arguments: kernels' names are long.
std::string short_name(const std::string& name) {
  constexpr std::size_t kMost = 60;
  return name.size() <= kMost ? name : name.substr(0, kMost) + "...";
}

/// What was found by what, and what was not.
std::string recorded_text(const Forecast& f) {
  std::string by, left;
  for (std::size_t i = 0; i < f.recorded_by.size(); ++i)
    if (f.recorded_by[i] > 0)
      by += (by.empty() ? "  found by " : ", ") + std::string(to_string(static_cast<steptime::FoundBy>(i))) + ' ' +
            percent(f.recorded_by[i]);
  for (const steptime::NotRecorded& each : f.not_recorded)
    left += (left.empty() ? "  not in the recording: " : ", ") + std::to_string(each.count) + ' ' +
            std::string(steptime::kind_name(each.kind)) + ", " + in_unit(each.by_law, f.seconds) +
            (f.seconds.count() < 1 ? " ms" : " s");
  return (by.empty() ? by : by + "\n") + (left.empty() ? left : left + "\n");
}

nlohmann::ordered_json json_of(const Forecast& f) {
  nlohmann::ordered_json j{{"seconds", f.seconds.count()},
                           {"low", f.low.count()},
                           {"high", f.high.count()},
                           {"coverage", f.coverage},
                           {"recorded", f.recorded},
                           {"recorded_by", nlohmann::ordered_json::array()},
                           {"not_recorded", nlohmann::ordered_json::array()},
                           {"step", f.step},
                           {"kernels", f.kernels},
                           {"exchanges", f.exchanges},
                           {"parts", nlohmann::ordered_json::array()},
                           {"not_known", nlohmann::ordered_json::array()},
                           {"waits_for_stages_left_out", f.waits_for_stages}};
  for (std::size_t i = 0; i < f.recorded_by.size(); ++i)
    if (f.recorded_by[i] > 0)
      j["recorded_by"].push_back(
          {{"found_by", to_string(static_cast<steptime::FoundBy>(i))}, {"share", f.recorded_by[i]}});
  for (const steptime::NotRecorded& each : f.not_recorded)
    j["not_recorded"].push_back(
        {{"kind", steptime::kind_name(each.kind)}, {"count", each.count}, {"seconds_by_law", each.by_law.count()}});
  for (const steptime::Part& part : f.parts)
    j["parts"].push_back({{"name", part.name}, {"seconds", part.time.count()}});
  for (const steptime::NotKnown& each : f.not_known)
    j["not_known"].push_back(
        {{"kernel", each.name}, {"count", each.kernels}, {"assumed_seconds", each.assumed.count()}});
  return j;
}

}  // namespace

std::map<int, RankTime> times_of(const DryRuns& runs, const Place& place, const cluster::Cluster& cluster,
                                 const steptime::Recorded* recorded) {
  std::map<int, RankTime> times;
  const steptime::Where where{.cluster = &cluster, .world_size = place.world_size, .recorded = recorded};
  for (const RankRun& rank : runs.ranks) times[rank.run.rank] = time_of(rank, where);
  return times;
}

const Forecast* slowest(const std::map<int, RankTime>& times) {
  const Forecast* found = nullptr;
  for (const auto& [rank, time] : times)
    if (time.forecast && (found == nullptr || time.forecast->seconds > found->seconds)) found = &*time.forecast;
  return found;
}

int slowest_rank(const std::map<int, RankTime>& times) {
  const Forecast* const f = slowest(times);
  for (const auto& [rank, time] : times)
    if (f != nullptr && time.forecast && &*time.forecast == f) return rank;
  return 0;
}

std::optional<Error> recording_fault(const std::map<int, RankTime>& times, const std::string& recording) {
  if (recording.empty() || slowest(times) != nullptr) return {};
  for (const auto& [rank, time] : times)
    if (time.error && time.error->where == recording) return time.error;
  return {};
}

std::string to_text(const std::map<int, RankTime>& times) {
  const Forecast* const f = slowest(times);
  if (f == nullptr) return times.empty() ? "" : "\nno time of a step: " + times.begin()->second.none + "\n";
  std::string text = std::string("\n") + (f->step == 0 ? "all of the run" : "step") + ": " +
                     duration_between(f->seconds, f->low, f->high);
  if (times.size() > 1) text += ", rank " + std::to_string(slowest_rank(times)) + "'s, the slowest";
  text += "; " + std::to_string(f->kernels) + " kernels";
  if (f->exchanges > 0) text += " and " + std::to_string(f->exchanges) + " exchanges";
  text += ", " + percent(f->coverage - f->recorded) + " of their time by laws";
  if (f->recorded > 0) text += ", " + percent(f->recorded) + " as recorded";
  text += "\n";
  std::string shares;
  for (const steptime::Part& part : f->parts) {
    const double share = part.time.count() / f->seconds.count();
    if (share < 0.01) break;
    shares += (shares.empty() ? "  " : ", ") + part.name + ' ' + show_fixed(100 * share, 0) + " %";
  }
  text += shares + "\n" + recorded_text(*f);
  for (std::size_t i = 0; i < std::min(f->not_known.size(), kMostNames); ++i) {
    const steptime::NotKnown& each = f->not_known[i];
    text += "  no law: " + std::to_string(each.kernels) + " x " + short_name(each.name) + ", assumed " +
            in_unit(each.assumed, f->seconds) + (f->seconds.count() < 1 ? " ms" : " s") + " together\n";
  }
  if (f->not_known.size() > kMostNames)
    text += "  and " + std::to_string(f->not_known.size() - kMostNames) + " other kernels without a law\n";
  if (f->waits_for_stages) text += "  not in it: how long other stages of the pipeline let this rank wait\n";
  return text;
}

void add_times(nlohmann::ordered_json& j, const std::map<int, RankTime>& times) {
  const Forecast* const f = slowest(times);
  j["step"] = nullptr;
  j["no_step"] = nullptr;
  if (f == nullptr) {
    j["no_step"] = times.empty() ? "--time was not asked for" : times.begin()->second.none;
    return;
  }
  j["step"] = json_of(*f);
  j["step"]["rank"] = slowest_rank(times);
  j["step"]["by_rank"] = nlohmann::ordered_json::array();
  for (const auto& [rank, time] : times) {
    nlohmann::ordered_json of_rank{{"rank", rank}};
    of_rank["seconds"] = time.forecast ? nlohmann::ordered_json(time.forecast->seconds.count()) : nullptr;
    j["step"]["by_rank"].push_back(std::move(of_rank));
  }
}

}  // namespace shard::dryrun
