// `shardscope compare`: two traces lined up.
#include "sim/commands/commands.h"
#include "sim/commands/printing.h"
#include "traces/compare.h"

namespace shard::commands {
namespace {

constexpr const char* kCompareDetails =
    R"(Lines two traces of one plan up, op by op: memory peaks and collectives must be equal, times are shown side by
side. Two different plans are refused unless --force.

Exit codes: 0; with --check 1 when memory or communication differ; 78 different plans.

Examples:
  shardscope compare predicted.sst measured.sst
  shardscope compare before.sst after.sst --force --json
)";

/// That a measured run computed its products with; "" for others.
std::string instruction_set(const Trace& trace) {
  const auto known = trace.header.metadata.find("instruction_set");
  return known == trace.header.metadata.end() ? "" : known->second;
}

}  // namespace

int compare_command(std::span<const std::string> arguments) {
  std::string first;
  std::string second;
  bool check = false;
  CompareOptions options;
  std::int64_t ops = 15;
  cli::OutputOptions output;
  cli::Command command("shardscope", "compare", "lines two traces up, op by op", kCompareDetails);
  command.add_positional("TRACE", &first, "a trace").required().reads_file();
  command.add_positional("OTHER", &second, "another trace of the same plan").required().reads_file();
  cli::Group group = command.group("Compare");
  group.add_flag("check", &check, "exit 1 when memory or communication differ");
  group.add_flag("force", &options.force, "line up traces of different plans");
  group.add("ops", &ops, "N", "how many single ops to list, largest difference first").least(0).most(1e6);
  cli::add_output_options(command, output);
  if (const auto code = parsed(command, arguments)) return *code;
  const Result<cli::Format> format = document_format(command, output);
  if (!format) return failed(format.error());
  options.max_ops = static_cast<std::size_t>(ops);
  const Result<Trace> a = load(first);
  if (!a) return failed(a.error());
  const Result<Trace> b = load(second);
  if (!b) return failed(b.error());
  const std::string set = instruction_set(*a);
  if (const std::string other = instruction_set(*b); !set.empty() && !other.empty() && set != other)
    print_notes({"measured with " + set + " and with " + other + ": the digests of these runs differ"});
  const Result<Comparison> comparison = compare_traces(*a, *b, options, first, second);
  if (!comparison) return failed(comparison.error());
  if (*format == cli::Format::json) {
    nlohmann::ordered_json j = to_json(*comparison);
    j["command"] = "compare";
    std::cout << cli::json_text(j);
  } else {
    // Two of a kind have no better names in the tables.
    if (comparison->label.first == "a") cli::print(std::cout, "a  " + first + "\nb  " + second + "\n");
    cli::print(std::cout, to_text(*comparison, options.max_ops));
  }
  return check && !comparison->equal() ? exit_code(Errc::check_failed) : 0;
}

}  // namespace shard::commands
