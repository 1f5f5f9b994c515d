// `shardscope dryrun`: what memory a PyTorch program would take, on a machine without a GPU.
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "profiler/commands/commands.h"
#include "profiler/commands/program_files.h"
#include "profiler/commands/program_words.h"
#include "profiler/dryrun/dry_run.h"
#include "profiler/process/run_folder.h"
#include "sim/cli/command_line.h"
#include "sim/cli/output.h"
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
--timeout; shapes that depend on data are those of zeros); workspaces of cuDNN; memory outside of PyTorch's allocator
(CUDA's context, NCCL's buffers); when a GPU would be done with what another stream still uses (it is done at once).

A first Ctrl-C (or SIGTERM) is the program's: what it took up to there is told, and then this command dies of the signal; a
second one ends both at once. Nothing that the program started outlives this command.

Cards, as --cluster calls them: a100-40gb-x8, a100-80gb-x8, a800-80gb-x8, b200-180gb-x8, h100-80gb-x8, h100-80gb-pcie-x8,
h200-141gb-x1, h200-141gb-x8, l4-24gb-x8, l40s-48gb-x8, rtx3090-24gb-x1, rtx4090-24gb-x1, t4-16gb-x4, v100-16gb-x8,
v100-32gb-x8; or the file of a description with compute_capability, multiprocessors, threads_per_multiprocessor and device_memory_bytes.

With --world-size the program is one rank of so many, as under torchrun, and does not wait for the others; what these
would send is what it has itself. A launcher may be the program, too (-- torchrun --nproc-per-node 2 train.py): then all
its processes run, and the answer is of the one that took most.

Examples:
  shardscope dryrun --cluster h100-80gb-x8 -- python3 train.py
  shardscope dryrun --cluster h100-80gb-x8 --world-size 8 --trace fsdp.sst -- python3 train.py --fsdp
  shardscope dryrun --cluster h100-80gb-x8 --save run.program -- python3 train.py
    shardscope simulate --program run.program --cluster a100-40gb-x8    (the same run on another card)
)";

struct Options {
  std::string cluster = "h100-80gb-x8";
  std::int64_t world_size = 1;
  std::int64_t rank = 0;
  bool addresses_upwards = false;
  std::optional<double> timeout_seconds;
  std::string trace, save;
  HeldBy by = HeldBy::site;
  std::int64_t top = 10;
  cli::OutputOptions output;
};

/// The card that is stood in for, and what such a process takes of it beside PyTorch's allocator.
struct Card {
  Place place;
  cluster::ByteRange outside;
  [[nodiscard]] cluster::Room room() const { return {.capacity = Bytes{place.device_bytes}, .outside = outside}; }
};

Result<Card> card_of(const Options& options) {
  const Result<cluster::Cluster> cluster = cluster::read_cluster(options.cluster);
  if (!cluster) return cluster.error();
  if (!cluster->card || !cluster->device_memory)
    return Error{Errc::contradiction, "the cluster '" + cluster->name + "' does not say which card its GPUs are",
                 "--cluster",
                 "one with compute_capability, multiprocessors, threads_per_multiprocessor and device_memory_bytes"};
  const auto world_size = static_cast<std::int32_t>(options.world_size);
  if (const Result<void> fits = cluster::check_ranks(*cluster, world_size); !fits) return fits.error();
  if (options.rank >= options.world_size)
    return Error{Errc::contradiction, "there is no rank " + std::to_string(options.rank), "--rank",
                 "0 to " + std::to_string(options.world_size - 1)};
  return Card{.place = {.name = cluster->name,
                        .compute_capability = cluster->card->compute_capability,
                        .multiprocessors = cluster->card->multiprocessors,
                        .threads_per_multiprocessor = cluster->card->threads_per_multiprocessor,
                        .device_bytes = cluster->device_memory->count(),
                        .devices = cluster->devices_per_host,
                        .addresses_upwards = options.addresses_upwards,
                        .world_size = world_size,
                        .rank = static_cast<int>(options.rank),
                        .ranks_per_host = cluster->devices_per_host},
              .outside = cluster::outside_allocator(*cluster, world_size)};
}

/// What the recording says; none where the program used no GPU.
struct Answer {
  std::int64_t allocated_bytes = 0, reserved_bytes = 0, begin_ns = 0;
  bool out_of_memory = false;
  Held held;
};

