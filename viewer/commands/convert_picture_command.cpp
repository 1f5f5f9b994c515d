// `shardscope convert` to PNG: the picture that view would show.
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
  std::string output;
  Form to = Form::png;
  ViewOptions options;
  cli::Command command("shardscope", "convert", "writes a picture of a trace", kConvertPictureDetails);
  command.add_positional("TRACE", &input, "a trace of any tool that inspect knows")
      .required()
      .reads_file(trace_and_notes);
  command.add_positional("OUTPUT.png", &output, "the file to write").required().writes_file();
  cli::Group group = command.group("Convert");
  group.add_choice<Form>("to", &to, {{"png", Form::png, "a picture"}}, "the form to write");
  group.add_flag("incomplete", &sources.incomplete, commands::kIncompleteHelp);
  add_view_options(command, options);
  if (const auto code = commands::parsed(command, arguments)) return *code;
  sources.traces = {input};
  return take_screenshot(sources, options, output, "convert", false);
}

}  // namespace shard::view
