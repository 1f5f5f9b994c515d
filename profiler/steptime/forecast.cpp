// Three repetitions: what the second and the third differ by is a step of many.
#include "profiler/steptime/forecast.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "profiler/steptime/host_time.h"
#include "profiler/steptime/kernel_names.h"
#include "profiler/steptime/prices.h"
#include "profiler/steptime/virtual_time.h"
#include "sim/cost/laws/whole_step.h"

namespace shard::steptime {
namespace {

/// Words for kinds of NCCL's calls (standin/nccl.cpp), as its kernels are called.
constexpr std::array<std::string_view, 12> kCollectives{"",          "AllReduce",     "Reduce",   "Broadcast",
                                                        "AllGather", "ReduceScatter", "AllToAll", "Gather",
                                                        "Scatter",   "SendRecv",      "",         "SendRecv"};
constexpr std::string_view kRecorded = "recorded";
constexpr double kMostOfUnknown = 3;  ///< times what was assumed

/// A call with its price.
struct Priced {
  Given given;
  Cost cost;
  const Call* call = nullptr;
  bool runs = false;  ///< on the device
};

bool runs_on_device(Work kind) {
  return kind == Work::kernel || kind == Work::product || kind == Work::collective || kind == Work::copy ||
         kind == Work::fill || kind == Work::library;
}

class Stepping {
 public:
  Stepping(const WorkList& work, const import::KinetoProgram& operators, const Where& where)
      : work_(work),
        operators_(operators),
        where_(where),
        calls_(step_calls(work, operators, where.step)),
        prices_(work, operators, calls_, *where.cluster) {}

  Result<Forecast> run() {
    find_captures();
    for (const Call& call : calls_.calls) add(call);
    if (std::ranges::none_of(given_, &Priced::runs))
      return Error{Errc::contradiction, "the program gave the GPU nothing in a step, so there is no time to tell", "",
                   "a program that computes on a GPU"};
    if (where_.recorded != nullptr)
      if (const Result<void> taken = take_recorded(*where_.recorded); !taken) return taken.error();
    repeat();
    account();
    doubts();
    return std::move(answer_);
  }

 private:
  void find_captures();
  void add(const Call& call);
  void add_captured(const Call& launch);
  [[nodiscard]] double host_before(const Call& call) const;
  Result<void> take_recorded(const Recorded& recorded);
  void tell_recorded(const std::vector<std::optional<Found>>& found);
  void repeat();
  void add_moment(std::int64_t real_ns, double issued);
  void account();
  void show(const Priced& priced, const Placed& placed);
  void doubts();
  [[nodiscard]] std::string name_of(const Priced& priced) const;

