// `shardscope convert`: a trace for other tools.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "sim/cli/dispatch.h"
#include "sim/cli/output_path.h"
#include "sim/commands/commands.h"
#include "sim/commands/printing.h"
#include "traces/export/chrome_json.h"
#include "traces/export/csv.h"
#include "traces/export/memory_svg.h"
#include "traces/export/perfetto.h"
#include "traces/export/pytorch_snapshot.h"
#include "traces/export/snapshot_again.h"
#include "traces/import/combine.h"
#include "traces/import/import.h"
#include "traces/import/write_trace.h"

namespace shard::commands {
namespace {

constexpr const char* kConvertDetails =
    R"(Writes a trace in another form: Perfetto's protobuf (ui.perfetto.dev), Chrome's JSON (chrome://tracing), a table
(CSV), a picture of its memory (SVG), a picture of what 'view' shows (PNG), a PyTorch memory snapshot
(pytorch.org/memory_viz), or .sst. The form follows the name of the output (.perfetto-trace, .pftrace, .pb; .json;
.csv; .svg; .png; .pickle; .sst) or --to. Reads what inspect reads: traces of other tools too; a snapshot
becomes the same snapshot again. Several files of one run, with -o, become one: a memory snapshot and a profiler's trace,
or the traces of several processes, ranks and hosts, whose ranks stay apart. Their clocks are put on the first one's: by the
Unix time that each says, as far as the collectives that they did together leave that possible, since none ends on a rank
before it began on all; else by these, with drift up to one in 5,000. What was done and the bound on the error are said, and
stand in the trace ('aligned'). PNG needs the viewer, and takes the options of 'view' that say what to show ('view --help').

Examples:
  shardscope convert measured.sst measured.perfetto-trace
  shardscope convert snapshot.pickle memory.svg
  shardscope convert predicted.sst predicted.pickle
  shardscope convert snapshot.pickle -o same.pickle
  shardscope convert snapshot.pickle profile.json.gz -o both.sst
  shardscope convert snapshot.pickle events.csv --json
)";

constexpr const char* kPicture = ".png";

enum class Form { automatic, perfetto, chrome, csv, svg, pickle, sst };

constexpr const char* name_of(Form form) {
  switch (form) {
    case Form::automatic: return "auto";
    case Form::perfetto: return "perfetto";
    case Form::chrome: return "chrome";
    case Form::csv: return "csv";
    case Form::svg: return "svg";
    case Form::pickle: return "pickle";
    case Form::sst: return "sst";
  }
  return "?";
}

/// A picture is drawn by the viewer, whose options this program does not know: its arguments are not parsed here. Asked
/// for by --to png, else by a name.
bool asks_for_picture(std::span<const std::string> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].starts_with("--to=")) return arguments[i] == "--to=png";
    if (arguments[i] == "--to") return i + 1 < arguments.size() && arguments[i + 1] == "png";
  }
  return std::ranges::any_of(arguments, [](const std::string& word) { return word.ends_with(kPicture); });
}

Result<Form> form_of(const std::string& path, Form asked) {
  if (asked != Form::automatic) return asked;
  for (const char* ending : {".perfetto-trace", ".pftrace", ".pb", ".perfetto"})
    if (path.ends_with(ending)) return Form::perfetto;
  if (path.ends_with(".json")) return Form::chrome;
  if (path.ends_with(".csv")) return Form::csv;
  if (path.ends_with(".svg")) return Form::svg;
  if (path.ends_with(".pickle") || path.ends_with(".pkl")) return Form::pickle;
  if (path.ends_with(".sst")) return Form::sst;
  return Error{
      .code = Errc::usage,
      .what = "the name '" + path + "' does not say which form to write",
      .where = "convert",
      .help =
          "--to perfetto, chrome, csv, svg, png, pickle or sst, or a name that ends in .perfetto-trace, .json, "
          ".csv, .svg, .png, .pickle or .sst"};
}

/// All that -o leaves to be read; without it two words are IN OUT.
Result<std::vector<std::string>> inputs_of(const std::string& first, cli::OutputPath& output,
                                           std::vector<std::string> more) {
  if (output.option.empty() && !more.empty())
    return Error{Errc::usage, "several files, and nothing says which is written", "'" + more.back() + "'",
                 "-o FILE for the one to write"};
  std::vector<std::string> inputs{first};
  if (!output.option.empty() && !output.last_word.empty()) inputs.push_back(std::exchange(output.last_word, ""));
  inputs.insert(inputs.end(), more.begin(), more.end());
  return inputs;
}

