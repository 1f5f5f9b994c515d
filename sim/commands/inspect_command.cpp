// `shardscope inspect`: what is in a trace, a model, or an allocator recording.
#include <filesystem>
#include <fstream>

#include "sim/cli/sizes.h"
#include "sim/commands/commands.h"
#include "sim/commands/printing.h"
#include "sim/memory/replay.h"
#include "sim/model/read_model.h"
#include "traces/inspect.h"

namespace shard::commands {
namespace {

constexpr const char* kDetails =
    R"(Says what is in a trace (.sst): spans, memory, steps, peaks, collectives, and what of it is damaged.
With --replay-allocator runs a recording of PyTorch's allocator (CSV) through the model of that allocator and counts
where the two agree.

Examples:
  shardscope inspect measured.sst
  shardscope inspect recording.csv --replay-allocator pytorch --json
)";

int replay(const std::string& path, const std::string& allocator, cli::Format format) {
  const Result<CachingAllocatorOptions> options = caching_allocator_options(allocator);
  if (!options) return failed(options.error());
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path))
    return failed({.code = Errc::no_input,
                   .what = "cannot read the recording",
                   .where = path,
                   .help = "a CSV file with the columns what,address,bytes,stream,pool,time_us"});
  const Result<AllocatorReplay> result = replay_allocator(file, path, *options);
  if (!result) return failed(result.error());
  if (format == cli::Format::json) {
    nlohmann::ordered_json j = cli::json_document("inspect");
    j["file"] = path;
    j["allocator_replay"] = to_json(*result);
    std::cout << cli::json_text(j);
  } else {
    std::cout << to_text(*result);
  }
  return 0;
}

}  // namespace

int inspect_command(std::span<const std::string> arguments) {
  std::string path;
  std::string allocator;
  cli::OutputOptions output;
  cli::Command command("shardscope", "inspect", "says what is in one trace or recording", kDetails);
  command.add_positional("FILE", &path, "a trace, or with --replay-allocator a recording").required();
  cli::Group group = command.group("Inspect");
  group.add("replay-allocator", &allocator, "NAME", "run a recording through this allocator's model: pytorch");
  cli::add_output_options(command, output);
  if (const auto code = parsed(command, arguments)) return *code;
  const Result<cli::Format> format = document_format(command, output);
  if (!format) return failed(format.error());
  if (!allocator.empty()) return replay(path, allocator, *format);
  const Result<Trace> trace = load(path);
  if (!trace) return failed(trace.error());
  const TraceSummary summary = summarize(*trace);
  if (*format == cli::Format::json) {
    nlohmann::ordered_json j = cli::json_document("inspect");
    j["file"] = path;
    j.update(to_json(summary));
    std::cout << cli::json_text(j);
  } else {
    std::cout << to_text(summary);
  }
  return 0;
}

}  // namespace shard::commands
