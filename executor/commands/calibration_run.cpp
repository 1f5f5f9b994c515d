// fork and exec of `train`, then its trace and its answer.
#include "executor/commands/calibration_run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "executor/commands/device_train.h"
#include "executor/commands/train_run.h"
#include "executor/launch/job.h"
#include "sim/cost/measured_times.h"
#include "sim/ir/effects.h"
#include "traces/base/read_file.h"
#include "traces/base/stop.h"
#include "traces/reader.h"

namespace shard::commands {
namespace {

/// Whatever disturbs an op only adds to its time.
constexpr double kUndisturbed = 0.25;
constexpr Bytes kLongestAnswer{64 << 20};

std::vector<std::string> words_of(const CalibrationCase& c, const std::string& folder) {
  std::vector<std::string> words{"--model", folder + "/" + c.model + ".json", "--data", "random"};
  words.insert(words.end(), c.arguments.begin(), c.arguments.end());
  return words;
}

/// The exit code, or 128 and the signal; nothing where it was ended since its time was over. It has been collected.
Result<std::optional<int>> collect(pid_t child, double seconds, const std::string& program) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kLook{20};  // rare enough to disturb nothing
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  bool ended = false;
  int status = 0;
  while (true) {
    const pid_t found = waitpid(child, &status, ended ? 0 : WNOHANG);
    if (found == child) break;
    if (found < 0 && errno != EINTR)
      return Error{Errc::internal, std::string("waiting: ") + std::strerror(errno), program, ""};
    if (found != 0) continue;
    ended = Clock::now() > end;
    if (ended)
      kill(child, SIGTERM);  // its ranks end with it, and it removes its files
    else
      std::this_thread::sleep_for(kLook);
  }
  if (ended) return std::optional<int>();
  return std::optional<int>(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

/// As collect(). `out` and `errors`: files that receive what it prints.
Result<std::optional<int>> run_program(const std::vector<std::string>& words, const std::string& out,
                                       const std::string& errors, double seconds) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  const sigset_t mask = stop::mask_for_children();
  pid_t child = -1;
  stop::Registration watch;
  {
    const stop::NotNow whole;
    child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      sigprocmask(SIG_SETMASK, &mask, nullptr);
      const int o = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      const int e = open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      if (o >= 0) dup2(o, STDOUT_FILENO);
      if (e >= 0) dup2(e, STDERR_FILENO);
      execv(pointers[0], pointers.data());
      _exit(127);
    }
    if (child > 0) watch = stop::at_stop([child] { kill(child, SIGTERM); });
  }
  if (child < 0)
    return Error{Errc::unavailable, std::string("no process can be started: ") + std::strerror(errno), words[0], ""};
  return collect(child, seconds, words[0]);
}

Error failed_training(const CalibrationCase& c, int code, const std::string& errors) {
  const Result<std::string> said = read_file(errors, "the errors of a training", kLongestAnswer);
  std::string command;
  for (const std::string& word : c.arguments) command += " " + word;
  return {.code = code == exit_code(Errc::does_not_fit) ? Errc::does_not_fit : Errc::unavailable,
          .what = "a training of the calibration ended with exit code " + std::to_string(code) + ": " +
                  (said ? *said : std::string()),
          .where = "train, model " + c.model + "," + command,
          .help = {}};
}

/// Attention that draws random numbers has another law than attention that does not, and is left out.
bool drops_in_attention(const plan::Op& op) {
  const auto* c = std::get_if<plan::Compute>(&op.action);
  return c != nullptr && c->kind == model::OperatorKind::attention && c->attributes->probability > 0;
}

/// Adds the spans of the steady steps.
void add_spans(CaseRecord& record, const Trace& trace) {
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    const Span span = trace.spans[i];
    if (span.phase != Phase::steady_step || !span.op.valid()) continue;
    const auto rank = static_cast<std::size_t>(trace.track_of(span.track).rank.value);
    record.op_seconds[{record.plans.class_of_rank[rank], span.op.value}].push_back(static_cast<double>(span.busy_ns()) *
                                                                                   1e-9);
  }
}

/// Where a training writes.
struct Files {
  std::string trace;
  std::string answer;
  std::string errors;
};

