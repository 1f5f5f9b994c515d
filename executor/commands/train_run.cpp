// One rank's part of `shardscope train`.
#include "executor/commands/train_run.h"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "executor/comm/in_process.h"
#include "executor/commands/busy_machine.h"
#include "executor/commands/memory_lines.h"
#include "executor/commands/rank_traces.h"
#include "executor/commands/run_profile.h"
#include "executor/commands/same_options.h"
#include "executor/commands/step_metrics.h"
#include "executor/commands/step_report.h"
#include "executor/commands/tensorboard.h"
#include "executor/cpu/kernels/gemm.h"
#include "executor/launch/address_space.h"
#include "executor/profile/add_records.h"
#include "executor/train/host_spans.h"
#include "executor/train/moments_observer.h"
#include "executor/train/resident.h"
#include "executor/train/trace_observer.h"
#include "sim/cli/contradiction.h"
#include "sim/cli/sizes.h"
#include "sim/cluster/read_cluster.h"
#include "sim/engine/simulate.h"
#include "sim/model/config.h"
#include "traces/base/numbers.h"
#include "traces/base/output_file.h"
#include "traces/base/run_place.h"

namespace shard::commands {
namespace {

std::int64_t now_ns(auto clock_now) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(clock_now.time_since_epoch()).count();
}

/// What all ranks of a traced run take from rank 0: the clocks, so that merging shifts nothing, and the files' names.
struct TraceStart {
  Header header;
  RankTraces files;
};

Result<TraceStart> trace_start(const Prepared& p, const TrainOptions& o, const cluster::Cluster& cluster,
                               Communicator& communicator) {
  Header header = engine::trace_header(p.plans, cluster, simulate_options(o));
  header.kind = TraceKind::measured;
  const std::string own = std::to_string(now_ns(std::chrono::steady_clock::now())) + ' ' +
                          std::to_string(now_ns(std::chrono::system_clock::now())) + ' ' +
                          RankTraces::given_or_chosen(o.trace).prefix();
  const auto all = communicator.exchange(own);
  if (!all) return all.error();
  long long clock = 0;
  long long wall = 0;
  int names = 0;
  std::sscanf(all->front().c_str(), "%lld %lld%n", &clock, &wall, &names);
  header.clock_ns = clock;
  header.wall_ns = wall;
  return TraceStart{std::move(header), RankTraces(all->front().substr(static_cast<std::size_t>(names) + 1))};
}

/// One line per step, and the log; rank 0 only.
class StepLines {
 public:
  /// `moments`: of the phase that ended last, where memory is shown.
  StepLines(const Prepared& p, const TrainOptions& o, const cluster::Cluster& cluster,
            const train::MomentsObserver* moments, std::ostream& lines)
      : metrics_(p, cluster),
        steps_(o.steps),
        first_(p.resumed == nullptr ? 1 : p.resumed->manifest().step + 1),
        print_every_(o.print_every),
        tokens_(static_cast<double>(p.planned.strategy.global_batch * p.planned.strategy.sequence)),
        model_(*p.planned.model),
        moments_(moments),
        lines_(lines) {
    if (moments_ != nullptr) memory_.emplace(p, o.steps);
  }
  void saved(const train::SavedCheckpoint& c) {
    lines_ << "saved     " << c.path.string() << ", " << cli::mib(c.bytes) << ", " << cli::duration(Seconds{c.seconds})
           << '\n'
           << std::flush;
  }
  void evaluated(const train::EvaluationResult& e) {
    char loss[48];
    std::snprintf(loss, sizeof loss, "%.6f", std::isnan(e.loss) ? NAN : e.loss);
    lines_ << "eval " << e.step << '/' << steps_ << "  loss " << loss << "  " << cli::duration(Seconds{e.seconds})
           << '\n'
           << std::flush;
    keep(e.step, evaluation_json(e));
  }
  void created() {
    if (memory_) lines_ << memory_->created(moments_->last().end) << std::flush;
  }
  /// Starts the log and TensorBoard's file, where there are to be some. They grow a step at a time, for those who
  /// follow them.
  [[nodiscard]] Result<void> open_logs(const std::string& log, const std::string& tensorboard) {
    if (!log.empty()) {
      Result<OutputFile> created = OutputFile::create(log, Appears::growing);
      if (!created) return created.error();
      log_.emplace(std::move(*created));
    }
    if (tensorboard.empty()) return {};
    Result<EventFile> created = EventFile::create(tensorboard);
    if (!created) return created.error();
    events_.emplace(std::move(*created));
    return {};
  }
  [[nodiscard]] Result<void> close_logs() {
    Result<void> closed = log_ ? log_->finish() : Result<void>();
    if (!events_) return closed;
    Result<void> events = events_->finish();
    return closed ? events : closed;
  }
  void operator()(const train::StepResult& done) {
    show(done);
    if (done.control && done.control->skip != 0) lines_ << skipped_text(model_, done.step, *done.control) << std::flush;
    if (log_ || events_) keep(done.step + 1, metrics_.json(done));
  }

