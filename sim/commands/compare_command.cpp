// `shardscope compare`: two traces lined up, or two strategies side by side.
#include "sim/cli/contradiction.h"
#include "sim/commands/commands.h"
#include "sim/commands/compare_strategies.h"
#include "sim/commands/foreign_files.h"
#include "sim/commands/holders_options.h"
#include "sim/commands/printing.h"
#include "traces/compare.h"
#include "traces/compare_holders.h"
#include "traces/compare_snapshots.h"
#include "traces/inspect.h"

namespace shard::commands {
namespace {

constexpr const char* kCompareDetails =
    R"(Lines two traces of one plan up, op by op: memory peaks and collectives must be equal, times are shown side by
side. Two different plans are refused unless --force.

Or two memory snapshots of PyTorch: who held how much at each peak, the largest difference first (by line of your own code,
--by stack by the whole stack), peaks, categories there, and allocations and frees lined up in order and size. One may be
predicted ('simulate --like pytorch@2.11 --trace predicted.pickle').

Or simulates two strategies, and shows memory, traffic and time of both, the largest difference first. A strategy is a
file as --config takes it, lines of 'name = value' or a configuration of another tool; options given here count for both.

Exit codes: 0; with --check 1 when memory or communication differ; 78 different plans.

Examples:
  shardscope compare predicted.sst measured.sst
  shardscope compare before.sst after.sst --force --json
  shardscope compare before.pickle after.pickle --top 20
  shardscope compare predicted.pickle recorded.pickle
  shardscope compare stage2.conf stage3.conf --model gpt2-medium --world-size 8 --cluster a100-40gb-x8
)";

/// That a measured run computed its products with; "" for others.
std::string instruction_set(const Trace& trace) {
  const auto known = trace.header.metadata.find("instruction_set");
  return known == trace.header.metadata.end() ? "" : known->second;
}

struct CompareFlags {
  std::string first;
  std::string second;
  bool check = false;
  CompareOptions traces;
  HoldersOptions holders;
  std::int64_t ops = 15;
  SimulateOptions strategies;
  cli::OutputOptions output;
};

void declare_compare(cli::Command& command, CompareFlags& o) {
  command.add_positional("TRACE", &o.first, "a trace, or a strategy's file").required().reads_file();
  command.add_positional("OTHER", &o.second, "another trace of the same plan, or another strategy's file")
      .required()
      .reads_file();
  cli::Group group = command.group("Compare");
  group.add_flag("check", &o.check, "exit 1 when memory or communication differ").common();
  group.add_flag("force", &o.traces.force, "line up traces of different plans").common();
  group.add("ops", &o.ops, "N", "how many single ops of traces to list, largest difference first")
      .common()
      .least(0)
      .most(1e6);
  cli::Group held = command.group("Who held memory, of two memory snapshots");
  o.holders.add_moment_to(held);
  add_shared_options(command, o.strategies);
  cli::add_output_options(command, o.output);
}

Error one_of_each(const std::string& strategy, const std::string& trace) {
  if (const Result<Trace> other = load(trace); !other && other.error().code == Errc::no_input) return other.error();
  return cli::contradiction(strategy + " is a strategy, and " + trace + " is none",
                            "shardscope simulate --config " + strategy + " --trace predicted.sst, and compare that");
}

/// Who held memory at the moment asked for is of memory snapshots.
Result<void> refuse_holders(const cli::Command& command) {
  for (const char* option : {"at", "by", "top"})
    if (command.given(option))
      return cli::contradiction(command.describe(option) + " is of two memory snapshots, and these are none",
                                "leave it out; 'shardscope inspect' says who held memory of one trace");
  return {};
}

bool are_snapshots(const CompareFlags& o) {
  const auto is_pickle = [](const std::string& path) { return path.ends_with(".pickle") || path.ends_with(".pkl"); };
  return is_pickle(o.first) || is_pickle(o.second);
}

/// Nothing where one has no stacks.
Result<std::optional<HolderComparison>> compared_holders(const HoldersOptions& options, const Trace& a,
                                                         const Trace& b) {
  const Result<std::optional<HoldersAnswer>> in_a = options.of(a, nullptr, summarize(a).begin_ns);
  if (!in_a) return in_a.error();
  const Result<std::optional<HoldersAnswer>> in_b = options.of(b, nullptr, summarize(b).begin_ns);
  if (!in_b) return in_b.error();
  if (!*in_a || !*in_b) return std::optional<HolderComparison>();
  return std::optional(compare_holders(a, (*in_a)->held, b, (*in_b)->held));
}

int compare_recorded_memory(const CompareFlags& o, cli::Format format) {
  const Result<LoadedTrace> a = load_any(o.first);
  if (!a) return failed(a.error());
  const Result<LoadedTrace> b = load_any(o.second);
  if (!b) return failed(b.error());
  const Result<SnapshotComparison> comparison = compare_snapshots(*a, *b, o.first, o.second);
  if (!comparison) return failed(comparison.error());
  const Result<std::optional<HolderComparison>> holders = compared_holders(o.holders, a->trace, b->trace);
  if (!holders) return failed(holders.error());
  if (format == cli::Format::json) {
    nlohmann::ordered_json j = cli::json_document("compare");
    j.update(to_json(*comparison));
    j["holders"] = *holders ? to_json(**holders) : nlohmann::ordered_json(nullptr);
    std::cout << cli::json_text(j);
  } else {
    cli::print(std::cout, to_text(*comparison));
    if (*holders) cli::print(std::cout, "\n" + to_text(**holders, static_cast<std::size_t>(o.holders.top)));
  }
  return o.check && !comparison->equal() ? exit_code(Errc::check_failed) : 0;
}

int compare_recorded(const CompareFlags& o, cli::Format format) {
  CompareOptions options = o.traces;
  options.max_ops = static_cast<std::size_t>(o.ops);
  const Result<Trace> a = load(o.first);
  if (!a) return failed(a.error());
  const Result<Trace> b = load(o.second);
  if (!b) return failed(b.error());
  const std::string set = instruction_set(*a);
  if (const std::string other = instruction_set(*b); !set.empty() && !other.empty() && set != other)
    print_notes({"measured with " + set + " and with " + other + ": the digests of these runs differ"});
  const Result<Comparison> comparison = compare_traces(*a, *b, options, o.first, o.second);
  if (!comparison) return failed(comparison.error());
  if (format == cli::Format::json) {
    nlohmann::ordered_json j = to_json(*comparison);
    j["command"] = "compare";
    std::cout << cli::json_text(j);
  } else {
    // Two of a kind have no better names in the tables.
    if (comparison->label.first == "a") cli::print(std::cout, "a  " + o.first + "\nb  " + o.second + "\n");
    cli::print(std::cout, to_text(*comparison, options.max_ops));
  }
  return o.check && !comparison->equal() ? exit_code(Errc::check_failed) : 0;
}

}  // namespace

int compare_command(std::span<const std::string> arguments) {
  CompareFlags o;
  cli::Command command("shardscope", "compare", "lines two traces up, op by op, or two strategies", kCompareDetails);
  declare_compare(command, o);
  if (const auto code = parsed(command, arguments)) return *code;
  const Result<cli::Format> format = document_format(command, o.output);
  if (!format) return failed(format.error());
  const bool first = holds_options(o.first);
  if (const bool second = holds_options(o.second); first != second)
    return failed(first ? one_of_each(o.first, o.second) : one_of_each(o.second, o.first));
  const bool snapshots = !first && are_snapshots(o);
  if (Result<void> ok = snapshots ? Result<void>() : refuse_holders(command); !ok) return failed(ok.error());
  if (first) return compare_strategies(command, o.first, o.second, *format, o.check);
  if (Result<void> ok = refuse_shared_options(command); !ok) return failed(ok.error());
  return snapshots ? compare_recorded_memory(o, *format) : compare_recorded(o, *format);
}

}  // namespace shard::commands
