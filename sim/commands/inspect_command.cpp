// `shardscope inspect`: what is in a trace, a model, or an allocator recording.
#include <nlohmann/json.hpp>

#include "sim/cli/dispatch.h"
#include "sim/cli/sizes.h"
#include "sim/cluster/read_cluster.h"
#include "sim/commands/allocator_options.h"
#include "sim/commands/commands.h"
#include "sim/commands/estimate_states.h"
#include "sim/commands/holders_options.h"
#include "sim/commands/inspect_laws.h"
#include "sim/commands/inspect_model.h"
#include "sim/commands/inspect_oom.h"
#include "sim/commands/known_names.h"
#include "sim/commands/printing.h"
#include "sim/commands/replay_recording.h"
#include "traces/base/numbers.h"
#include "traces/base/recorder_file.h"
#include "traces/import/combine.h"
#include "traces/import/import.h"

namespace shard::commands {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInspectDetails =
    R"(Says what is in a trace: spans, memory, steps, peaks, collectives, and what of it is damaged. Besides .sst it
reads Chrome's and PyTorch's profiler JSON (.json, .json.gz), Perfetto's track events, PyTorch's memory snapshots
(.pickle, of which nothing is executed) and Nsight Systems' SQLite exports; the content tells which.
A PyTorch memory snapshot says who held memory: --at picks the moment, --by whether blocks are put together by the
line of your own code that asked for them or by the whole stack. "takes" is what the allocator gave, rounded and with
the tail that it did not split off; "asked for" what the program wanted. Below is what the allocator reserved beyond that, in
gaps and free segments.
A profiler's trace says where the time went: what devices did and when they were idle, collectives by kind with their
bytes, how much of them was hidden behind kernels and how much was exposed, steps, copies, kernels, and operations of the
host by the time that is their own. --top says how many names, --rank of whom. Several files of one run are put on one
axis: a memory snapshot and a profiler's trace of it, or the traces of several ranks; files that are more than a minute apart
by their clocks are refused unless --force.
With --laws CLUSTER it prices each kernel of a PyTorch profiler's trace (record_shapes=True) by the laws of that card, and
says how far the sums are off, and which kernels have no law.
With --replay-allocator runs a recording of PyTorch's allocator (a memory snapshot, or CSV) through the model of that
allocator and counts where the two agree; --allocator-conf says what the same program would have reserved under other
settings of PYTORCH_CUDA_ALLOC_CONF.
Of a Hugging Face config.json, a directory that holds one, or a known model's name, it says how many parameters the
class has that transformers builds from it, in how many tensors, the SHA-256 of their list (lines "name AxB"), and what of
it cannot be simulated or trained. --estimate deepspeed says what DeepSpeed's estimators (stages 2 and 3, with and without
offload) make of it, to the byte, beside what a plan of Shardscope's takes.
With --oom FILE, or - and the message on stdin, it says what an out-of-memory message of PyTorch (1.0 to today's, in a log
or by itself) means: whether the GPU is full, fragmented or used by others, and what helps. A memory snapshot beside it
says who held the memory at its peak.
Of what `shardscope train --recorder PATH` kept it says where each rank was and who waited for whom; --events says how many of
the last events are listed.
`shardscope inspect --device cuda`, without a file, says which GPUs are here, their free memory, who else uses them, and
the versions of driver and libraries (69 without a driver or a GPU).

Examples:
  shardscope inspect measured.sst
  shardscope inspect config.json --json
  shardscope inspect --models
  shardscope inspect --oom train.log
  shardscope inspect snapshot.pickle --oom train.log
  shardscope inspect gpt2-xl --estimate deepspeed --gpus-per-node 8
  shardscope inspect profile.json.gz --json
  shardscope inspect profile.json.gz snapshot.pickle
  shardscope inspect profile.json.gz --laws h100-80gb-x8
  shardscope inspect snapshot.pickle --at peak --top 20
  shardscope inspect snapshot.pickle --at 12.5ms --by stack --json
  shardscope inspect snapshot.pickle --replay-allocator pytorch --json
  shardscope inspect snapshot.pickle --replay-allocator pytorch --allocator-conf expandable_segments:True
)";