 private:
  /// A failure is reported by close_logs().
  void keep(std::int64_t step, const nlohmann::ordered_json& record) {
    if (log_) {
      log_->write(record.dump() + '\n');
      static_cast<void>(log_->flush());
    }
    if (events_) events_->write(step, StepMetrics::scalars(record));
  }
  void show(const train::StepResult& done) {
    const auto number = static_cast<long long>(done.step + 1);
    if (number % print_every_ != 0 && number != first_ && number != steps_) return;
    char loss[48];
    // NaN has no sign that means anything.
    std::snprintf(loss, sizeof loss, "%.6f", std::isnan(done.loss) ? NAN : static_cast<double>(done.loss));
    if (memory_) lines_ << memory_->step(done.step, moments_->last());
    const std::string norm = done.control ? "  norm " + show_number(done.control->norm) : "";
    const std::string text = "step " + std::to_string(done.step + 1) + '/' + std::to_string(steps_) + "  loss " + loss +
                             norm + "  " + cli::duration(Seconds{done.seconds}) + "  " +
                             show_number(tokens_ / done.seconds) + " tokens/s" +
                             (memory_ ? "  " + memory_->speed(done.seconds) : "") + '\n';
    lines_ << text << std::flush;
  }

  StepMetrics metrics_;
  std::int64_t steps_;
  std::int64_t first_;
  std::int64_t print_every_;
  double tokens_;
  const model::Model& model_;
  const train::MomentsObserver* moments_;
  std::optional<MemoryLines> memory_;
  std::ostream& lines_;
  std::optional<OutputFile> log_;
  std::optional<EventFile> events_;
};

/// One step of a tiny model on a rank of its own: loads and touches what libraries load lazily, so that the baseline
/// has it.
void touch_everything(cpu::ThreadPool& pool, const plan::Strategy& like) {
  cpu::warm_up(pool);
  constexpr std::string_view kTiny =
      R"({"model_type": "gpt2", "vocab_size": 64, "n_positions": 8, "n_embd": 32, "n_layer": 1, "n_head": 2})";
  Result<model::ConfiguredModel> tiny = model::parse_config(kTiny, "warm-up", "warm-up");
  assert(tiny);
  const auto model = std::make_shared<const model::Model>(std::move(tiny->model));
  const plan::Strategy strategy{.sequence = 8, .optimizer = like.optimizer, .threads = like.threads};
  const Result<plan::PlanSet> plans = plan::compile(model, strategy);
  const auto data = open_data("random", *model, {.batch = 1, .sequence = 8, .seed = 0});
  const auto alone = make_single();
  assert(plans && data);
  const auto done = train::run_session(plans->of_rank(0), *alone, **data, pool,
                                       {.steps = 1, .scalars = {}, .after_step = {}, .before_phase = {}});
  static_cast<void>(done);  // a fault would show again in the run itself, with its own words
}

Result<void> write_predicted(const Prepared& p, const cluster::Cluster& cluster, const TrainOptions& o) {
  return o.trace_predicted.empty() ? Result<void>() : write_prediction(p, cluster, o, o.trace_predicted);
}

/// Events wait in memory until they are flushed. Some thousands at most, so that a traced run is not larger than the
/// same run without a trace.
std::int64_t steps_between_flushes(const plan::Plan& plan) {
  constexpr std::int64_t kEvents = 4096;
  const plan::PhaseOps* step = plan.find(Phase::steady_step);
  if (step == nullptr) step = plan.find(Phase::first_step);
  const std::int64_t events = step == nullptr ? 1 : 3 * static_cast<std::int64_t>(step->ops.size());
  return std::max<std::int64_t>(1, kEvents / std::max<std::int64_t>(events, 1));
}

RunPlace place_of(Phase phase, std::int64_t step) {
  if (phase == Phase::creation) return {RunPart::creation};
  if (phase == Phase::digest) return {RunPart::digest};
  if (phase == Phase::save) return {RunPart::save, step};
  if (phase == Phase::evaluate) return {RunPart::evaluation, step + 1};
  return {RunPart::step, step + 1};
}

/// Removes the ranks' traces when it goes: rank 0, which merges them, in any case; another rank unless it got so far
/// that rank 0 needs its own.
struct OwnedRankTraces {
  explicit OwnedRankTraces(std::int32_t ranks) : world_size(ranks) {}
  OwnedRankTraces(const OwnedRankTraces&) = delete;
  OwnedRankTraces& operator=(const OwnedRankTraces&) = delete;
  ~OwnedRankTraces() {
    if (!left_to_rank_0) files.remove(world_size);
  }
  RankTraces files;
  std::int32_t world_size;
  bool left_to_rank_0 = false;
};

Result<void> same_plan(const Prepared& p, Communicator& communicator) {
  return all_say(p.plans.hash, communicator, [](std::int32_t rank, const std::string& said, const std::string& first) {
    return Error{.code = Errc::contradiction,
                 .what = "rank " + std::to_string(rank) + " compiled another plan than rank 0",
                 .where = "plans " + said + " and " + first,
                 .help = "start all ranks with the same options and the same program"};
  });
}

/// Numbers of two sets would belong to neither.
Result<void> same_instruction_set(const Prepared& p, Communicator& communicator) {
  return all_say(cpu::to_string(p.instruction_set), communicator,
                 [](std::int32_t rank, const std::string& said, const std::string& first) {
                   return Error{.code = Errc::contradiction,
                                .what = "rank 0 would compute with " + first + " and rank " + std::to_string(rank) +
                                        " with " + said + ", whose bits differ",
                                .where = "--instruction-set",
                                .help = "--instruction-set avx2 where all ranks have it, or processors alike"};
                 });
}

bool is_step(Phase phase) {
  return phase == Phase::first_step || phase == Phase::steady_step;
}

/// What a run is watched by: its trace, and on rank 0 the lines of its steps.
struct Watchers {
  explicit Watchers(std::int32_t ranks) : traces(ranks) {}
  OwnedRankTraces traces;
  ProcessorTime processors;
  std::optional<Writer> writer;
  std::optional<train::TraceObserver> observer;
  std::optional<train::HostSpans> host;
  Phase phase{};                                  ///< that runs
  std::optional<train::MomentsObserver> moments;  ///< tells `observer` what it is told
  std::optional<StepLines> step_lines;
  device_profile::DeviceRecording* recording = nullptr;  ///< null: nothing is recorded
  std::optional<device_profile::DeviceRecords> records;