Result<void> write(const LoadedTrace& loaded, Form form, const std::string& path) {
  const Trace& trace = loaded.trace;
  if (loaded.snapshot && form == Form::pickle) return export_snapshot_again(*loaded.snapshot, trace, path);
  switch (form) {
    case Form::perfetto: return export_perfetto(trace, path);
    case Form::csv: return export_csv(trace, path);
    case Form::svg: return export_memory_svg(trace, path);
    case Form::pickle: return export_pytorch_snapshot(trace, path);
    case Form::sst: return write_trace(trace, path);
    case Form::automatic:
    case Form::chrome: break;
  }
  return export_chrome_json(trace, path);
}

nlohmann::ordered_json answer(const std::vector<std::string>& inputs, const LoadedTrace& loaded, Form form,
                              const std::string& output) {
  nlohmann::ordered_json j = cli::json_document("convert");
  j["files"] = nlohmann::ordered_json::array();
  for (const CombinedPart& part : loaded.parts)
    j["files"].push_back({{"file", part.name}, {"format", to_string(part.format)}});
  if (loaded.parts.empty()) j["files"].push_back({{"file", inputs.front()}, {"format", to_string(loaded.format)}});
  j["span_count"] = loaded.trace.spans.size();
  j["memory_event_count"] = loaded.trace.memory.size();
  j["complete"] = loaded.trace.complete();
  j["passed_over"] = loaded.notes;
  j["aligned"] = nlohmann::ordered_json::array();
  for (const CombinedPart& part : loaded.parts) j["aligned"].push_back(to_text(part));
  j["output"] = output;
  j["form"] = name_of(form);
  std::error_code no_file;  // a pipe has no size
  const std::uintmax_t bytes = std::filesystem::file_size(output, no_file);
  j["bytes"] = no_file ? nlohmann::ordered_json() : nlohmann::ordered_json(bytes);
  return j;
}

}  // namespace

int convert_command(std::span<const std::string> arguments) {
  if (asks_for_picture(arguments)) {
    std::cout << std::flush;
    return failed(cli::hand_over("shardscope-view", "convert", arguments));
  }
  std::string input;
  std::vector<std::string> more;
  cli::OutputPath output_path;
  Form to = Form::automatic;
  bool incomplete = false, force = false, json = false;
  cli::Command command("shardscope", "convert", "writes a trace for other tools", kConvertDetails);
  command.add_positional("TRACE", &input, "a trace of any tool that inspect knows").required().reads_file();
  cli::Group group = command.group("Convert");
  cli::add_output_path(command, group, output_path);
  command.add_positional("TRACE", &more, "more traces of the same run, put together with the first; needs -o")
      .reads_file();
  group.add_choice<Form>("to", &to,
                         {{"auto", Form::automatic, "by the output's name"},
                          {"perfetto", Form::perfetto, "Perfetto's protobuf"},
                          {"chrome", Form::chrome, "Chrome's JSON"},
                          {"csv", Form::csv, "a table of all events"},
                          {"svg", Form::svg, "a picture of memory over time"},
                          {"pickle", Form::pickle, "device memory as a PyTorch memory snapshot"},
                          {"sst", Form::sst, "our own"}},
                         "the form to write");
  group.add_flag("incomplete", &incomplete, kIncompleteHelp);
  group.add_flag("force", &force, kForceRunsHelp);
  group.add_flag("json", &json, "what was read and written, as one JSON object on stdout");
  if (const auto code = parsed(command, arguments)) return *code;
  const Result<std::vector<std::string>> inputs = inputs_of(input, output_path, std::move(more));
  if (!inputs) return failed(inputs.error());
  const Result<std::string> output = output_path.chosen();
  if (!output) return failed(output.error());
  const Result<Form> form = form_of(*output, to);
  if (!form) return failed(form.error());
  const Result<LoadedTrace> loaded = load_all(*inputs, incomplete, force);
  if (!loaded) return failed(loaded.error());
  for (const CombinedPart& part : loaded->parts) print_notes({"aligned: " + to_text(part)});
  for (const std::string& note : loaded->notes)
    print_notes({(loaded->parts.empty() ? input + ": " : "") + "passed over: " + note});
  for (const Truncated& lost : loaded->trace.truncated)
    print_notes({input + ": from byte " + std::to_string(lost.offset) + " on: " + lost.why});
  const Result<void> written = write(*loaded, *form, *output);
  if (!written) return failed(written.error());
  if (json) std::cout << cli::json_text(answer(*inputs, *loaded, *form, *output));
  return 0;
}

}  // namespace shard::commands