/// Seconds of the steady steps; none where the training was ended.
Result<std::vector<double>> train(const CaseRecord& record, const std::string& folder, int steps, double seconds,
                                  const Files& files, bool traced) {
  std::vector<std::string> words{own_program(), "train"};
  for (std::string& word : words_of(record.of, folder)) words.push_back(std::move(word));
  words.insert(words.end(), {"--steps", std::to_string(steps), "--json"});
  if (traced) words.insert(words.end(), {"--trace", files.trace});
  const Result<std::optional<int>> code = run_program(words, files.answer, files.errors, seconds);
  if (!code) return code.error();
  std::vector<double> steady;
  if (!*code) return steady;
  if (**code != 0) return failed_training(record.of, **code, files.errors);
  const Result<std::string> text = read_file(files.answer, "the answer of a training", kLongestAnswer);
  if (!text) return text.error();
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, false);
  if (json.is_discarded() || !json.contains("steps") || json["steps"].size() < 2)
    return Error{Errc::internal, "a training of the calibration has no answer", record.of.model, ""};
  // The first of a graph's steps captures it, behind a first step that is none.
  const std::size_t first = record.of.graphs ? 2 : 1;
  for (std::size_t i = first; i < json["steps"].size(); ++i)
    steady.push_back(json["steps"][i]["step_seconds"].get<double>());
  return steady;
}

}  // namespace

Result<CaseRecord> plan_case(const CalibrationCase& of, const std::string& folder) {
  TrainOptions options;
  cli::Command command("shardscope", "train", "", "");
  add_train_options(command, options);
  if (const auto parsed = command.parse(words_of(of, folder)); !parsed) return parsed.error();
  if (options.strategy.chosen.device == plan::Device::cuda)
    if (Result<void> chosen = choose_own_transport(command, options); !chosen) return chosen.error();
  Result<Prepared> prepared = prepare(command, options);
  if (!prepared) return prepared.error();
  return CaseRecord{.of = of, .plans = std::move(prepared->plans), .op_seconds = {}, .step_seconds = {}};
}

Result<bool> run_case(CaseRecord& record, const std::string& folder, int steps, double seconds) {
  const Files files{
      .trace = folder + "/measured.sst", .answer = folder + "/answer.json", .errors = folder + "/errors.txt"};
  const auto begin = std::chrono::steady_clock::now();
  const Result<std::vector<double>> traced = train(record, folder, steps, seconds, files, true);
  if (!traced) return traced.error();
  if (traced->empty()) return false;
  const Result<Trace> loaded = load(files.trace);
  if (!loaded) return loaded.error();
  if (loaded->header.plan_hash != record.plans.hash)
    return Error{Errc::internal, "a training of the calibration followed another plan", record.of.model, ""};
  Result<std::vector<double>> timed = *traced;
  if (record.of.graphs) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    timed = train(record, folder, steps, seconds - took.count(), files, false);
    if (!timed) return timed.error();
    if (timed->empty()) return false;
  }
  record.step_seconds.insert(record.step_seconds.end(), timed->begin(), timed->end());
  add_spans(record, *loaded);
  return true;
}

std::vector<cost::OpSample> samples_of(const CaseRecord& record) {
  std::vector<cost::OpSample> samples;
  for (std::size_t c = 0; c < record.plans.classes.size(); ++c) {
    const plan::Plan& plan = record.plans.classes[c];
    const plan::PhaseOps* steady = plan.find(Phase::steady_step);
    if (steady == nullptr) continue;
    for (const plan::Op& op : steady->ops) {
      const auto found = record.op_seconds.find({static_cast<std::int32_t>(c), op.id.value});
      if (found == record.op_seconds.end() || drops_in_attention(op) || !cost::obeys_law(plan, op)) continue;
      samples.push_back({.kind = plan::class_of(op),
                         .dtype = plan.target.storage,
                         .work = plan::work_of(plan, op),
                         .seconds = cost::quantile(found->second, kUndisturbed)});
    }
  }
  return samples;
}

cost::StepSample step_of(const CaseRecord& record) {
  cost::StepSample step{.seconds = cost::median(record.step_seconds)};
  const plan::PhaseOps* steady = record.plans.of_rank(0).find(Phase::steady_step);
  for (const plan::Op& op : steady->ops) {
    const auto found = record.op_seconds.find({record.plans.class_of_rank.front(), op.id.value});
    if (found == record.op_seconds.end()) continue;
    step.ops += 1;
    step.collectives += std::holds_alternative<plan::Communicate>(op.action) ? 1 : 0;
    step.busy_seconds += cost::quantile(found->second, kUndisturbed);
  }
  return step;
}

}  // namespace shard::commands
