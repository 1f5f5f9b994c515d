// `shardscope profile`: what a CUDA program did on its GPUs, recorded while it runs.
#include <signal.h>

#include <atomic>
#include <iostream>
#include <nlohmann/json.hpp>

#include "profiler/commands/commands.h"
#include "profiler/commands/profile_report.h"
#include "profiler/commands/program_files.h"
#include "profiler/commands/program_words.h"
#include "profiler/process/run_folder.h"
#include "profiler/record/record_program.h"
#include "sim/cli/command_line.h"
#include "sim/cli/output.h"
#include "sim/commands/printing.h"
#include "traces/import/write_trace.h"

namespace shard::profiler {
namespace {

using commands::failed;

constexpr const char* kDetails =
    R"(Runs any CUDA program, PyTorch's too, unmodified, and records what the driver says of it: kernels, copies, fills,
allocations and pools, calls of the runtime and the driver, waits, NVTX ranges, the card's clocks and power. CUDA itself
loads the recorder (CUPTI) into the program and into every process that it starts; the launcher of several ranks may be
the program (-- torchrun --nproc-per-node 2 train.py), and all ranks come into one trace.

What was recorded stays where it is when the program ends by exit, by _exit or by a signal; when it recorded more than
--max-bytes, the last is kept and the rest is counted. The program's exit code is this command's, or 75 where --timeout
ended it. Where there is no GPU, or no leave to profile, the program runs all the same and the reason is said.

A first Ctrl-C (or SIGTERM) is the program's: what it did up to there is told, and then this command dies of the signal; a
second one ends both at once. Nothing that the program started outlives this command.

A signal USR1 to this command switches recording off, and the next one on again.

What is recorded can go by the ranges that a program names with NVTX (torch.cuda.nvtx.range_push, or nvtx.annotate): by
--range those of one name, by --steps those that are steps. A step is a range called ProfilerStep#N, step, iteration, iter,
train_step or training_step, with a number behind it or without, or what --step-range says; without a number steps are
counted, from 1. Recording begins with the range, stops soon behind its end, and what lies outside is left out; allocations
are recorded throughout, so that what is in use is known. --start-after and USR1 hold as well.

Examples:
  shardscope profile -o run.sst -- python3 train.py
  shardscope profile --start-after 60 --max-bytes 64M -- torchrun --nproc-per-node 8 train.py
  shardscope profile --steps 20:22 -- python3 train.py
  shardscope profile --range validation -- ./my_program
)";

struct Options {
  std::string output_file;
  Bytes most{std::int64_t{256} << 20};
  std::optional<double> start_after, timeout_seconds;
  WantedRanges wanted;
  std::int64_t top = 10;
  cli::OutputOptions output;
};

/// How often USR1 came.
std::atomic<int> switches{0};

Result<void> read_steps(std::string_view text, std::string_view where, WantedRanges& wanted) {
  const std::size_t colon = text.find(':');
  WantedSteps steps;
  const auto read = [&](std::string_view part, std::int32_t& value) -> Result<void> {
    std::int64_t number = 0;
    if (Result<void> r = cli::read_value(part, where, {.least = 1, .most = 1e9}, number); !r) return r;
    value = static_cast<std::int32_t>(number);
    return {};
  };
  if (Result<void> r = read(text.substr(0, colon), steps.first); !r) return r;
  steps.last = steps.first;
  if (colon != std::string_view::npos)
    if (Result<void> r = read(text.substr(colon + 1), steps.last); !r) return r;
  if (steps.last < steps.first)
    return Error{Errc::usage, "steps end before they begin: '" + std::string(text) + "'", std::string(where),
                 "A:B with A at most B"};
  wanted.steps = steps;
  return {};
}

/// Options that say nothing together.
Result<void> check(const WantedRanges& wanted) {
  if (wanted.steps && !wanted.name.empty())
    return Error{Errc::usage, "--range and --steps say two things", "profile", "one of them"};
  if (!wanted.steps && !wanted.step_name.empty())
    return Error{Errc::usage, "--step-range says what a step is, but no steps are asked for", "profile", "--steps A:B"};
  return {};
}

void add_options(cli::Command& command, Options& options) {
  cli::Group group = command.group("Recording");
  group.add("output", &options.output_file, "FILE", "write the trace").alias("trace").letter('o').writes_file();
  group.add("max-bytes", &options.most, "BYTES", "of each process's events; the last are kept").least(1);
  group.add("start-after", &options.start_after, "SECONDS", "record from then on").least(0);
  group.add("timeout", &options.timeout_seconds, "SECONDS", "end the program after so long").least(0);
  group.add("range", &options.wanted.name, "NAME", "record while an NVTX range of this name is open");
  group.add_custom("steps", "A:B", "record these steps alone, counted from 1",
                   [&options](std::string_view text, std::string_view where, const cli::Range&) {
                     return read_steps(text, where, options.wanted);
                   });
  group.add("step-range", &options.wanted.step_name, "NAME",
            "what the program's NVTX ranges that are steps are called");
  group.add("top", &options.top, "N", "so many of the largest of each table").least(0);
  cli::add_output_options(command, options.output);
}

}  // namespace

int profile_command(std::span<const std::string> arguments) {
  Options options;
  cli::Command command("shardscope", "profile", "records what a CUDA program does on its GPUs", kDetails);
  add_options(command, options);
  const auto [own, program] = program_words(arguments);
  reads_program(command, program);
  if (const auto code = commands::parsed(command, own)) return *code;
  if (program.empty()) return failed(no_program("profile"));
  if (const Result<void> sound = check(options.wanted); !sound) return failed(sound.error());
  const Result<cli::Format> format = commands::document_format(command, options.output);
  if (!format) return failed(format.error());
  const Result<Scratch> folder = run_folder();
  if (!folder) return failed(folder.error());
  struct sigaction on_switch {};
  on_switch.sa_handler = [](int) { switches.fetch_add(1); };
  on_switch.sa_flags = SA_RESTART;
  ::sigaction(SIGUSR1, &on_switch, nullptr);
  const Result<Recorded> recorded =
      record_program(program, folder->path(),
                     {.most = options.most,
                      .start_after_seconds = options.start_after,
                      .wanted = options.wanted,
                      .switches = &switches},
                     {.out_to_errors = *format == cli::Format::json, .timeout_seconds = options.timeout_seconds});
  if (!recorded) return failed(recorded.error());
  const auto top = static_cast<std::size_t>(options.top);
  if (*format == cli::Format::json) {
    std::cout << cli::json_text(to_json(*recorded, top));
  } else if (recorded->timeline) {
    std::cout << to_text(*recorded, top, cli::style_of(1));
  } else {
    std::cerr << to_text(*recorded, top, cli::style_of(2));
  }
  if (!options.output_file.empty() && recorded->timeline)
    if (const Result<void> written = write_trace(recorded->timeline->loaded.trace, options.output_file); !written)
      return failed(written.error());
  return recorded->ended.timed_out ? exit_code(Errc::retryable) : recorded->ended.exit_code;
}

}  // namespace shard::profiler
