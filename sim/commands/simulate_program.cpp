// File to program, program through the allocator.
#include "sim/commands/simulate_program.h"

#include <algorithm>
#include <array>
#include <iostream>
#include <nlohmann/json.hpp>

#include "sim/cli/contradiction.h"
#include "sim/cluster/outside.h"
#include "sim/cluster/read_cluster.h"
#include "sim/commands/printing.h"
#include "sim/like/program/program_file.h"
#include "sim/like/program/program_of_snapshot.h"
#include "sim/like/pytorch/allocator_conf.h"
#include "sim/like/report.h"
#include "traces/base/numbers.h"
#include "traces/base/output_file.h"
#include "traces/base/printable.h"
#include "traces/export/snapshot_again.h"
#include "traces/import/import.h"

namespace shard::commands {
namespace {

/// What changes the answer of a program that is there, and how it is printed.
constexpr std::array<std::string_view, 10> kOfPrograms{
    "program", "cluster", "device-capacity", "host-capacity", "allocator-conf", "memory-fraction",
    "trace",   "json",    "format",          "exact"};

Result<void> refuse_others(const cli::Command& command) {
  for (const cli::Effective& option : command.effective())
    if (option.origin.source != cli::Source::fallback &&
        std::ranges::find(kOfPrograms, option.name) == kOfPrograms.end())
      return cli::contradiction(command.describe(option.name) + " has no meaning for " + command.describe("program") +
                                    ": the program is written down as it ran",
                                "leave --" + option.name + " out");
  return {};
}

/// A snapshot of PyTorch's is a program, too.
Result<like::Program> load(const std::string& path) {
  Result<like::Program> program = like::load_program(path);
  if (program || program.error().code != Errc::malformed) return program;
  const Result<LoadedTrace> loaded = load_any(path);
  if (!loaded || !loaded->snapshot) return program;
  if (Result<void> whole = check_whole(*loaded, path); !whole) return whole.error();
  like::SnapshotProgram made = like::program_of_snapshot(*loaded->snapshot, loaded->trace, std::nullopt);
  print_notes(like::notes(made, path));
  made.program.origin.framework = "a recording";
  return std::move(made.program);
}

struct AskedAgain {
  like::Program program;
  std::string cluster;
  like::MemoryAnswer answer;
};

Result<AskedAgain> ask(const cli::Command& command, const ProgramQuestion& q) {
  if (Result<void> ok = refuse_others(command); !ok) return ok.error();
  const Result<cluster::Cluster> cluster = cluster::read_cluster(q.cluster);
  if (!cluster) return cluster.error();
  Result<like::Program> program = load(q.path);
  if (!program) return program.error();
  const like::ProgramOrigin& from = program->origin;
  AllocatorFlags settings = q.allocator;
  if (settings.conf.empty()) {
    settings.conf = from.allocator;
    if (const Result<AllocatorConf> known = read_allocator_conf(from.allocator); !known) {
      Error error = known.error();
      error.code = Errc::malformed;  // of the file, where the same words of an option are misuse
      error.where = printable_line(q.path) + ", its allocator's settings";
      return error;
    }
  }
  const cluster::Room room{
      .capacity = q.device_capacity ? q.device_capacity : cluster->device_memory,
      .outside = cluster::outside_allocator(
          *cluster, from.world_size, from.all_kernels ? cluster::KernelLoading::all : cluster::KernelLoading::lazy),
      .uncertainty = from.uncertainty_ppm / 1e6};
  std::vector<std::string> notes;
  const Result<CachingAllocatorOptions> allocator = allocator_of(settings, room.capacity, notes);
  if (!allocator) return allocator.error();
  print_notes(notes);
  Result<like::MemoryAnswer> answer = like::replay(
      *program, {.allocator = *allocator, .device_capacity = room.at_most(), .snapshot = !q.trace.empty()});
  if (!answer) return answer.error();
  answer->put_into(room);
  answer->host = cluster::host_room(*cluster, from.world_size, q.host_capacity);
  if (answer->snapshot)
    if (Result<void> ok = export_snapshot_again(answer->snapshot->snapshot, answer->snapshot->names, q.trace); !ok)
      return ok.error();
  return AskedAgain{std::move(*program), cluster->name, std::move(*answer)};
}

cli::Table moments_table(const like::MemoryAnswer& result) {
  cli::Table table;
  table.columns = {{"moment", "moment", cli::Align::left},
                   {"max_allocated_bytes", "max allocated"},
                   {"max_reserved_bytes", "max reserved"},
                   {"op", "reached by", cli::Align::left}};
  for (const like::Moment& m : result.moments)
    table.rows.push_back({m.name, cli::cell(m.max_allocated), cli::cell(m.max_reserved), m.op});
  return table;
}

/// "program of fsdp2@2.11, llama-7b, rank 0 of 8, three steps, on h100-80gb-x8"
std::string who(const AskedAgain& a) {
  const like::ProgramOrigin& from = a.program.origin;
  std::string text = "program";
  if (!from.framework.empty()) text += " of " + from.framework;
  if (!from.model.empty()) text += ", " + from.model;
  text += ", rank " + std::to_string(from.rank) + " of " + std::to_string(from.world_size);
  if (!from.steps.empty()) text += ", " + from.steps;
  return printable_line(text + ", on " + a.cluster);
}

void print(const AskedAgain& a, const ProgramQuestion& q, cli::Format format) {
  const ShowBytes show = q.exact ? show_exact : like::unit_of(a.answer);
  if (format == cli::Format::json) {
    nlohmann::ordered_json j = cli::json_document("simulate");
    j["program"] = q.path;
    j["like"] = a.program.origin.framework;
    j["model"] = a.program.origin.model;
    j["world_size"] = a.program.origin.world_size;
    j["rank"] = a.program.origin.rank;
    j["cluster"] = a.cluster;
    j["steps"] = a.program.steps.size();
    j.update(like::to_json(a.answer));
    std::cout << cli::json_text(j);
  } else if (format == cli::Format::table) {
    cli::print(std::cout, like::verdict_text(a.answer, show) + like::details_text(a.answer, who(a), show));
  } else {
    cli::print(std::cerr, like::verdict_text(a.answer, show));
    print_tables(a.answer, format);
  }
}

}  // namespace

void print_tables(const like::MemoryAnswer& answer, cli::Format format) {
  if (format == cli::Format::markdown) cli::print(std::cout, like::to_markdown(answer));
  if (format == cli::Format::csv) std::cout << cli::render(moments_table(answer), format, cli::style_of(1));
}

int simulate_program(const cli::Command& command, const ProgramQuestion& question, cli::Format format) {
  const Result<AskedAgain> asked = ask(command, question);
  if (!asked) return failed(asked.error());
  print(*asked, question, format);
  return asked->answer.verdict() != cluster::Verdict::does_not_fit ? 0 : exit_code(Errc::does_not_fit);
}

Result<void> save_program(const cli::Command& command, const like::Program* program, const AllocatorFlags& allocator,
                          const std::string& path) {
  if (program == nullptr)
    return cli::contradiction(command.describe("save-program") +
                                  " keeps a program of another framework, and the answer "
                                  "is of none whose program is written down",
                              "--like pytorch, fsdp2, deepspeed or another; 'shardscope plan' writes down our own");
  like::Program kept = *program;
  kept.origin.allocator = allocator.conf;
  return write_file(path, like::to_text(kept));
}

}  // namespace shard::commands
