// `shardscope train`: who am I, start or join the other ranks, train, report.
#include "executor/commands/train_command.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>

#include <nlohmann/json.hpp>

#include "executor/commands/busy_machine.h"
#include "executor/commands/device_train.h"
#include "executor/commands/join_ranks.h"
#include "executor/commands/rank_recorders.h"
#include "executor/commands/rank_traces.h"
#include "executor/commands/same_options.h"
#include "executor/commands/stop_request.h"
#include "executor/commands/train_run.h"
#include "executor/launch/address_space.h"
#include "executor/launch/job.h"
#include "executor/launch/parent_line.h"
#include "executor/launch/rank_watch.h"
#include "executor/launch/role.h"
#include "sim/cli/output.h"
#include "sim/cli/uncaught.h"
#include "sim/commands/printing.h"
#include "sim/engine/report.h"
#include "traces/base/deadline.h"
#include "traces/base/numbers.h"
#include "traces/base/run_place.h"
#include "traces/base/stop.h"

namespace shard::commands {
namespace {

constexpr const char* kDetails =
    R"(Trains for real, sharded over ranks that this command starts (or under mpirun, srun and torchrun, where it
joins the ranks that are there), and shows that memory and communication are what the plan said.

Examples:
  shardscope train --model gpt2-nano --data text:/usr/share/common-licenses/GPL-3 --ranks 2 --stage 3
  shardscope train --model gpt2-nano --data random --ranks 4 --stage 3 --unit chunk --chunk-size 128Ki \
      --steps 5 --trace measured.sst --trace-predicted predicted.sst
  shardscope compare predicted.sst measured.sst
  torchrun --no-python --nproc-per-node 2 shardscope train --model gpt2-nano --data random --stage 3

Ranks of torchrun, and of srun without PMI, meet over TCP: at MASTER_ADDR and MASTER_PORT, or the port after it where
torchrun's agent has that one for itself; SHARDSCOPE_PORT=N, for all ranks, says another. --ranks is left out there.

The result does not depend on the strategy: state_sha256 is the same for every stage, unit, number of ranks and
recomputation, as long as the global batch is cut into the same micro-batches.

With --save-at-exit a run that gets SIGTERM or SIGINT finishes its step, saves, says where on stderr, and dies of that
signal (a shell's 143 or 130). A run that was whole by then ends as ever.
)";

/// What a shell adds to a signal's number for the exit code of who died of it.
constexpr int kBySignal = 128;

/// Where a rank's last word goes: the parent that started it, or this process's own stderr.
class LastWord {
 public:
  explicit LastWord(std::unique_ptr<ParentLine> line) : line_(std::move(line)) {
    if (line_ == nullptr) return;
    // Also when all is over for this rank: it has said its last word then, and what ends it is no news.
    // What MPI finds wrong with ranks that are ended a moment earlier is no news either.
    stop::with_say([line = line_](const Error& error) {
      report(*line, error, exit_code(error.code));
      line->fall_silent();
    }).keep();
    watch_ = watch_for_parent(*line_);
  }
  /// What a rank waited for in vain is said with the place of its run.
  int say(Error error) {
    if (const std::string place = to_string(run_place()); error.code == Errc::retryable && !place.empty())
      error.where = error.where.empty() ? place : place + ", " + error.where;
    if (line_ == nullptr) return cli::print_error(std::cerr, error, cli::style_of(2));
    report(*line_, error, exit_code(error.code));
    if (error.code == Errc::retryable) line_->let_others_end_first();
    return exit_code(error.code);
  }
  /// The rank's result has been printed.
  int done() {
    if (line_ == nullptr) return 0;  // run_program looks at stdout
    if (const Result<void> written = cli::flush(std::cout); !written) {
      std::cout.clear();  // once is enough
      return say(written.error());
    }
    line_->report(0, "");
    return 0;
  }
  /// The run was asked to end. Rank 0 says it for all; what a rank of ours dies of would be a fault to its launcher.
  int stopped(const Stopped& where, const TrainOptions& o, bool first, StopRequest& request) {
    const Error error{
        .code = Errc::retryable,
        .what = std::string("stopped by signal: ") + strsignal(where.signal) + "; saved " + where.checkpoint,
        .where = "step " + std::to_string(where.steps),
        .help = "--resume " + o.checkpoints.save + ", to go on"};
    if (line_ != nullptr && !first) return done();
    if (line_ != nullptr) {
      if (const Result<void> written = cli::flush(std::cout); !written) return done();
      report(*line_, error, kBySignal + where.signal);
      return 0;
    }
    if (first) cli::print_error(std::cerr, error, cli::style_of(2));
    request.end_by(where.signal);
    return kBySignal + where.signal;
  }