  [[nodiscard]] Result<void> start(const Prepared& p, const TrainOptions& o, const cluster::Cluster& cluster,
                                   Communicator& communicator, std::ostream& lines) {
    const Rank rank = communicator.rank();
    if (!o.trace.empty()) {
      Result<TraceStart> first = trace_start(p, o, cluster, communicator);
      if (!first) return first.error();
      traces.files = std::move(first->files);
      Result<Writer> created = Writer::create(traces.files.of(rank.value), first->header, Appears::temporary);
      if (!created) return created.error();
      writer.emplace(std::move(*created));
      if (o.profile) host.emplace(rank, *writer);
      observer.emplace(p.plans.of_rank(rank.value), rank, *writer, host ? &*host : nullptr);
      if (recording != nullptr) observer->leave_times_to_device();
    }
    if (rank.value > 0) return {};
    if (o.print_memory) moments.emplace(p.plans.of_rank(rank.value), observer ? &*observer : nullptr);
    step_lines.emplace(p, o, cluster, moments ? &*moments : nullptr, lines);
    return step_lines->open_logs(o.log, o.tensorboard);
  }

  /// Of all ranks of this process, into the trace of its first, once all have ended.
  [[nodiscard]] Result<void> take_records(const Prepared& p, const TrainOptions& o, Communicator& communicator) {
    if (recording == nullptr) return {};
    if (const auto all = communicator.exchange({}); !all) return all.error();
    if (recording->first_rank() != communicator.rank()) return {};
    const Result<profiler::Timeline> timeline = recording->read();
    if (!timeline) return timeline.error();
    device_profile::WantedStep wanted = nullptr;
    if (o.profile_steps)
      wanted = [steps = *o.profile_steps](Phase of, std::int64_t step) {
        return is_step(of) && steps.contains(step + 1);
      };
    records = device_profile::add_records(*timeline, p.plans, wanted, *writer);
    return {};
  }