  const WorkList& work_;
  const import::KinetoProgram& operators_;
  const Where& where_;
  const StepCalls calls_;
  const Prices prices_;
  std::map<std::int64_t, std::vector<std::size_t>> captured_;  ///< items, by capture
  std::map<std::int64_t, std::int64_t> instances_;             ///< captures, by executable graph
  std::vector<Priced> given_;
  std::int64_t main_thread_ = 0;
  double begin_ = 0, end_ = 0;  ///< of the last repetition
  std::vector<std::pair<const Priced*, Placed>> placed_;
  Forecast answer_;
};

void Stepping::find_captures() {
  for (std::size_t i = 0; i < work_.items.size(); ++i) {
    const WorkItem& item = work_.items[i];
    if (item.kind == Work::instance) instances_[item.numbers[0]] = item.numbers[1];
    if (item.capture != 0) captured_[item.capture].push_back(i);
  }
  // What trains is a program's main thread, which has the lowest number of all (the kernel counts on).
  for (const Call& call : calls_.calls) {
    const std::int64_t thread = work_.items[call.item].thread;
    if (main_thread_ == 0 || thread < main_thread_) main_thread_ = thread;
  }
}

double Stepping::host_before(const Call& call) const {
  const WorkItem& item = work_.items[call.item];
  const double share = item.thread == main_thread_ ? 1 : kShareOfBackward;
  const double operators = call.operators_before * kOperator * share;
  if (item.kind == Work::collective) {
    const bool of_shards = item.numbers[0] == static_cast<std::int64_t>(NcclCall::all_gather) ||
                           item.numbers[0] == static_cast<std::int64_t>(NcclCall::reduce_scatter);
    return operators + (of_shards ? kOfShards : kExchange);
  }
  if (item.kind == Work::graph) return operators + kGraph;
  if (!runs_on_device(item.kind)) return operators + kEvent;
  return operators + kCall + (call.outermost < 0 ? kNoOperator : 0);
}

void Stepping::add(const Call& call) {
  const WorkItem& item = work_.items[call.item];
  if (item.capture != 0) return;  // it runs where its graph is launched
  if (item.kind == Work::graph) return add_captured(call);
  if (item.kind == Work::instance || item.kind == Work::step) return;
  if (item.kind == Work::collective && prices_.is_part_of_earlier(call)) return;
  Priced priced{.given = {}, .cost = {}, .call = &call, .runs = runs_on_device(item.kind)};
  priced.given = {.stream = item.stream, .event = item.numbers[0], .host = host_before(call)};
  if (priced.runs) {
    priced.cost = prices_.of(call);
    priced.given.deed = item.kind == Work::collective ? Deed::exchange : Deed::compute;
    priced.given.duration = priced.cost.seconds + kBetweenKernels;
  } else if (item.kind == Work::record) {
    priced.given.deed = Deed::record;
  } else if (item.kind == Work::wait) {
    priced.given.deed = Deed::wait;
  } else {
    constexpr std::int64_t kStream = 1, kEvent = 2;
    priced.given.deed = item.numbers[0] == kStream  ? Deed::host_waits_for_stream
                        : item.numbers[0] == kEvent ? Deed::host_waits_for_event
                                                    : Deed::host_waits_for_all;
    priced.given.event = item.numbers[1];
  }
  given_.push_back(priced);
}

/// What a graph holds runs on the stream that it is launched on, in the order in which it was captured.
void Stepping::add_captured(const Call& launch) {
  const WorkItem& graph = work_.items[launch.item];
  double host = host_before(launch);
  const auto instance = instances_.find(graph.numbers[0]);
  const auto captured = instance == instances_.end() ? captured_.end() : captured_.find(instance->second);
  if (captured == captured_.end()) return;
  for (const std::size_t index : captured->second) {
    const WorkItem& item = work_.items[index];
    if (!runs_on_device(item.kind)) continue;
    const Call& call = *std::ranges::lower_bound(calls_.captured, index, {}, &Call::item);
    if (prices_.is_part_of_earlier(call)) continue;
    Priced priced{.given = {}, .cost = prices_.of(call), .call = &call, .runs = true};
    priced.given = {.deed = item.kind == Work::collective ? Deed::exchange : Deed::compute,
                    .stream = graph.stream,
                    .host = host,
                    .duration = priced.cost.seconds + kBetweenNodes};
    host = 0;
    given_.push_back(priced);
  }
}

Result<void> Stepping::take_recorded(const Recorded& recorded) {
  std::vector<Wanted> wanted;
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < given_.size(); ++i)
    if (const Priced& priced = given_[i]; priced.runs && priced.given.deed == Deed::compute) {
      wanted.push_back({.call = priced.call, .stream = priced.given.stream, .by_law = priced.cost.seconds});
      which.push_back(i);
    }
  const std::vector<std::optional<Found>> matched = match(wanted, work_, operators_, recorded);
  if (std::ranges::none_of(matched, &std::optional<Found>::has_value)) return nothing_found(wanted, work_, recorded);
  std::vector<std::optional<Found>> found(given_.size());
  for (std::size_t i = 0; i < which.size(); ++i) {
    if (!matched[i]) continue;
    Priced& priced = given_[which[i]];
    priced.given.duration += matched[i]->seconds - priced.cost.seconds;
    priced.cost = {.seconds = matched[i]->seconds, .doubt = matched[i]->doubt, .law = kRecorded};
    found[which[i]] = matched[i];
  }
  tell_recorded(found);
  return {};
}

void Stepping::tell_recorded(const std::vector<std::optional<Found>>& found) {
  std::map<Work, NotRecorded> left;
  double all = 0;
  for (std::size_t i = 0; i < given_.size(); ++i) {
    if (!given_[i].runs) continue;
    const double seconds = given_[i].cost.seconds;
    all += seconds;
    if (found[i]) {
      answer_.recorded_by[static_cast<std::size_t>(found[i]->by)] += seconds;
      continue;
    }
    NotRecorded& entry = left[work_.items[given_[i].call->item].kind];
    entry.kind = work_.items[given_[i].call->item].kind;
    ++entry.count;
    entry.by_law += Seconds{seconds};
  }
  for (double& share : answer_.recorded_by) share = all > 0 ? share / all : 0;
  for (const auto& [kind, entry] : left) answer_.not_recorded.push_back(entry);
  std::ranges::stable_sort(answer_.not_recorded, std::ranges::greater{},
                           [](const NotRecorded& each) { return each.by_law.count(); });
}

/// Threads write their lines one after another, but what a graph holds was given when it was captured.
void Stepping::add_moment(std::int64_t real_ns, double issued) {
  if (answer_.host.empty() || real_ns > answer_.host.back().real_ns)
    answer_.host.push_back({.real_ns = real_ns, .predicted = Seconds{issued - begin_}});
}

void Stepping::repeat() {
  constexpr int kRepetitions = 3;
  VirtualTime time;
  // Of a run without steps there is one.
  const int repetitions = calls_.step == 0 ? 1 : kRepetitions;
  for (int i = 0; i < repetitions; ++i) {
    begin_ = std::max(time.host(), time.device());
    placed_.clear();
    for (const Priced& priced : given_) {
      const Placed placed = time.give(priced.given);
      if (priced.runs) placed_.emplace_back(&priced, placed);
      if (i + 1 == repetitions) add_moment(work_.items[priced.call->item].time_ns, placed.issued);
    }
    end_ = std::max(time.host(), time.device());
  }
}

std::string Stepping::name_of(const Priced& priced) const {
  const WorkItem& item = work_.items[priced.call->item];
  if (item.kind == Work::copy) return "copy";
  if (item.kind == Work::fill) return "fill";
  if (item.kind == Work::collective) {
    const auto kind = static_cast<std::size_t>(item.numbers[0]);
    return "ncclDevKernel_" + std::string(kind < kCollectives.size() ? kCollectives[kind] : "");
  }
  return readable(work_.name_of(item));
}

void Stepping::show(const Priced& priced, const Placed& placed) {
  const WorkItem& item = work_.items[priced.call->item];
  const std::int32_t outer = priced.call->outermost;
  Shown shown{.name = name_of(priced),
              .op = outer < 0 ? "" : operators_.operators[static_cast<std::size_t>(outer)].name,
              .law = priced.cost.law,
              .kind = item.kind,
              .thread = item.thread,
              .stream = priced.given.stream,
              .issued = Seconds{placed.issued - begin_},
              .begin = Seconds{placed.begin - begin_},
              .end = Seconds{placed.end - begin_}};
  if (item.kind == Work::kernel)
    for (std::size_t i = 0; i < 3; ++i) shown.grid[i] = item.numbers[i], shown.block[i] = item.numbers[i + 3];
  if (item.kind == Work::copy || item.kind == Work::fill) shown.bytes = item.numbers[0];
  if (item.kind == Work::collective) shown.bytes = item.numbers[1];
  answer_.shown.push_back(std::move(shown));
}

/// Each moment of the step is the law's whose kernel computes then; where none does, an exchange's; where none runs,
/// the host's.
void Stepping::account() {
  struct Edge {
    double time;
    const Priced* priced;
    bool begins;
  };
  std::vector<Edge> edges;
  for (const auto& [priced, placed] : placed_) {
    const double begin = std::max(placed.begin, begin_), end = std::min(placed.end, end_);
    if (end <= begin) continue;
    edges.push_back({begin, priced, true});
    edges.push_back({end, priced, false});
    show(*priced, placed);
  }
  std::ranges::stable_sort(edges, {}, &Edge::time);
  std::map<std::string, double> parts;
  std::multiset<const Priced*> computing, exchanging;
  double before = begin_;
  for (const Edge& edge : edges) {
    const double passed = edge.time - before;
    before = edge.time;
    parts[!computing.empty()    ? std::string((*computing.begin())->cost.law)
          : !exchanging.empty() ? "exposed communication"
                                : "waiting for the host"] += passed;
    auto& running = edge.priced->given.deed == Deed::exchange ? exchanging : computing;
    if (edge.begins)
      running.insert(edge.priced);
    else
      running.erase(running.find(edge.priced));
  }
  parts["waiting for the host"] += end_ - before;
  double total = end_ - begin_;
  if (where_.world_size > 1) {
    const double late = total * cost::share_of_waiting(static_cast<double>(where_.world_size));
    parts["waiting for the slowest rank"] = late;
    total += late;
  }
  for (const auto& [name, seconds] : parts)
    if (seconds > 0) answer_.parts.push_back({.name = name, .time = Seconds{seconds}});
  std::ranges::stable_sort(answer_.parts, std::ranges::greater{}, [](const Part& part) { return part.time.count(); });
  answer_.seconds = Seconds{total};
  answer_.step = calls_.step;
}

void Stepping::doubts() {
  std::map<std::string_view, double> weighted;  // doubts of kernels by one law are one doubt
  std::map<std::string, NotKnown> unknown;
  double known = 0, assumed = 0;
  for (const auto& [priced, placed] : placed_) {
    const bool exchanges = priced->given.deed == Deed::exchange;
    ++(exchanges ? answer_.exchanges : answer_.kernels);
    const WorkItem& item = work_.items[priced->call->item];
    if (exchanges && (item.numbers[0] == static_cast<std::int64_t>(NcclCall::send) ||
                      item.numbers[0] == static_cast<std::int64_t>(NcclCall::receive)))
      answer_.waits_for_stages = true;
    const double seconds = priced->cost.seconds;
    if (priced->cost.known) {
      known += seconds;
      if (priced->cost.law == kRecorded) answer_.recorded += seconds;
      weighted[priced->cost.law] += seconds * priced->cost.doubt;
    } else {
      assumed += seconds;
      NotKnown& entry = unknown[name_of(*priced)];
      entry.name = name_of(*priced);
      ++entry.kernels;
      entry.assumed += Seconds{seconds};
    }
  }
  answer_.recorded = known + assumed > 0 ? answer_.recorded / (known + assumed) : 0;
  answer_.coverage = known + assumed > 0 ? known / (known + assumed) : 1;
  for (auto& [name, entry] : unknown) answer_.not_known.push_back(std::move(entry));
  std::ranges::stable_sort(answer_.not_known, std::ranges::greater{},
                           [](const NotKnown& each) { return each.assumed.count(); });
  const double total = answer_.seconds.count();
  const double card = cost::doubt_of_card(*where_.cluster);
  const double hosts = cost::doubt_of_network(*where_.cluster, static_cast<double>(where_.world_size));
  double square = cost::kLawError * cost::kLawError + card * card + hosts * hosts;
  for (const auto& [law, doubt] : weighted) square += doubt * doubt / (total * total);
  double waiting = 0;  // a host that is slower or faster by a half
  for (const Part& part : answer_.parts)
    if (part.name == "waiting for the host") waiting += 0.5 * part.time.count() / total;
  square += waiting * waiting;
  const double x = std::sqrt(square);
  answer_.low = Seconds{std::max(0.0, total - assumed) / (1 + x)};
  answer_.high = Seconds{(total + (kMostOfUnknown - 1) * assumed) * (1 + x)};
}

}  // namespace

Result<Forecast> forecast(const WorkList& work, const import::KinetoProgram& operators, const Where& where) {
  return Stepping(work, operators, where).run();
}

}  // namespace shard::steptime