 private:
  static void report(ParentLine& line, const Error& error, int code) {
    std::ostringstream text;
    cli::print_error(text, error);
    line.report(code, text.str());
  }

  std::shared_ptr<ParentLine> line_;
  stop::Registration watch_;
};

/// The answer of a run that does not fit: the prediction, as `shardscope simulate --json` gives it.
void print_prediction(const cli::Command& command, const Prepared& prepared, const TrainOptions& o) {
  nlohmann::ordered_json j = cli::json_document("train");
  j["assumed"] = to_json(command, assumed_of(prepared.planned, prepared.prediction));
  j["model"] = prepared.planned.model->name;
  j.update(engine::to_json(prepared.prediction, change_that_fits(prepared, o)));
  j["fits"] = false;
  std::cout << cli::json_text(j) << std::flush;
}

/// With shared memory every rank maps the arenas of all.
Bytes address_space_per_rank(const Prepared& prepared) {
  const plan::Strategy& s = prepared.planned.strategy;
  const Bytes arena = prepared.prediction.largest(Memory::device).peak[0];
  const std::int64_t mapped = s.transport == plan::Transport::messages ? 1 : s.world_size;
  return address_space_of_rank(s.threads) + mapped * arena;
}

/// Before the advice, which stays the last line.
std::string with_account(std::string message, const std::string& account) {
  if (account.empty()) return message;
  const std::size_t advice = message.rfind("\n  try: ");
  const bool ends_line = message.ends_with('\n');
  const std::size_t at = advice != std::string::npos ? advice : message.size() - (ends_line ? 1 : 0);
  return message.insert(at, "\n  " + account);
}

void print_end(const JobEnd& end) {
  if (end.noticed) {
    Error error = *end.noticed;
    error.what = with_account(error.what, end.account);
    cli::print_error(std::cerr, error, cli::style_of(2));
  }
  if (!end.message.empty()) cli::print(std::cerr, with_account(end.message, end.account));
  std::cerr << std::flush;
}

/// After a failure, where they were asked for.
void keep_recorders(const RankRecorders& recorders, const std::string& path) {
  if (path.empty()) return;
  const Result<bool> kept = recorders.keep(path);
  if (!kept)
    cli::print_error(std::cerr, kept.error(), cli::style_of(2));
  else if (*kept)
    cli::print(std::cerr, "recorders are in " + path + ": shardscope inspect " + path + '\n');
}

/// Takes a first signal of this process for `request`, where the options say so.
void listen(StopRequest& request, TrainOptions& o, StopRequest::Says says, std::vector<pid_t> enders = {}) {
  if (!o.checkpoints.at_exit) return;
  request.listen(says, std::move(enders));
  o.checkpoints.asked = [&request] { return request.signal(); };
}

/// Starts the ranks and waits for them. They get the very arguments of this process.
int run_ranks(std::span<const std::string> arguments, TrainOptions& o) {
  if (const Result<void> may = may_start_ranks(); !may)
    return cli::print_error(std::cerr, may.error(), cli::style_of(2));
  StopRequest request;
  listen(request, o, StopRequest::Says::request);
  std::vector<std::string> line{own_program(), "train"};
  line.insert(line.end(), arguments.begin(), arguments.end());
  const RankTraces traces = RankTraces::choose(o.trace);
  setenv(RankTraces::kVariable, traces.prefix().c_str(), 1);
  traces.adopt(
      o.strategy.chosen.world_size);  // at a stop they are removed when the ranks, stopped before, write no more
  RankRecorders recorders(o.strategy.chosen.world_size);
  const Result<JobEnd> end =
      run_job(line, {.ranks = o.strategy.chosen.world_size,
                     .deadline = deadline_of(o.timeout_seconds),
                     .answer = print_end,
                     .recorders = recorders.descriptors(),
                     .explain = [&](const Suspects& suspects) { return recorders.verdict(suspects); },
                     .asked = o.checkpoints.asked});
  traces.remove(o.strategy.chosen.world_size);
  if (!end) return cli::print_error(std::cerr, end.error(), cli::style_of(2));
  if (end->exit_code != 0 && end->exit_code <= kBySignal) keep_recorders(recorders, o.recorder);
  if (end->exit_code > kBySignal) request.end_by(end->exit_code - kBySignal);
  return end->exit_code;
}

std::ostream& lines_of(cli::Format format) {
  return format == cli::Format::json ? std::cerr : std::cout;
}

void print_start(const cli::Command& command, const TrainOptions& o, const Prepared& prepared, cli::Format format) {
  print_notes(prepared.planned.notes);
  if (prepared.weights != nullptr) print_notes(prepared.weights->notes());
  cli::print(lines_of(format), foreign_lines(o.foreign));
  cli::print(lines_of(format),
             heading(command, prepared.planned, prepared.prediction,
                     prepared.data + (prepared.validation.empty() ? "" : "; evaluated on " + prepared.validation),
                     prepared.instruction_set));
  if (prepared.resumed != nullptr)
    cli::print(lines_of(format), "resumed   " + prepared.resumed->path().string() + ", behind step " +
                                     std::to_string(prepared.resumed->manifest().step) + '\n');
  if (prepared.weights != nullptr) cli::print(lines_of(format), "weights   " + prepared.weights->describe() + '\n');
}

void print_report(const cli::Command& command, const TrainReport& report, cli::Format format) {
  if (format == cli::Format::json)
    std::cout << cli::json_text(to_json(command, report));
  else
    cli::print(std::cout, to_text(report));
  if (report.calibrated && is_busy(report.cores_of_others))
    print_notes({busy_text(report.cores_of_others) + "without them the steps are faster"});
  std::cout << std::flush;
}

/// All ranks in this process, on one GPU or one each.
int device_main(const cli::Command& command, TrainOptions& o, const Prepared& prepared, cli::Format format) {
  StopRequest request;
  listen(request, o, StopRequest::Says::request);
  LastWord last_word(nullptr);
  print_start(command, o, prepared, format);
  RankRecorders recorders(o.strategy.chosen.world_size);
  const auto recorded = recorders.map(prepared.plans);
  std::vector<flight::Recorder*> by_rank;
  for (const auto& each : recorded) by_rank.push_back(each.get());
  Result<TrainReport> report = cli::guarded([&] { return train_on_device(prepared, o, by_rank, lines_of(format)); });
  if (!report) {
    Error error = report.error();
    if (const std::string words = error.code == Errc::retryable ? recorders.verdict({}) : ""; !words.empty())
      error.what += "\n  " + words;
    const int code = last_word.say(error);
    keep_recorders(recorders, o.recorder);
    return code;
  }
  if (report->stopped) return last_word.stopped(*report->stopped, o, true, request);
  print_report(command, *report, format);
  set_run_place({RunPart::end});
  return last_word.done();
}

void print_ranks(std::ostream& lines, Role role, const Communicator& communicator) {
  role.world = communicator.size();  // PMIx alone does not say it
  cli::print(lines, "ranks     " + describe(role) + ", over " + std::string(communicator.name()) + '\n');
}

Result<Prepared> prepare_for(const cli::Command& command, const Role& role, int ranks, TrainOptions& o) {
  if (Result<void> taken = take_world(command, role, ranks, o); !taken) return taken.error();
  return cli::guarded([&] { return prepare(command, o); });
}

/// What ranks do once they have met: they make sure that they are of one run, and then prepare it, unless they have.
Result<void> prepare_together(const cli::Command& command, const Role& role, TrainOptions& o,
                              Communicator& communicator, std::optional<Prepared>& prepared) {
  if (!prepared)
    if (Result<void> taken = take_world(command, role, communicator.size(), o); !taken) return taken;
  if (Result<void> same = same_options(command, communicator); !same) return same;
  if (prepared) return {};
  Result<Prepared> now = cli::guarded([&] { return prepare(command, o); });
  if (!now) return now.error();
  prepared = std::move(*now);
  return {};
}

/// A rank that refuses by itself has said why; now the others hear of it, so that none waits for it in vain: which
/// option differs, where one does. Ranks that are started together come within some seconds.
void tell_others(const cli::Command& command, const Role& role, TrainOptions o, const Error& error) {
  constexpr double kStartedTogether = 10;
  o.timeout_seconds = std::min(o.timeout_seconds, kStartedTogether);
  const Result<std::unique_ptr<Communicator>> communicator = join_ranks(role, o);
  if (!communicator) return;
  if (const Result<void> same = same_options(command, **communicator); same) (*communicator)->abort(error.what);
}

/// A rank's flight recorder: in the file that the process gave it that started it and reads it, or its own.
class RankRecording {
 public:
  /// `given`: -1 for none.
  [[nodiscard]] Result<void> start(const Prepared& prepared, const TrainOptions& o, const Communicator& communicator,
                                   int given) {
    const Rank rank = communicator.rank();
    const flight::Whose whose{.rank = rank, .world = communicator.size(), .plan_hash = prepared.plans.hash};
    const plan::Plan& plan = prepared.plans.of_rank(rank.value);
    if (given >= 0) {
      Result<std::unique_ptr<flight::Recorder>> mapped = flight::Recorder::map(given, whose, plan);
      if (mapped) given_ = std::move(*mapped);  // where there is no room for it the run is worth more
      return {};
    }
    Result<OwnRecorder> made = OwnRecorder::start(o.recorder, whose, plan);
    if (!made) return o.recorder.empty() ? Result<void>() : made.error();
    const stop::NotNow handing_over;  // explained() is called by the thread that takes signals
    own_.emplace(std::move(*made));
    return {};
  }
  [[nodiscard]] flight::Recorder* get() const { return own_ ? own_->recorder() : given_.get(); }
  /// With what the rank's own recorder says of it, where nobody else reads that.
  [[nodiscard]] std::optional<Error> explained(std::optional<Error> error) const {
    if (!error || !own_) return error;
    const std::string words = own_->words(error->code == Errc::retryable);
    if (!words.empty()) error->what += "\n  " + words;
    return error;
  }
  void remove() const {
    if (own_) own_->remove();
  }