  /// In place of finish(): what is said of a part of a run would not be what was predicted of the whole.
  [[nodiscard]] Result<TrainReport> stopped(Stopped where) {
    if (step_lines)
      if (Result<void> closed = step_lines->close_logs(); !closed) return closed.error();
    TrainReport report;
    report.stopped = std::move(where);
    return report;
  }

  [[nodiscard]] Result<void> finish(const Prepared& p, const train::SessionResult& result) {
    if (writer) {
      observer->summarize(result);
      writer->add_metadata("command", "train");
      writer->add_metadata("instruction_set", cpu::to_string(p.instruction_set));
      writer->add_metadata("matrix_library", cpu::matrix_library());
      if (Result<void> closed = writer->close(); !closed) return closed.error();
    }
    if (step_lines) return step_lines->close_logs();
    return {};
  }
};

/// The session that `watchers` watch, and stay for.
train::SessionOptions session_of(const TrainOptions& o, const plan::Plan& plan, Rank rank, Watchers& watchers) {
  train::SessionOptions session = session_options(o);
  if (watchers.observer) session.observer = &*watchers.observer;
  if (watchers.moments) session.observer = &*watchers.moments;
  session.after_step = [&watchers, steps_per_flush = steps_between_flushes(plan)](const train::StepResult& done) {
    if (watchers.step_lines) (*watchers.step_lines)(done);
    // A failed write is reported by close().
    if (watchers.writer && (done.step + 1) % steps_per_flush == 0) static_cast<void>(watchers.writer->flush());
  };
  session.before_phase = [&watchers, rank, steps = o.steps, recorded = o.profile_steps](Phase phase,
                                                                                        std::int64_t step) {
    set_run_place(place_of(phase, step));
    watchers.phase = phase;
    const std::int64_t told = phase == Phase::digest ? steps - 1 : phase == Phase::save ? step - 1 : step;
    if (watchers.observer) {
      watchers.observer->begin(phase, told);
      watchers.observer->record_spans(!recorded || (is_step(phase) && recorded->contains(step + 1)));
    }
    if (watchers.host) watchers.host->begin(phase, told);
    if (watchers.moments) watchers.moments->begin(phase);
    if (watchers.recording != nullptr) watchers.recording->begin_phase(rank, phase, told);
  };
  if (watchers.host || watchers.moments)
    session.after_phase = [&watchers, rank] {
      if (watchers.moments) watchers.moments->end();
      if (watchers.moments && watchers.phase == Phase::creation) watchers.step_lines->created();
      if (watchers.host) watchers.host->end();
      if (watchers.recording != nullptr) watchers.recording->end_phase(rank);
    };
  return session;
}

/// When and on what the session is evaluated. `data` and `watchers` outlive it.
train::EvaluationPlan evaluation_of(const TrainOptions& o, const RunData& data, Watchers& watchers) {
  return {.every = o.evaluation.every,
          .steps = o.evaluation.steps,
          .use_validation = [&data](bool yes) { data.validation->use_validation(yes); },
          .after =
              [&watchers](const train::EvaluationResult& e) {
                if (watchers.step_lines) watchers.step_lines->evaluated(e);
              }};
}

/// What the machine did beside the run's processes.
double cores_of_others(const ProcessorTime& processors, const std::vector<RankReport>& ranks) {
  std::map<std::int64_t, double> own;
  for (const RankReport& rank : ranks) own[rank.process] = rank.processor_seconds;
  double seconds = 0;
  for (const auto& [process, of_it] : own) seconds += of_it;
  return processors.cores_of_others(seconds);
}

/// What rank 0 does when all ranks have ended: files that are whole get their names.
Result<void> finish_files(const Prepared& p, const TrainOptions& o, const cluster::Cluster& cluster, Watchers& watchers,
                          RankWeights& weights, device_profile::DeviceRecording* recording, TrainReport& report) {
  report.cores_of_others = cores_of_others(watchers.processors, report.ranks);
  report.calibrated = cluster.measured.has_value();
  if (Result<void> merged = watchers.traces.files.merge(p.planned.strategy.world_size, o.trace); !merged)
    return merged.error();
  if (Result<void> written = write_predicted(p, cluster, o); !written) return written.error();
  if (o.profile) {
    Result<RunProfile> profile = profile_of_run(p, o, cluster);
    if (!profile) return profile.error();
    report.profile = std::move(*profile);
    report.profile->records = std::move(watchers.records);
    if (recording != nullptr) report.profile->why_not_recorded = recording->why_not();
  }
  if (Result<void> saved = weights.finish(); !saved) return saved.error();
  return {};
}

}  // namespace

