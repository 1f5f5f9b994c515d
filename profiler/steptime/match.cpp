// Products have other kernels on a card than on the stand-in: their operators find them, or their place between
// kernels that have one name everywhere.
#include "profiler/steptime/match.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "profiler/steptime/kernel_names.h"
#include "profiler/steptime/places.h"

namespace shard::steptime {
namespace {

constexpr double kDoubtOfRecorded = 0.05;  ///< from run to run
constexpr double kDoubtOfSizes = 0.1;      ///< types are not known

class Matching {
 public:
  Matching(const std::vector<Wanted>& wanted, const WorkList& work, const import::KinetoProgram& operators,
           const Recorded& recorded)
      : wanted_(wanted), work_(work), operators_(operators), recorded_(recorded), found_(wanted.size()) {}

  std::vector<std::optional<Found>> run() {
    if (recorded_.has_types()) by_operator(FoundBy::operators, kDoubtOfRecorded);
    find_kinds();
    for (std::size_t i = 0; i < wanted_.size(); ++i)
      if (!found_[i]) by_bytes(i);
    if (recorded_.has_sizes()) {
      for (std::size_t i = 0; i < wanted_.size(); ++i)
        if (!found_[i] && kinds_[i] >= 0) take(i, recorded_.of_kind(kinds_[i]), FoundBy::launch);
    } else if (!recorded_.has_types()) {
      by_name();
    }
    if (!recorded_.has_types()) by_operator(FoundBy::sizes, kDoubtOfSizes);
    if (!recorded_.has_types()) by_place();
    return std::move(found_);
  }

 private:
  [[nodiscard]] const WorkItem& item(std::size_t i) const { return work_.items[wanted_[i].call->item]; }

  void take(std::size_t i, const Durations& durations, FoundBy by) {
    found_[i] = {.seconds = durations.mean(), .doubt = std::max(kDoubtOfRecorded, durations.spread()), .by = by};
  }

  /// What an operator's kernels took together is shared out among those that are not found yet.
  void by_operator(FoundBy by, double doubt) {
    struct Of {
      double by_law = 0, found = 0;
    };
    std::map<std::int32_t, Of> of;  // by operator
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      Of& sums = of[wanted_[i].call->operator_index];
      (found_[i] ? sums.found : sums.by_law) += found_[i] ? found_[i]->seconds : wanted_[i].by_law;
    }
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      const std::int32_t index = wanted_[i].call->operator_index;
      if (found_[i] || index < 0 || of[index].by_law <= 0) continue;
      const std::optional<double> took = recorded_.of(operators_.operators[static_cast<std::size_t>(index)]);
      if (!took || *took <= of[index].found) continue;
      found_[i] = {
          .seconds = wanted_[i].by_law / of[index].by_law * (*took - of[index].found), .doubt = doubt, .by = by};
    }
  }