 private:
  std::unique_ptr<flight::Recorder> given_;
  std::optional<OwnRecorder> own_;
};

int rank_main(const cli::Command& command, TrainOptions& o, const Role& role, cli::Format format) {
  set_run_place({RunPart::start});
  std::unique_ptr<ParentLine> line;
  stop::Registration unheard;
  if (role.launcher == Launcher::own) {
    unheard = stop::with_say([](const Error&) {});  // the parent speaks for ranks that cannot tell it yet
    Result<std::unique_ptr<ParentLine>> connected = ParentLine::connect(role);
    if (!connected) return cli::print_error(std::cerr, connected.error());
    line = std::move(*connected);
  }
  const int given = line == nullptr ? -1 : line->recorder();
  StopRequest request;
  if (line != nullptr)
    listen(request, o, StopRequest::Says::nothing, {getppid(), line->parent()});
  else
    listen(request, o, role.launcher == Launcher::none ? StopRequest::Says::request : StopRequest::Says::nothing);
  LastWord last_word(std::move(line));
  stop::Registration watch;
  const bool by_others = role.launcher != Launcher::none && role.launcher != Launcher::own;
  if (by_others) watch = watch_blocking_calls(role.rank, deadline_of(o.timeout_seconds));
  std::optional<Prepared> prepared;
  if (meets_over_tcp(role)) {  // what is wrong with this rank alone is said without waiting for the others
    Result<Prepared> alone = prepare_for(command, role, role.world, o);
    if (!alone) {
      const int code = last_word.say(alone.error());
      tell_others(command, role, o, alone.error());
      return code;
    }
    prepared = std::move(*alone);
  }
  if (role.launcher != Launcher::none) set_run_place({RunPart::joining});
  Result<std::unique_ptr<Communicator>> communicator = join_ranks(role, o);
  if (!communicator) return last_word.say(communicator.error());
  RankRecording recording;
  stop::Registration cause = stop::with_cause([&] { return recording.explained((*communicator)->lost_peer()); });
  set_run_place({RunPart::preparation});
  if (const Result<void> ready = prepare_together(command, role, o, **communicator, prepared); !ready) {
    (*communicator)->abort(ready.error().what);
    return last_word.say(ready.error());
  }
  const bool first = (*communicator)->rank().value == 0;
  const bool json = format == cli::Format::json;
  if (const Result<void> fits = check_fits(*prepared, o); !fits) {
    if (first && json && role.launcher != Launcher::own) print_prediction(command, *prepared, o);
    return last_word.say(fits.error());
  }
  if (const Result<void> recorded = recording.start(*prepared, o, **communicator, given); !recorded) {
    (*communicator)->abort(recorded.error().what);
    return last_word.say(recorded.error());
  }
  std::ostream& lines = lines_of(format);
  if (first && by_others) print_ranks(lines, role, **communicator);
  if (first) print_start(command, o, *prepared, format);
  const Result<TrainReport> report = cli::guarded([&] {
    if (prepared->planned.strategy.device == plan::Device::cuda)
      return train_on_own_gpu(*prepared, o, **communicator, role.local_rank, recording.get(), lines);
    return train_on_rank(
        *prepared, o, **communicator, lines,
        [&](const plan::Plan& plan, DataSource& data, cpu::ThreadPool& pool, const train::SessionOptions& session) {
          train::SessionOptions recorded = session;
          recorded.recorder = recording.get();
          return train::run_session(plan, **communicator, data, pool, recorded);
        });
  });
  if (!report) {
    (*communicator)->abort(report.error().what);
    if (first && json && role.launcher != Launcher::own && report.error().code == Errc::does_not_fit)
      print_prediction(command, *prepared, o);
    return last_word.say(*recording.explained(report.error()));
  }
  recording.remove();
  if (first && !report->stopped) print_report(command, *report, format);
  set_run_place({RunPart::end});
  cause = {};
  communicator->reset();
  return report->stopped ? last_word.stopped(*report->stopped, o, first, request) : last_word.done();
}

}  // namespace