Result<std::optional<Answer>> answer_of(const DryRun& run, HeldBy by) {
  if (!run.recording || run.recording->trace.memory.empty()) return std::optional<Answer>();
  const LoadedTrace& recording = *run.recording;
  Answer answer;
  const Result<Held> held = held_at(recording.trace, {.by = by});
  if (!held) return held.error();
  answer.held = *held;
  answer.allocated_bytes = held->allocated_bytes;
  answer.begin_ns = summarize(recording).begin_ns;
  for (const ArenaSummary& arena : recording.trace.arenas)
    if (arena.rank == held->rank) answer.reserved_bytes = std::max(answer.reserved_bytes, arena.peak_bytes);
  for (const SnapshotEvent& event : recording.snapshot->events)
    answer.out_of_memory = answer.out_of_memory || event.action == SnapshotAction::oom;
  return std::optional<Answer>(std::move(answer));
}

/// Of a program that was killed, what it took of the card; the recording went with it.
std::int64_t reserved_bytes(const DryRun& run, const std::optional<Answer>& answer) {
  return answer ? answer->reserved_bytes : run.device_peak_bytes;
}

/// What the allocator was refused fits nowhere, though the program may have gone on.
cluster::Verdict verdict_of(const DryRun& run, const std::optional<Answer>& answer, const Card& card) {
  if (answer && answer->out_of_memory) return cluster::Verdict::does_not_fit;
  return cluster::verdict_of(Bytes{reserved_bytes(run, answer)}, card.room());
}

/// PyTorch's own maximum where it is before the events that are kept; 0: it is not.
std::int64_t unrecorded_peak(const DryRun& run, const std::optional<Answer>& answer) {
  return answer && run.allocated_peak_bytes > answer->allocated_bytes ? run.allocated_peak_bytes : 0;
}

nlohmann::ordered_json to_json(const DryRun& run, const Card& card, const std::optional<Answer>& answer,
                               std::size_t top) {
  const Place& place = card.place;
  nlohmann::ordered_json j = cli::json_document("dryrun");
  j["cluster"] = place.name;
  j["world_size"] = place.world_size;
  j["rank"] = place.rank;
  j["pytorch_version"] = run.pytorch.version;
  j["capacity_bytes"] = place.device_bytes;
  j["exit_code"] = run.ended.exit_code;
  j["signal"] = run.ended.signal;
  j["timed_out"] = run.ended.timed_out;
  j["out_of_memory"] = answer && answer->out_of_memory;
  j["unknown_functions"] = run.unknown_functions;
  j["peak_allocated_bytes"] = answer ? answer->allocated_bytes : 0;
  j["peak_reserved_bytes"] = reserved_bytes(run, answer);
  j["verdict"] = to_string(verdict_of(run, answer, card));
  j["outside_allocator_bytes"] = {{"low", card.outside.low.count()}, {"high", card.outside.high.count()}};
  j["headroom_bytes"] = place.device_bytes - reserved_bytes(run, answer) - card.outside.high.count();
  j["unrecorded_peak_bytes"] = unrecorded_peak(run, answer);
  j["pinned_host_peak_bytes"] = run.pinned_peak_bytes;
  j["host_peak_resident_bytes"] = run.ended.peak_resident_bytes;
  j["unknown_workspaces"] = run.unknown_workspaces;
  j["values_read_as_zeros"] = run.values_read;
  j["holders"] = nlohmann::ordered_json::array();
  if (answer) {
    nlohmann::ordered_json held = shard::to_json(run.recording->trace, answer->held, top, answer->begin_ns);
    j["peak_seconds"] = held["time_seconds"];
    j["peak_requested_bytes"] = held["requested_bytes"];
    j["holders"] = std::move(held["holders"]);
    j["rest"] = std::move(held["rest"]);
  }
  return j;
}

std::string to_text(const DryRun& run, const Card& card, const std::optional<Answer>& answer, std::size_t top) {
  const Place& place = card.place;
  std::ostringstream text;
  text << "on one " << place.name << " that is not there";
  if (place.world_size > 1) text << ", as rank " << place.rank << " of " << place.world_size;
  text << " (PyTorch " << run.pytorch.version << ")\n";
  const auto bytes = [](std::int64_t count) {
    return with_commas(count) + " bytes (" + show_bytes(Bytes{count}) + ")";
  };
  if (answer) text << "peak allocated  " << bytes(answer->allocated_bytes) << "\n";
  if (const std::int64_t reserved = reserved_bytes(run, answer); reserved > 0)
    text << "peak reserved   " << bytes(reserved) << "\n"
         << cluster::verdict_line(verdict_of(run, answer, card), Bytes{reserved}, card.room());
  if (run.pinned_peak_bytes > 0) text << "pinned on host  " << bytes(run.pinned_peak_bytes) << "\n";
  text << "host memory     " << show_bytes(Bytes{run.ended.peak_resident_bytes}) << " resident at most\n";
  if (answer && answer->out_of_memory) text << "out of memory: at least one request got none\n";
  if (run.unknown_workspaces > 0)
    text << "not counted: workspaces of cuDNN (convolutions, recurrent nets, its attention), whose sizes only it "
            "knows\n";
  if (run.values_read > 0)
    text << "values read     " << with_commas(run.values_read) << " times that no kernel has computed: zeros\n";
  if (const std::int64_t peak = unrecorded_peak(run, answer); peak > 0)
    text << "an earlier peak of " << bytes(peak) << " is not among the last " << with_commas(kMostEvents)
         << " events, which are kept\n";
  if (answer) {
    text << "\n" << shard::to_text(run.recording->trace, answer->held, top, answer->begin_ns);
  } else {
    text << (!run.fault.empty()           ? "PyTorch gave no record of its allocator: " + run.fault
             : run.device_peak_bytes == 0 ? "the program used no GPU"
                                          : "the program ended before it could say who held it")
         << "\n";
  }
  if (run.ended.timed_out) text << "ended by --timeout\n";
  if (run.ended.signal != 0) text << "ended by signal " << run.ended.signal << "\n";
  if (run.ended.signal == 0 && run.ended.exit_code != 0) text << "exit code " << run.ended.exit_code << "\n";
  return text.str();
}