Result<TrainReport> train_on_rank(const Prepared& p, const TrainOptions& o, Communicator& communicator,
                                  std::ostream& lines, const RunSession& run,
                                  device_profile::DeviceRecording* recording) {
  const Rank rank = communicator.rank();
  const plan::Strategy& s = p.planned.strategy;
  if (Result<void> ok = same_plan(p, communicator); !ok) return ok.error();
  if (Result<void> ok = same_instruction_set(p, communicator); !ok) return ok.error();
  const Result<cluster::Cluster> cluster = cluster::read_cluster(o.cluster);
  if (!cluster) return cluster.error();
  const Result<RunData> data = open_run_data(o, *p.planned.model, s);
  if (!data) return data.error();
  const plan::Plan& plan = p.plans.of_rank(rank.value);
  const auto weights = RankWeights::start(o.weights, p.weights, p.planned.config, plan, communicator);
  if (!weights) return weights.error();
  Bytes room = address_space_of_computing(s.threads);
  for (const Bytes arena : plan.arena_bytes) room += arena;
  if (Result<void> ok = check_address_space(address_space_used(), room, "this rank"); !ok) return ok.error();
  cpu::ThreadPool pool(s.threads);
  touch_everything(pool, s);

  Watchers watchers(s.world_size);
  if (recording != nullptr && recording->is_recording()) watchers.recording = recording;
  if (Result<void> ok = watchers.start(p, o, *cluster, communicator, lines); !ok) return ok.error();
  const Bytes baseline = train::proportional_set_size();
  Bytes resident{0};
  train::SessionOptions session = session_of(o, plan, rank, watchers);
  (*weights)->tell(session);
  if (p.resumed != nullptr) p.resumed->tell(session);
  session.evaluation = evaluation_of(o, *data, watchers);
  std::vector<train::SavedCheckpoint> saved;
  const auto keeper = keeper_of(o, p, plan, communicator, [&](const train::SavedCheckpoint& c) {
    saved.push_back(c);
    if (watchers.step_lines) watchers.step_lines->saved(c);
  });
  if (!keeper) return keeper.error();
  session.keeper = keeper->get();
  session.before_end = [&]() -> Result<void> {
    set_run_place({RunPart::results});
    // A shared page counts by the processes that have touched it: nobody asks before all ranks have run.
    if (const auto all = communicator.exchange({}); !all) return all.error();
    resident = train::proportional_set_size() - baseline;
    return {};
  };
  set_run_place({RunPart::arenas});
  Result<train::SessionResult> result = run(plan, *data->source, pool, session);
  if (!result) return result.error();
  if (const int signal = *keeper == nullptr ? 0 : (*keeper)->ended_by(); signal != 0) {
    const train::SavedCheckpoint last = saved.empty() ? train::SavedCheckpoint{} : saved.back();
    return watchers.stopped({.signal = signal, .steps = last.step, .checkpoint = last.path.string()});
  }
  if (Result<void> ok = watchers.take_records(p, o, communicator); !ok) return ok.error();
  if (Result<void> ok = watchers.finish(p, *result); !ok) return ok.error();
  if (Result<void> ok = (*weights)->check(communicator); !ok) return ok.error();
  const auto reports = communicator.exchange(pack({.peak = result->peak,
                                                   .optimizer_state = result->optimizer_state,
                                                   .resident = resident,
                                                   .weights_read = (*weights)->read_bytes(),
                                                   .process = getpid(),
                                                   .processor_seconds = watchers.processors.of_this_process(),
                                                   .collectives = result->collectives}));
  if (!reports) return reports.error();
  TrainReport report{.planned = &p.planned,
                     .prediction = &p.prediction,
                     .own = std::move(*result),
                     .ranks = {},
                     .device_overhead = cluster->device_overhead,
                     .data = p.data,
                     .validation = p.validation,
                     .transport = std::string(communicator.name()),
                     .instruction_set = p.instruction_set,
                     .weights = (*weights)->report(),
                     .resumed = p.resumed.get(),
                     .saved = std::move(saved)};
  for (const std::string& text : *reports) report.ranks.push_back(unpack(text));
  if (rank.value > 0)
    watchers.traces.left_to_rank_0 = true;
  else if (Result<void> done = finish_files(p, o, *cluster, watchers, **weights, recording, report); !done)
    return done.error();
  return report;
}

}  // namespace shard::commands