int train_command(std::span<const std::string> arguments) {
  TrainOptions options;
  cli::Command command("shardscope", "train", "trains for real, sharded over ranks, and measures", kDetails);
  add_train_options(command, options);
  const Result<cli::Outcome> outcome = command.parse(arguments);
  const cli::Style style = cli::style_of(2);
  if (!outcome) return cli::print_error(std::cerr, outcome.error(), style);
  if (*outcome == cli::Outcome::help) {
    std::cout << command.help(cli::style_of(1).width);
    return 0;
  }
  if (options.profile && options.trace.empty()) options.trace = kProfileTrace;
  const Result<cli::Format> format = document_format(command, options.output);
  if (!format) return cli::print_error(std::cerr, format.error(), style);
  if (const auto code = printed_config(command, options.foreign, *format)) return *code;
  if (Result<void> ok = check_predictable(options.foreign); !ok) return cli::print_error(std::cerr, ok.error(), style);
  const Result<Role> found = role_from_environment();
  if (!found) return cli::print_error(std::cerr, found.error(), style);
  const Role& role = *found;
  const bool on_gpu = options.strategy.chosen.device == plan::Device::cuda;
  if (options.strategy.emulated && role.launcher != Launcher::none)
    return cli::print_error(std::cerr, ranks_of_a_launcher_on_emulated(), style);
  if (role.launcher == Launcher::none && (on_gpu || options.strategy.chosen.world_size > 1)) {
    if (const Result<void> few = check_ranks(command, options.strategy.chosen.world_size, "processes"); !few)
      return cli::print_error(std::cerr, few.error(), style);
    if (on_gpu)
      if (const Result<void> chosen = choose_own_transport(command, options); !chosen)
        return cli::print_error(std::cerr, chosen.error(), style);
    // Whatever can be refused is refused here, once, before any rank starts.
    const Result<Prepared> prepared = prepare(command, options);
    if (!prepared) return cli::print_error(std::cerr, prepared.error(), style);
    if (const Result<void> fits = check_fits(*prepared, options); !fits) {
      if (*format == cli::Format::json) print_prediction(command, *prepared, options);
      return cli::print_error(std::cerr, fits.error(), style);
    }
    if (const Result<void> room = check_address_space(Bytes{0}, address_space_per_rank(*prepared), "a rank"); !room)
      return cli::print_error(std::cerr, room.error(), style);
    if (on_gpu) return device_main(command, options, *prepared, *format);
    const int code = run_ranks(arguments, options);
    // Room that is known only where the arena is made.
    if (code == exit_code(Errc::does_not_fit) && *format == cli::Format::json)
      print_prediction(command, *prepared, options);
    return code;
  }
  return rank_main(command, options, role, *format);
}

}  // namespace shard::commands
