// Formats, styles and the printed form of an error.
#include "sim/cli/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string_view>

#include "sim/cli/command_line.h"
#include "sim/cli/screen.h"
#include "traces/base/printable.h"

namespace shard::cli {
namespace {

std::atomic<bool> error_wanted_in_json = false;

bool names_utf8(std::string_view locale) {
  std::string folded;
  for (const char c : locale) {
    if (c != '-') folded += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return folded.find("utf8") != std::string::npos;
}

}  // namespace

Style style_for(bool terminal, int terminal_width, const Environment& environment) {
  const auto set = [&environment](const char* name) -> std::string_view {
    const char* value = environment(name);
    return value == nullptr ? std::string_view() : std::string_view(value);
  };
  Style style;
  style.terminal = terminal;
  style.color = terminal && set("NO_COLOR").empty() && set("TERM") != "dumb" && !set("TERM").empty();
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (set(name).empty()) continue;
    style.unicode = names_utf8(set(name));
    break;
  }
  if (terminal && terminal_width > 0) style.width = terminal_width;
  return style;
}

Style style_of(int descriptor) {
  const bool terminal = isatty(descriptor) == 1;
  winsize size{};
  const int width = terminal && ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
  return style_for(terminal, width, [](const char* name) { return std::getenv(name); });
}

void add_output_options(Command& command, OutputOptions& options) {
  Group group = command.group("Output");
  group.add_flag("json", &options.json, "the result as one JSON object on stdout (the same as --format json)")
      .common()
      .once()
      .may_differ("rank 0 alone prints a result");
  group
      .add_choice<Format>(
          "format", &options.format,
          {{"table", Format::table}, {"json", Format::json}, {"csv", Format::csv}, {"markdown", Format::markdown}},
          "form of the result")
      .common()
      .once()
      .may_differ("rank 0 alone prints a result");
}

Result<Format> chosen_format(const Command& command, const OutputOptions& options) {
  if (!options.json) return options.format;
  if (command.given("format") && options.format != Format::json) {
    return Error{Errc::contradiction, command.describe("json") + " contradicts " + command.describe("format"), "",
                 "leave one of them out"};
  }
  return Format::json;
}

nlohmann::ordered_json json_document(const std::string& command) {
  return {{"schema_version", 1}, {"command", command}};
}

std::string json_text(const nlohmann::ordered_json& value) {
  const std::string text = value.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  return printable(text, Escape::json);
}

void print(std::ostream& out, std::string_view text) {
  out << printable(text);
}

void say_errors_in_json() {
  error_wanted_in_json = true;
}

bool take_error_in_json(const Error& error) {
  // What does not fit, or differs, is an answer, and has its own object.
  const bool answer = error.code == Errc::does_not_fit || error.code == Errc::check_failed;
  return !answer && error_wanted_in_json.exchange(false);
}

nlohmann::ordered_json error_json(const Error& error) {
  const auto text = [](const std::string& part) {
    return part.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(part);
  };
  return {{"schema_version", 1},
          {"error",
           {{"code", to_string(error.code)},
            {"exit_code", exit_code(error.code)},
            {"what", error.what},
            {"where", text(error.where)},
            {"help", text(error.help)}}}};
}

int print_error(std::ostream& out, const Error& error, const Style& style) {
  Styled text;
  if (style.color)
    text.add(Mark::alarm).add("shardscope:").add(Mark::plain).add(" ");
  else
    text.add("shardscope: ");
  out << text.add(to_string(error) + "\n") << std::flush;
  return exit_code(error.code);
}

Result<void> flush(std::ostream& out) {
  if (out.flush()) return {};
  return Error{Errc::io, "the result could not be written", "stdout", "is the disk full?"};
}

int finish(std::ostream& out, std::ostream& errors, int code) {
  const Result<void> written = flush(out);
  if (written) return code;
  const int lost = print_error(errors, written.error());
  return code == 0 ? lost : code;
}

}  // namespace shard::cli
