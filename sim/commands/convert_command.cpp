// `shardscope convert`: a trace for other tools.
#include <filesystem>

#include "sim/commands/commands.h"
#include "sim/commands/printing.h"
#include "traces/export/chrome_json.h"
#include "traces/export/perfetto.h"
#include "traces/reader.h"

namespace shard::commands {
namespace {

constexpr const char* kDetails =
    R"(Writes a trace in the form of another tool: Perfetto's protobuf (ui.perfetto.dev) or Chrome's JSON
(chrome://tracing). The form follows the name of the output (.perfetto-trace, .pftrace, .pb; .json) or --to.

Examples:
  shardscope convert measured.sst measured.perfetto-trace
  shardscope convert measured.sst measured.json
)";

enum class Form { automatic, perfetto, chrome };

Result<Form> form_of(const std::string& path, Form asked) {
  if (asked != Form::automatic) return asked;
  for (const char* ending : {".perfetto-trace", ".pftrace", ".pb", ".perfetto"})
    if (path.ends_with(ending)) return Form::perfetto;
  if (path.ends_with(".json")) return Form::chrome;
  return Error{.code = Errc::usage,
               .what = "the name '" + path + "' does not say which form to write",
               .where = "convert",
               .help = "--to perfetto or --to chrome, or a name that ends in .perfetto-trace or .json"};
}

}  // namespace

int convert_command(std::span<const std::string> arguments) {
  std::string input;
  std::string output;
  Form to = Form::automatic;
  cli::Command command("shardscope", "convert", "writes a trace for other tools", kDetails);
  command.add_positional("TRACE", &input, "a trace (.sst)").required();
  command.add_positional("OUTPUT", &output, "the file to write").required();
  cli::Group group = command.group("Convert");
  group.add_choice<Form>("to", &to,
                         {{"auto", Form::automatic, "by the output's name"},
                          {"perfetto", Form::perfetto, "Perfetto's protobuf"},
                          {"chrome", Form::chrome, "Chrome's JSON"}},
                         "the form to write");
  if (const auto code = parsed(command, arguments)) return *code;
  const Result<Form> form = form_of(output, to);
  if (!form) return failed(form.error());
  std::error_code ignored;
  if (std::filesystem::equivalent(input, output, ignored))
    return failed({.code = Errc::contradiction,
                   .what = "the output is the trace itself, which would be lost",
                   .where = output,
                   .help = "another name for the output"});
  const Result<Trace> trace = load(input);
  if (!trace) return failed(trace.error());
  for (const Truncated& lost : trace->truncated)
    print_notes({input + ": from byte " + std::to_string(lost.offset) + " on: " + lost.why});
  const Result<void> written =
      *form == Form::perfetto ? export_perfetto(*trace, output) : export_chrome_json(*trace, output);
  if (!written) return failed(written.error());
  return 0;
}

}  // namespace shard::commands
