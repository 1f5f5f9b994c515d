// `shardscope dryrun`: what memory a PyTorch program would take, on a machine without a GPU.
#include <algorithm>
#include <charconv>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "profiler/commands/commands.h"
#include "profiler/commands/dryrun_report.h"
#include "profiler/commands/launch_line.h"
#include "profiler/commands/program_files.h"
#include "profiler/commands/program_words.h"
#include "profiler/commands/quick_rule.h"
#include "profiler/commands/recipe.h"
#include "profiler/commands/routing.h"
#include "profiler/commands/routing_draws.h"
#include "profiler/commands/time_report.h"
#include "profiler/commands/wanted_ranks.h"
#include "profiler/dryrun/dry_run.h"
#include "profiler/process/run_folder.h"
#include "profiler/steptime/read_recording.h"
#include "profiler/steptime/timeline.h"
#include "sim/cli/command_line.h"
#include "sim/cli/output.h"
#include "sim/cli/progress.h"
#include "sim/cluster/read_cluster.h"
#include "sim/cluster/verdict.h"
#include "sim/commands/printing.h"
#include "sim/like/program/program_file.h"
#include "sim/like/program/program_of_snapshot.h"
#include "traces/base/numbers.h"
#include "traces/base/output_file.h"
#include "traces/base/scratch.h"
#include "traces/holders.h"
#include "traces/import/write_trace.h"