  void find_kinds() {
    std::map<std::int32_t, std::string> bare;
    kinds_.assign(wanted_.size(), -1);
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      const WorkItem& of = item(i);
      if (of.kind != Work::kernel) continue;
      std::string& name = bare[of.name];
      if (name.empty()) name = bare_name(work_.name_of(of));
      const auto& n = of.numbers;
      kinds_[i] = recorded_.kind_of(name, {n[0], n[1], n[2]}, {n[3], n[4], n[5]});
    }
  }

  void by_bytes(std::size_t i) {
    const WorkItem& of = item(i);
    const Durations* durations = nullptr;
    if (of.kind == Work::copy)
      durations = recorded_.copy(of.numbers[1] != 0   ? of.numbers[2] != 0 ? "HtoH" : "HtoD"
                                 : of.numbers[2] != 0 ? "DtoH"
                                                      : "DtoD",
                                 of.numbers[0]);
    if (of.kind == Work::fill) durations = recorded_.fill(of.numbers[0]);
    if (durations != nullptr) take(i, *durations, FoundBy::launch);
  }

  /// Kernels of one name and size are all alike. Of those of several sizes the n-th of a step is the n-th in each step
  /// of the recording, where that has as many steps as most of its kernels say.
  void by_name() {
    std::map<std::int32_t, std::vector<std::size_t>> of_kind;
    for (std::size_t i = 0; i < wanted_.size(); ++i)
      if (kinds_[i] >= 0) of_kind[kinds_[i]].push_back(i);
    std::map<std::size_t, std::size_t> votes;  // kernels, by steps
    for (const auto& [kind, all] : of_kind)
      if (const auto count = static_cast<std::size_t>(recorded_.of_kind(kind).count()); count % all.size() == 0)
        votes[count / all.size()] += all.size();
    const auto most = std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second; });
    for (const auto& [kind, all] : of_kind) {
      const Durations& durations = recorded_.of_kind(kind);
      std::set<std::array<std::int64_t, 8>> sizes;
      for (const std::size_t i : all)
        if (!found_[i]) sizes.insert(item(i).numbers);
      if (sizes.size() <= 1) {
        for (const std::size_t i : all)
          if (!found_[i]) take(i, durations, FoundBy::name);
      } else if (most != votes.end() && static_cast<std::size_t>(durations.count()) == most->first * all.size()) {
        in_order(kind, all);
      }
    }
  }

  void in_order(std::int32_t kind, const std::vector<std::size_t>& all) {
    std::vector<Durations> by_turn(all.size());
    const std::vector<double> took = recorded_.in_order(kind);
    for (std::size_t i = 0; i < took.size(); ++i) by_turn[i % all.size()].add(took[i]);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!found_[all[i]]) take(all[i], by_turn[i], FoundBy::name);
  }

  void by_place() {
    std::map<std::int64_t, std::vector<std::size_t>> streams;
    std::set<std::int32_t> known;
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      const Work kind = item(i).kind;
      if (kind != Work::kernel && kind != Work::product && kind != Work::library) continue;
      streams[wanted_[i].stream].push_back(i);
      if (kinds_[i] >= 0) known.insert(kinds_[i]);
    }
    const Places places(recorded_, known);
    std::map<Gap, std::vector<Piece>> said;  // of gaps of the step that look alike
    std::vector<std::pair<Gap, std::vector<std::size_t>>> gaps;
    for (const auto& [stream, order] : streams) each_gap(order, gaps);
    std::set<Gap> unclear;
    for (const auto& [gap, inside] : gaps) {
      std::vector<Piece> pieces;
      for (const std::size_t i : inside) pieces.push_back(piece_of(i));
      if (const auto entry = said.try_emplace(gap, pieces); entry.first->second != pieces) unclear.insert(gap);
    }
    for (const auto& [gap, inside] : gaps) {
      if (unclear.contains(gap)) continue;
      const std::vector<Durations>* const took = places.of(gap, said.at(gap));
      for (std::size_t i = 0; took != nullptr && i < inside.size(); ++i)
        if (!found_[inside[i]]) take(inside[i], (*took)[i], FoundBy::place);
    }
  }

  void each_gap(const std::vector<std::size_t>& order,
                std::vector<std::pair<Gap, std::vector<std::size_t>>>& to) const {
    std::int32_t before = -1;
    std::vector<std::size_t> inside;
    for (const std::size_t i : order) {
      if (kinds_[i] < 0) {
        inside.push_back(i);
        continue;
      }
      if (before >= 0 && !inside.empty())
        to.emplace_back(Gap{.before = before, .after = kinds_[i], .count = inside.size()}, inside);
      inside.clear();
      before = kinds_[i];
    }
  }

  [[nodiscard]] Piece piece_of(std::size_t i) const {
    const WorkItem& of = item(i);
    Piece piece{.kind = of.kind, .numbers = of.numbers, .name = {}};
    if (of.kind != Work::product) piece.name = without_template(bare_name(work_.name_of(of)));
    return piece;
  }

  const std::vector<Wanted>& wanted_;
  const WorkList& work_;
  const import::KinetoProgram& operators_;
  const Recorded& recorded_;
  std::vector<std::optional<Found>> found_;
  std::vector<std::int32_t> kinds_;  ///< of the recording's kernels; -1: none
};

}  // namespace

const char* to_string(FoundBy by) {
  switch (by) {
    case FoundBy::operators: return "operator and tensors";
    case FoundBy::launch: return "name, grid and block";
    case FoundBy::name: return "name alone";
    case FoundBy::sizes: return "operator and sizes";
    case FoundBy::place: return "place between kernels";
  }
  return "?";
}

std::vector<std::optional<Found>> match(const std::vector<Wanted>& wanted, const WorkList& work,
                                        const import::KinetoProgram& operators, const Recorded& recorded) {
  return Matching(wanted, work, operators, recorded).run();
}

std::string_view kind_name(Work kind) {
  switch (kind) {
    case Work::kernel: return "kernels";
    case Work::product: return "products";
    case Work::copy: return "copies";
    case Work::fill: return "fills";
    case Work::library: return "calls of libraries";
    case Work::collective: return "exchanges";
    case Work::record:
    case Work::wait:
    case Work::host_wait:
    case Work::graph:
    case Work::instance:
    case Work::step: break;
  }
  return "other work";
}

Error nothing_found(const std::vector<Wanted>& wanted, const WorkList& work, const Recorded& recorded) {
  constexpr std::size_t kMost = 3;
  std::vector<const Wanted*> kernels;
  for (const Wanted& each : wanted)
    if (work.items[each.call->item].kind == Work::kernel) kernels.push_back(&each);
  std::ranges::stable_sort(kernels, std::ranges::greater{}, [](const Wanted* each) { return each->by_law; });
  std::set<std::string> told;
  std::string looked;
  for (const Wanted* const each : kernels) {
    const WorkItem& item = work.items[each->call->item];
    const auto& n = item.numbers;
    const std::string shown = show_kernel(readable(work.name_of(item)), {n[0], n[1], n[2]}, {n[3], n[4], n[5]});
    if (told.size() < kMost && told.insert(shown).second) looked += (looked.empty() ? "" : ", ") + shown;
  }
  std::string what = "none of the step's " + std::to_string(wanted.size()) +
                     " kernels is in the recording: looked for " +
                     (looked.empty() ? "products by their operators" : looked) + "; it has " + recorded.longest();
  if (!recorded.has_sizes() && !recorded.has_types())
    what += ", without grids, so a name that a step has in several sizes counts only where all steps have as many";
  return {.code = Errc::contradiction,
          .what = std::move(what),
          .where = recorded.where(),
          .help =
              "a recording of the same program and PyTorch: its profiler with record_shapes=True, or nsys profile "
              "--trace=cuda,nvtx under torch.autograd.profiler.emit_nvtx(record_shapes=True)"};
}

}  // namespace shard::steptime