/// --estimate is asked of one model, and alone has use for a number of GPUs.
Result<void> check_estimate(const cli::Command& command, const std::vector<std::string>& paths) {
  const bool asked = command.given("estimate");
  for (const char* const option : {"gpus-per-node", "nodes"})
    if (!asked && command.given(option))
      return Error{Errc::usage, std::string("--") + option + " is of --estimate", command.describe(option),
                   "--estimate deepspeed"};
  if (asked && (paths.size() > 1 || !is_model(paths.front())))
    return Error{Errc::usage, "--estimate is of one model", "'" + paths.back() + "'",
                 "a config.json, a folder that holds one, or the name of a known model"};
  return {};
}

/// --replay-allocator is of one recording, and alone has use for settings.
Result<void> check_replay(const cli::Command& command, const std::string& allocator,
                          const std::vector<std::string>& paths) {
  if (!allocator.empty() && paths.size() > 1)
    return Error{Errc::usage, "--replay-allocator takes one recording", "'" + paths[1] + "'", ""};
  if (command.given("allocator-conf") && allocator.empty())
    return Error{Errc::usage, "--allocator-conf is of --replay-allocator", command.describe("allocator-conf"),
                 "--replay-allocator pytorch"};
  return {};
}

void add_estimate_options(cli::Group& group, EstimateFlags& estimate) {
  group.add("estimate", &estimate.of, "deepspeed", "what the estimators of this framework make of a model");
  group.add("gpus-per-node", &estimate.gpus_per_node, "N", "with --estimate: GPUs of one host").least(1).most(65536);
  group.add("nodes", &estimate.nodes, "N", "with --estimate: hosts").least(1).most(65536);
}

void add_laws_option(cli::Group& group, std::string& cluster) {
  group
      .add("laws", &cluster, "CLUSTER",
           "set the kernels of a profiler's recording beside what laws of this cluster's GPUs say that they take")
      .known_names(cluster::cluster_names);
}

/// --models or --clusters, and nothing else.
int list_names(const cli::Command& command, const cli::OutputOptions& output, bool both, bool models,
               const std::vector<std::string>& paths) {
  if (both || !paths.empty())
    return failed(
        {Errc::usage,
         both ? "--models and --clusters are two lists"
              : command.describe(models ? "models" : "clusters") + " reads no file, and '" + paths.front() + "' is one",
         "", "one of them"});
  const Result<cli::Format> format = cli::chosen_format(command, output);
  if (!format) return failed(format.error());
  return models ? list_models(*format) : list_clusters(*format);
}

/// What ranks left is read where ranks are run.
std::optional<int> handed_over(std::span<const std::string> arguments) {
  const auto path = std::ranges::find_if(
      arguments, [](const std::string& word) { return !word.starts_with('-') && is_recorder(word); });
  if (path == arguments.end()) return std::nullopt;
  std::vector<std::string> words{"--recorder", *path};
  for (const std::string& word : arguments)
    if (&word != &*path) words.push_back(word);
  return failed(cli::hand_over("shardscope-train", "inspect", words));
}

/// A time after the trace's end is answered by what was held at its end.
void end_at_latest(const cli::Command& command, const TraceSummary& summary, HoldersOptions& holders) {
  const std::int64_t lasts_ns = summary.end_ns - summary.begin_ns;
  if (!holders.at_ns || *holders.at_ns <= lasts_ns) return;
  print_notes({command.describe("at") + " is after the end: the trace lasts " +
               duration(Seconds{static_cast<double>(lasts_ns) / 1e9}) + ", and this was held at its end"});
  holders.at_ns = lasts_ns;
}

}  // namespace