namespace shard::dryrun {
namespace {

using commands::failed;

constexpr const char* kDetails =
    R"(Runs your own PyTorch program, unmodified, on a machine without a GPU, and says to the byte what GPU memory it takes
and who holds it. PyTorch itself runs: its operators, autograd, optimizers, FSDP, and its caching allocator. Only CUDA's
libraries below it are replaced by a stand-in, whose device memory is address space, whose kernels do nothing and whose
collectives return at once.

Needed: the PyTorch for CUDA (pip install torch on Linux), which installs without a GPU.
Not seen: values that kernels would compute, which are zeros (a loop that ends when the loss is small does not end:
--timeout; shapes that depend on data are those of zeros); workspaces of cuDNN, cuSOLVER, cuSPARSE and
cuFFT; memory outside of PyTorch's allocator (CUDA's context, NCCL's buffers); when a GPU is done with what another
stream uses (--behind).

The program is the real one: files that it writes, checkpoints too, it writes, with numbers that mean nothing.

A first Ctrl-C (or SIGTERM) is the program's: what it took up to there is told, and then this command dies of the signal; a
second one ends both at once. Nothing that the program started outlives this command.

Cards, as --cluster calls them: a100-40gb-x8, a100-80gb-x8, a800-80gb-x8, b200-180gb-x8, gb200-186gb-x4, gb300-279gb-x4,
h100-80gb-x8, h100-80gb-pcie-x8, h200-141gb-x1, h200-141gb-x8, l4-24gb-x8, l40s-48gb-x8, rtx3090-24gb-x1, rtx4090-24gb-x1, t4-16gb-x4, v100-16gb-x8,
v100-32gb-x8; or the file of a description with compute_capability, multiprocessors, threads_per_multiprocessor and device_memory_bytes.

With --world-size the program is one rank of so many, as under torchrun, and does not wait for the others. Where a library
(PyTorch, DeepSpeed, ...) looks at what these would send, that is what this rank has itself; where your own code decides
by it, nobody here knows it, which is an error that names the line. --rank all runs all ranks side by side: what they
tell each other, and the host looks at, is then real, and the answer has the memory of each. --rank stages runs the first
rank of each stage of a pipeline (recipes megatron and torchtitan): each as if alone, or, where stages tell each other
shapes (torchtitan), beside all others. Your torchrun line
(-- torchrun --nproc-per-node 8 train.py) is read as --world-size 8, with --rank all unless you say which. Of other
launchers all processes run, and the answer is of the one that took most.

Without a program, --recipe runs what is installed on a model's config.json: transformers' Trainer with a DeepSpeed or
accelerate configuration, FSDP, DDP. No weights are read; tokens are random.

Examples:
  shardscope dryrun --cluster h100-80gb-x8 -- python3 train.py
  shardscope dryrun --world-size 8 --recipe hf-trainer --model llama-3.1-8b --ds-config z3_offload.json
  shardscope dryrun --cluster h100-80gb-x8 --world-size 8 --trace fsdp.sst -- python3 train.py --fsdp
  shardscope dryrun --cluster h100-80gb-x8 --world-size 4 --rank all -- python3 pipeline.py
  shardscope dryrun --cluster h100-80gb-x8 --save run.program -- python3 train.py
    shardscope simulate --program run.program --cluster a100-40gb-x8    (the same run on another card)
)";

/// "wait", or a number of kernels.
Result<void> read_behind(std::string_view text, std::int64_t& launches) {
  std::int64_t read = -1;
  const auto [stopped, fault] = std::from_chars(text.data(), text.data() + text.size(), read);
  const bool number = fault == std::errc() && stopped == text.data() + text.size() && read >= 0;
  if (!number && text != "wait")
    return Error{Errc::usage, "'" + std::string(text) + "' is not how far a GPU is behind", "--behind",
                 "a number of kernels (0, 8), or wait"};
  launches = number ? read : -1;
  return {};
}

struct Options {
  std::string cluster = "h100-80gb-x8";
  std::int64_t world_size = 1;
  WantedRanks ranks;
  std::optional<std::int64_t> ranks_per_host;  ///< none: as many as a host has devices
  std::optional<std::int64_t> devices;
  std::string routing = "balanced";
  std::optional<std::int64_t> routings;
  bool assume_zeros = false;
  bool first_run = false;
  std::int64_t behind = 0;
  bool addresses_upwards = false;
  std::optional<double> timeout_seconds;
  std::string trace, timeline, from_trace, save;
  bool time = false;
  Recipe recipe;
  HeldBy by = HeldBy::site;
  std::int64_t top = 10;
  cli::OutputOptions output;
};

Result<Card> card_of(const Options& options, const cluster::Cluster& cluster, const std::vector<std::string>& program) {
  if (!cluster.card || !cluster.device_memory)
    return Error{Errc::contradiction, "the cluster '" + cluster.name + "' does not say which card its GPUs are",
                 "--cluster",
                 "one with compute_capability, multiprocessors, threads_per_multiprocessor and device_memory_bytes"};
  const auto world_size = static_cast<std::int32_t>(options.world_size);
  if (const Result<void> fits = cluster::check_ranks(cluster, world_size); !fits) return fits.error();
  Result<std::vector<int>> ranks = running_ranks(options.ranks, options.world_size);
  if (!ranks) return ranks.error();
  Result<std::string> routing = read_routing(options.routing);
  if (!routing) return routing.error();
  // Of several that a program sees and nobody asked for, it would make use (DataParallel).
  const bool one = world_size == 1 && launcher_of(program).empty();
  return Card{.place = {.name = cluster.name,
                        .compute_capability = cluster.card->compute_capability,
                        .multiprocessors = cluster.card->multiprocessors,
                        .threads_per_multiprocessor = cluster.card->threads_per_multiprocessor,
                        .device_bytes = cluster.device_memory->count(),
                        .devices = options.devices ? static_cast<int>(*options.devices)
                                   : one           ? 1
                                                   : cluster.devices_per_host,
                        .behind = options.behind,
                        .addresses_upwards = options.addresses_upwards,
                        .world_size = world_size,
                        .ranks = std::move(*ranks),
                        .ranks_per_host = options.ranks_per_host ? static_cast<int>(*options.ranks_per_host)
                                                                 : cluster.devices_per_host,
                        .routing = std::move(*routing),
                        .times = options.time,
                        .first_run = options.first_run,
                        .assume_zeros = options.assume_zeros},
              .outside = cluster::outside_allocator(cluster, world_size)};
}

/// torchrun's words become the ranks that it would start, and what each of them runs: what they tell each other is real
/// then, and one of them can run alone. Of other launchers nobody knows what they would start.
Result<std::vector<std::string>> without_launcher(const cli::Command& command, const std::vector<std::string>& program,
                                                  const cluster::Cluster& cluster, Options& options) {
  const std::string launcher = launcher_of(program);
  if (launcher.empty()) return program;
  std::optional<LaunchLine> line = read_torchrun(program, cluster.devices_per_host);
  const std::string asked = command.given("rank") ? "rank" : command.given("world-size") ? "world-size" : "";
  if (!line && !asked.empty())
    return Error{Errc::contradiction,
                 launcher + " starts its ranks itself, and nobody tells it " + command.describe(asked), launcher,
                 "the program itself (-- python3 train.py), or leave it out: then all its processes run"};
  const std::int64_t world_size = line ? line->hosts * line->ranks_per_host : 1;
  if (line && command.given("world-size") && options.world_size != world_size)
    return Error{Errc::contradiction,
                 command.describe("world-size") + ", and " + launcher + " starts " + std::to_string(world_size),
                 launcher, "one of them"};
  if (world_size == 1) return program;
  options.world_size = world_size;
  options.ranks_per_host = line->ranks_per_host;
  if (!command.given("rank") && line->hosts == 1) options.ranks.all = true;
  if (!command.given("rank")) options.ranks.named = {line->first_rank};
  commands::print_notes({launcher + " is not run: as --world-size " + std::to_string(world_size) +
                         (options.ranks.all       ? " --rank all, side by side"
                          : options.ranks.alone() ? " --rank " + std::to_string(options.ranks.named.front())
                                                  : "")});
  return std::move(line->program);
}

/// `time`: the rank's, which stands beside its memory; nullptr: none.
Result<void> write_recording(const DryRun& run, const steptime::Forecast* time, const Options& options) {
  const std::string& path = options.trace;
  if (!run.recording) return Error{Errc::contradiction, "there is nothing to write: the program used no GPU", path, ""};
  if (!path.ends_with(".pickle") && time != nullptr) {
    Trace both = run.recording->trace;
    steptime::add_to(both, *time, {.card = options.cluster, .rank = run.rank, .world_size = options.world_size});
    return write_trace(both, path);
  }
  if (!path.ends_with(".pickle")) return write_trace(run.recording->trace, path);
  return copy_to_file(run.snapshot, path);
}

Result<void> save_program(const DryRun& run, const Place& place, const std::string& path) {
  if (!run.recording)
    return Error{Errc::contradiction, "there is nothing to write down: the program used no GPU", path, ""};
  like::SnapshotProgram made =
      like::program_of_snapshot(*run.recording->snapshot, run.recording->trace, Bytes{place.device_bytes});
  commands::print_notes(like::notes(made, path));
  like::ProgramOrigin& from = made.program.origin;
  from.framework = "PyTorch " + run.pytorch.version;
  from.steps = "a dry run";
  from.world_size = place.world_size;
  from.rank = run.rank;
  from.addresses_upwards = place.addresses_upwards;
  return write_file(path, like::to_text(made.program));
}

Error no_laws(const cluster::Cluster& cluster) {
  return {.code = Errc::contradiction,
          .what = "nothing is known of how long kernels take on '" + cluster.name + "', so --time has no answer",
          .where = "--cluster",
          .help = "a cluster whose description has kernel_laws: those of GPUs that Shardscope brings have"};
}

Result<std::optional<steptime::Recorded>> read_recorded(const std::string& path) {
  if (path.empty()) return std::optional<steptime::Recorded>();
  Result<steptime::Recorded> recorded = steptime::read_recording(path);
  if (!recorded) return recorded.error();
  return std::optional(std::move(*recorded));
}

Result<void> write_timeline(const std::map<int, RankTime>& times, const cluster::Cluster& cluster,
                            const Options& options) {
  const steptime::Forecast* const step = slowest(times);
  if (step == nullptr)
    return Error{Errc::contradiction, "there is no timeline to write: " + times.begin()->second.none, options.timeline,
                 ""};
  return steptime::write_kineto(
      *step, {.card = cluster.name, .rank = slowest_rank(times), .world_size = options.world_size}, options.timeline);
}

/// What was asked for beside the answer.
Result<void> write_files(const DryRuns& runs, const std::map<int, RankTime>& times, const Place& place,
                         const cluster::Cluster& cluster, const Options& options) {
  const DryRun& worst = runs.worst().run;
  if (!options.trace.empty()) {
    const auto time = times.find(worst.rank);
    const steptime::Forecast* const step =
        time != times.end() && time->second.forecast ? &*time->second.forecast : nullptr;
    if (Result<void> written = write_recording(worst, step, options); !written) return written;
  }
  if (!options.timeline.empty())
    if (Result<void> written = write_timeline(times, cluster, options); !written) return written;
  return options.save.empty() ? Result<void>() : save_program(worst, place, options.save);
}

/// What the program's own code looked at of ranks that do not run.
const Absent* first_refused(const DryRuns& runs) {
  for (const RankRun& rank : runs.ranks)
    for (const Absent& each : rank.run.absent)
      if (each.refused) return &each;
  return nullptr;
}

/// Of a program that ended well.
Result<void> check_others(const DryRuns& runs) {
  const Absent* const refused = first_refused(runs);
  if (refused == nullptr) return {};
  return Error{Errc::unavailable, "the program went on after an error: it looked at " + refused->what,
               refused->file + ":" + std::to_string(refused->line),
               "--rank all, which runs the other ranks, or --assume-zeros"};
}

/// The answer, which was printed, says it where it is JSON.
int failed_beside_answer(const Error& error) {
  (void)cli::take_error_in_json(error);
  return failed(error);
}

void declare(cli::Command& command, Options& options) {
  cli::Group group = command.group("Dry run");
  group.add("cluster", &options.cluster, "NAME|PATH", "the GPUs to stand in for")
      .common()
      .known_names(cluster::cluster_names)
      .reads_file(cluster::cluster_file);
  group.add("world-size", &options.world_size, "N", "run as one rank of so many").alias("ranks").least(1).common();
  group
      .add_custom("rank", "R|R,R|stages|all",
                  "as this one, which runs alone (0); or all ranks run side by side, and the answer is of these or of "
                  "all; or one of each stage of a recipe's pipeline",
                  [&options](std::string_view text, std::string_view, const cli::Range&) {
                    return read_ranks(text, options.ranks);
                  })
      .common();
  group
      .add("devices", &options.devices, "N",
           "cards that the program sees: 1, or those of a host where it is one of several ranks or starts them")
      .least(1);
  group.add_flag("assume-zeros", &options.assume_zeros,
                 "what ranks that do not run would send is zeros where the program's own code looks at it");
  group.add(
      "routing", &options.routing, "balanced|zipf:S|one-expert|FILE",
      "which experts tokens go to, which no kernel computes: all alike, the more the earlier, all to one, or by a "
      "JSON list of shares");
  group
      .add("routings", &options.routings, "N",
           "so many runs, each of which draws the experts at random, by --routing on average: least, median and "
           "largest peak")
      .least(1);
  group.add_flag("first-run", &options.first_run,
                 "as where the program never ran before: torch.compile times variants of its kernels, for which it takes "
                 "memory; later runs find the best in its cache");
  group.add_choice(
      "addresses", &options.addresses_upwards,
      {{"down", false, "below earlier ones, as most Linux drivers"},
       {"up", true, "above earlier ones, as seen of others: what is split off, and so the peak, differs a little"}},
      "where the driver places new memory");
  group.add_custom("behind", "KERNELS|wait",
                   "how far the GPU is behind the host (0), which decides when memory that another stream uses is free "
                   "again: so many kernels; wait: until the host waits for it, which is the most that it takes",
                   [&options](std::string_view text, std::string_view, const cli::Range&) {
                     return read_behind(text, options.behind);
                   });
  group.add_flag("time", &options.time, "how long a step takes, too: what it gives the GPU, priced by laws of kernels")
      .common();
  group
      .add("from-trace", &options.from_trace, "FILE",
           "a recording of a real run: of PyTorch's profiler, an nsys export (SQLite) or a trace of 'shardscope "
           "profile' (.sst); what kernels took there stands in for laws (asks for --time)")
      .reads_file();
  group
      .add("timeline", &options.timeline, "FILE.json",
           "write the predicted step as PyTorch's profiler would, for Perfetto and others (asks for --time)")
      .writes_file();
  group.add("timeout", &options.timeout_seconds, "SECONDS", "end the program after so long").least(0).common();
  group
      .add("trace", &options.trace, "FILE",
           "write what the allocator did: .sst (with --time the step's kernels beside it), or .pickle as PyTorch would")
      .common()
      .writes_file();
  group
      .add("save", &options.save, "FILE",
           "write down what the program takes, for 'shardscope simulate --program FILE' on other cards")
      .common()
      .writes_file();
  group.add_choice(
      "by", &options.by,
      {{"site", HeldBy::site, "the innermost line of your own code"}, {"stack", HeldBy::stack, "the whole stack"}},
      "what blocks are put together by");
  group.add("top", &options.top, "N", "so many of the largest holders").least(0);
}

/// A run of all its ranks; its folder has the recording as PyTorch wrote it.
struct Ran {
  Scratch folder;
  Ended ended;
  DryRuns runs;
};

Result<Ran> run_once(const Options& options, const std::vector<std::string>& program, const Place& place, bool json) {
  Result<Scratch> folder = profiler::run_folder();
  if (!folder) return folder.error();
  Result<std::vector<std::string>> words =
      options.recipe.name.empty() ? program : recipe_program(options.recipe, folder->path());
  if (!words) return words.error();
  DryRuns runs;
  Result<Ended> ended =
      dry_run(*words, place, options.recipe.python, folder->path(),
              {.out_to_errors = json, .timeout_seconds = options.timeout_seconds}, [&](DryRun run) -> Result<void> {
                if (!options.ranks.has(run.rank)) return {};
                Result<RankRun> rank = answered(std::move(run), options.by);
                if (!rank) return rank.error();
                runs.add(std::move(*rank));
                return {};
              });
  if (!ended) return ended.error();
  return Ran{std::move(*folder), *ended, std::move(runs)};
}

/// The one that took most, or the first that did not end well. Without --routings, or where no tokens choose, there is
/// one run.
Result<Ran> run_draws(const Options& options, const std::vector<std::string>& program, const Place& card, bool json,
                      RoutingDraws& draws) {
  if (!options.routings) return run_once(options, program, card, json);
  cli::Progress progress(std::cerr, "draws", cli::style_of(2));
  std::optional<Ran> most;
  for (Place place = card; place.routing_draw < *options.routings;) {
    ++place.routing_draw;
    Result<Ran> ran = run_once(options, program, place, json);
    if (!ran) return ran.error();
    const DryRun& worst = ran->runs.worst().run;
    if (ran->ended.timed_out || ran->ended.exit_code != 0 || worst.routing.empty()) return ran;
    draws.add(ran->runs);
    if (draws.is_largest_last()) most = std::move(*ran);
    progress.update(static_cast<double>(place.routing_draw) / static_cast<double>(*options.routings));
  }
  return std::move(*most);
}

}  // namespace

