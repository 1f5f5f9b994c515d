// `shardscope convert` to PNG: the picture that view would show.
#include "sim/cli/output_path.h"
#include "sim/commands/printing.h"
#include "viewer/commands/commands.h"
#include "viewer/commands/notes_file.h"
#include "viewer/commands/screenshot.h"

namespace shard::view {
namespace {

constexpr const char* kConvertPictureDetails =
    R"(Draws one picture of a trace, as 'view --screenshot' does, without a display. The other forms are written by
'shardscope convert', which needs no viewer.

Examples:
  shardscope convert measured.sst measured.png
  shardscope convert measured.sst memory.png --pane memory --theme light --size 1200x500
)";

enum class Form { png };

}  // namespace

int convert_picture_command(std::span<const std::string> arguments) {
  Sources sources;
  std::string input;
  cli::OutputPath output_path;
  Form to = Form::png;
  bool json = false;
  ViewOptions options;
  cli::Command command("shardscope", "convert", "writes a picture of a trace", kConvertPictureDetails);
  command.add_positional("TRACE", &input, "a trace of any tool that inspect knows")
      .required()
      .reads_file(trace_and_notes);
  cli::Group group = command.group("Convert");
  cli::add_output_path(command, group, output_path, "OUTPUT.png");
  group.add_choice<Form>("to", &to, {{"png", Form::png, "a picture"}}, "the form to write");
  group.add_flag("incomplete", &sources.incomplete, commands::kIncompleteHelp);
  group.add_flag("json", &json, "what was drawn, as 'view --screenshot --json' says it");
  add_view_options(command, options);
  if (const auto code = commands::parsed(command, arguments)) return *code;
  const Result<std::string> output = output_path.chosen();
  if (!output) return commands::failed(output.error());
  sources.traces = {input};
  return take_screenshot(sources, options, *output, "convert", json);
}

}  // namespace shard::view