int inspect_command(std::span<const std::string> arguments) {
  std::vector<std::string> paths;
  std::string allocator;
  bool incomplete = false, force = false;
  HoldersOptions holders;
  cli::OutputOptions output;
  cli::Command command("shardscope", "inspect", "says what is in one trace, recording or model", kInspectDetails);
  command
      .add_positional(
          "FILE", &paths,
          "a trace, a model's config.json, or with --replay-allocator a recording; several of one run are put together")
      .required()
      .reads_file();
  cli::Group group = command.group("Inspect");
  group.add("replay-allocator", &allocator, "pytorch", "run a recording through this allocator's model");
  AllocatorFlags settings;
  add_allocator_options(group, settings, false);
  group.add_flag("incomplete", &incomplete, kIncompleteHelp);
  group.add_flag("force", &force, kForceRunsHelp);
  EstimateFlags estimate;
  add_estimate_options(group, estimate);
  bool models = false, clusters = false;
  group.add_flag("models", &models, "list the models that are known by name, with their source; no file is read");
  group.add_flag("clusters", &clusters, "list the machines that are known by name, with their source; no file is read");
  std::string device;
  group.add("device", &device, "cuda", "say what GPUs are here, instead of reading a file");
  std::string oom;
  group.add("oom", &oom, "FILE|-", "what this out-of-memory message of PyTorch says, or a log that has one; -: stdin")
      .reads_file([](std::string_view file) -> std::optional<fs::path> {
        return file == "-" ? std::nullopt : std::optional<fs::path>(file);
      });
  std::string laws;
  add_laws_option(group, laws);
  holders.add_to(command);
  cli::add_output_options(command, output);
  command.before_config([&]() -> Result<bool> {
    if (models || clusters || !oom.empty()) command.require_nothing();
    return false;
  });
  if (const auto code = handed_over(arguments)) return *code;
  if (const auto code = parsed(command, arguments)) return *code;
  if (models || clusters) return list_names(command, output, models && clusters, models, paths);
  const Result<cli::Format> format = document_format(command, output);
  if (!format) return failed(format.error());
  if (command.given("device"))  // else shardscope-train would have been asked (sim/cli/dispatch.h)
    return failed({Errc::usage, "--device is given on the command line, not in a file", "", ""});
  if (!oom.empty()) return inspect_oom(oom, paths, holders, incomplete, *format);
  const std::string& path = paths.front();
  if (!laws.empty()) return inspect_laws(paths, laws, static_cast<std::size_t>(holders.top), *format);
  if (const Result<void> ok = check_replay(command, allocator, paths); !ok) return failed(ok.error());
  if (!allocator.empty()) return replay_recording(path, allocator, settings, incomplete, *format);
  if (const Result<void> ok = check_estimate(command, paths); !ok) return failed(ok.error());
  if (command.given("estimate")) return estimate_states(path, estimate, *format);
  if (paths.size() == 1 && is_model(path)) return inspect_model(path, *format);
  const Result<LoadedTrace> trace = load_all(paths, incomplete, force);
  if (!trace) return failed(trace.error());
  std::optional<Rank> rank;
  if (holders.rank) rank = Rank{static_cast<std::int32_t>(*holders.rank)};
  TraceSummary summary = summarize(*trace, rank);
  end_at_latest(command, summary, holders);
  const Snapshot* snapshot = trace->snapshot ? &*trace->snapshot : nullptr;
  const Result<std::optional<HoldersAnswer>> held = holders.of(trace->trace, snapshot, summary.begin_ns);
  if (!held) return failed(held.error());
  const auto top = static_cast<std::size_t>(holders.top);
  if (*format == cli::Format::json) {
    nlohmann::ordered_json j = cli::json_document("inspect");
    j["file"] = path;
    if (paths.size() > 1) j["files"] = paths;
    j.update(to_json(*trace, summary, top));
    if (*held) j["peak"] = to_json(trace->trace, **held, top, summary.begin_ns);
    std::cout << cli::json_text(j);
  } else {
    if (!trace->parts.empty()) summary.header.metadata.erase("aligned");  // told of each part, in a line
    if (!holders.asked) cli::print(std::cout, to_text(*trace, summary, top));
    if (*held)
      cli::print(std::cout,
                 std::string(holders.asked ? "" : "\n") + to_text(trace->trace, **held, top, summary.begin_ns));
  }
  return 0;
}

}  // namespace shard::commands