Result<void> write_recording(const DryRun& run, const std::string& path) {
  if (!run.recording) return Error{Errc::contradiction, "there is nothing to write: the program used no GPU", path, ""};
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
  from.rank = place.rank;
  from.addresses_upwards = place.addresses_upwards;
  return write_file(path, like::to_text(made.program));
}

}  // namespace

int dryrun_command(std::span<const std::string> arguments) {
  Options options;
  cli::Command command("shardscope", "dryrun", "runs a PyTorch program on a stand-in GPU", kDetails);
  command.followed_by("-- PROGRAM [ARGUMENT...]");
  cli::Group group = command.group("Dry run");
  group.add("cluster", &options.cluster, "NAME|PATH", "the GPUs to stand in for")
      .known_names(cluster::cluster_names)
      .reads_file(cluster::cluster_file);
  group.add("world-size", &options.world_size, "N", "run as one rank of so many").alias("ranks").least(1);
  group.add("rank", &options.rank, "R", "as this one").least(0);
  group.add_choice(
      "addresses", &options.addresses_upwards,
      {{"down", false, "below earlier ones, as most Linux drivers"},
       {"up", true, "above earlier ones, as seen of others: what is split off, and so the peak, differs a little"}},
      "where the driver places new memory");
  group.add("timeout", &options.timeout_seconds, "SECONDS", "end the program after so long").least(0);
  group.add("trace", &options.trace, "FILE", "write what the allocator did: .sst, or .pickle as PyTorch would")
      .writes_file();
  group
      .add("save", &options.save, "FILE",
           "write down what the program takes, for 'shardscope simulate --program FILE' on other cards")
      .writes_file();
  group.add_choice(
      "by", &options.by,
      {{"site", HeldBy::site, "the innermost line of your own code"}, {"stack", HeldBy::stack, "the whole stack"}},
      "what blocks are put together by");
  group.add("top", &options.top, "N", "so many of the largest holders").least(0);
  cli::add_output_options(command, options.output);
  const auto [own, program] = profiler::program_words(arguments);
  profiler::reads_program(command, program);
  if (const auto code = commands::parsed(command, own)) return *code;
  if (program.empty()) return failed(profiler::no_program("dryrun"));
  const Result<cli::Format> format = commands::document_format(command, options.output);
  if (!format) return failed(format.error());
  const Result<Card> card = card_of(options);
  if (!card) return failed(card.error());
  const Result<Scratch> folder = profiler::run_folder();
  if (!folder) return failed(folder.error());
  const Result<DryRun> run =
      dry_run(program, card->place, folder->path(),
              {.out_to_errors = *format == cli::Format::json, .timeout_seconds = options.timeout_seconds});
  if (!run) return failed(run.error());
  const Result<std::optional<Answer>> answer = answer_of(*run, options.by);
  if (!answer) return failed(answer.error());
  const auto top = static_cast<std::size_t>(options.top);
  if (*format == cli::Format::json) {
    std::cout << cli::json_text(to_json(*run, *card, *answer, top));
  } else {
    cli::print(std::cout, to_text(*run, *card, *answer, top));
  }
  if (!options.trace.empty()) {
    if (const Result<void> written = write_recording(*run, options.trace); !written) return failed(written.error());
  }
  if (!options.save.empty()) {
    if (const Result<void> saved = save_program(*run, card->place, options.save); !saved) return failed(saved.error());
  }
  return run->ended.timed_out ? exit_code(Errc::retryable) : run->ended.exit_code;
}

}  // namespace shard::dryrun