int dryrun_command(std::span<const std::string> arguments) {
  Options options;
  cli::Command command("shardscope", "dryrun", "runs a PyTorch program on a stand-in GPU", kDetails);
  command.followed_by("-- PROGRAM [ARGUMENT...]");
  declare(command, options);
  declare_recipe(command.group("A framework's run, without a program of your own"), options.recipe);
  cli::add_output_options(command, options.output);
  const auto [own, words] = profiler::program_words(arguments);
  profiler::reads_program(command, words);
  if (const auto code = commands::parsed(command, own)) return *code;
  if (const Result<void> right = check_recipe(options.recipe, words); !right) return failed(right.error());
  if (words.empty() && options.recipe.name.empty()) return failed(profiler::no_program("dryrun"));
  const Result<cli::Format> format = commands::document_format(command, options.output);
  if (!format) return failed(format.error());
  if (!options.timeline.empty() || !options.from_trace.empty()) options.time = true;
  const Result<cluster::Cluster> cluster = cluster::read_cluster(options.cluster);
  if (!cluster) return failed(cluster.error());
  const Result<std::vector<std::string>> program = without_launcher(command, words, *cluster, options);
  if (!program) return failed(program.error());
  if (const Result<void> found = find_stages(options.recipe, options.world_size, options.ranks); !found)
    return failed(found.error());
  const Result<Card> card = card_of(options, *cluster, *program);
  if (!card) return failed(card.error());
  if (options.time && !cluster->kernel_laws) return failed(no_laws(*cluster));
  const Result<std::optional<steptime::Recorded>> recorded = read_recorded(options.from_trace);
  if (!recorded) return failed(recorded.error());
  RoutingDraws draws;
  const Result<Ran> ran = run_draws(options, *program, card->place, *format == cli::Format::json, draws);
  if (!ran) return failed(ran.error());
  const DryRuns& runs = ran->runs;
  const auto top = static_cast<std::size_t>(options.top);
  const std::optional<QuickRule> rule = quick_rule(options.recipe, options.cluster, options.world_size, runs.worst());
  std::map<int, RankTime> times;
  if (options.time) times = times_of(runs, card->place, *cluster, *recorded ? &**recorded : nullptr);
  if (const std::optional<Error> fault = recording_fault(times, options.from_trace)) return failed(*fault);
  Result<void> good = write_files(runs, times, card->place, *cluster, options);
  if (good && !ran->ended.timed_out && ran->ended.exit_code == 0) good = check_others(runs);
  if (*format == cli::Format::json) {
    nlohmann::ordered_json answer = to_json(runs, *card, top);
    if (!good) answer["error"] = cli::error_json(good.error())["error"];
    if (options.time) add_times(answer, times);
    if (!draws.empty()) answer["routings"] = draws.json();
    if (!options.recipe.name.empty()) {
      answer["recipe"] = to_json(options.recipe);
      answer["quick_rule"] = to_json(rule);
    }
    std::cout << cli::json_text(answer);
  } else {
    std::string text = to_text(runs, *card, top) + to_text(times) + to_text(rule);
    if (!draws.empty()) text += "\n" + draws.text(card->place.routing);
    cli::print(std::cout, text);
  }
  if (!good) return failed_beside_answer(good.error());
  return ran->ended.timed_out ? exit_code(Errc::retryable) : ran->ended.exit_code;
}

}  // namespace shard::dryrun
