// Roff of commands.
#include "sim/cli/man_page.h"

#include <array>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string_view>

#include "sim/cli/dispatch.h"
#include "sim/cli/questions.h"

namespace shard::cli {
namespace {

/// The code point of UTF-8 that begins at `at`, which moves behind it.
std::uint32_t utf8_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t first = byte(at++);
  const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : first >= 0xC0 ? 1 : 0;
  std::uint32_t code = more == 0 ? first : first & (0x3FU >> more);
  for (int i = 0; i < more && at < text.size(); ++i) code = code << 6U | (byte(at++) & 0x3FU);
  return code;
}

std::string roff_upper(std::string_view text) {
  std::string result;
  for (const char c : text) result += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return result;
}

std::string roff_title(const std::string& page) {
  return ".TH " + roff_text(roff_upper(page)) + " 1 \"\" \"shardscope\" \"Shardscope\"\n.nh\n.ad l\n";
}

/// Text of several lines. Those that begin with a blank stand as they are; an empty one begins a paragraph.
std::string roff_paragraphs(std::string_view text) {
  std::string result;
  std::istringstream in{std::string(text)};
  bool fixed = false;
  bool begins = false;
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) {
      begins = true;
      continue;
    }
    const bool indented = line.starts_with(' ');
    if (fixed && !indented) result += ".EE\n";
    if (begins && !result.empty()) result += ".PP\n";
    if (!fixed && indented) result += ".EX\n";
    fixed = indented;
    begins = false;
    result += roff_text(line) + "\n";
  }
  return result + (fixed ? ".EE\n" : "");
}

/// A paragraph's line breaks stay.
std::string roff_lines(std::string_view text) {
  std::string result;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) result += (result.empty() ? "" : ".br\n") + roff_text(line) + "\n";
  return result;
}

std::string roff_bold(std::string_view text) {
  return "\\fB" + roff_text(text) + "\\fR";
}

/// Long lists of words may be broken behind each bar.
std::string roff_italic(std::string_view text) {
  std::string roff;
  for (const char c : roff_text(text)) (roff += c) += c == '|' ? "\\:" : "";
  return "\\fI" + roff + "\\fR";
}

std::string roff_entry(const OptionDescription& option) {
  std::string head = roff_bold("--" + option.name);
  if (option.negatable) head += ", " + roff_bold("--no-" + option.name);
  for (const std::string& alias : option.aliases) head += ", " + roff_bold("--" + alias);
  if (!option.letter.empty()) head += ", " + roff_bold("-" + option.letter);
  if (!option.value_name.empty()) head += " " + roff_italic(option.value_name);
  std::string text = ".TP\n" + head + "\n" + roff_lines(option.help);
  std::string more;
  if (option.is_required) more += "Required. ";
  if (!option.default_text.empty()) more += "Default: " + option.default_text + ". ";
  if (option.several) more += "May be given several times. ";
  if (!option.list_separator.empty()) more += "Takes a list, with '" + option.list_separator + "' between its values. ";
  if (!more.empty()) text += ".br\n" + roff_text(more.substr(0, more.size() - 1)) + "\n";
  return text;
}

std::string exit_section() {
  return ".SH EXIT STATUS\n" + roff_text(exit_codes()) + "\n";
}

std::string man_page_name(const CommandDescription& command) {
  return command.program + "-" + command.name;
}

/// Every page but the one called `own`.
std::string see_also_section(std::string_view own, std::span<const CommandDescription> commands) {
  std::string text;
  const auto add = [&](const std::string& page) {
    if (page != own) text += (text.empty() ? "" : ",\n") + roff_bold(page) + "(1)";
  };
  add("shardscope");
  for (const CommandDescription& each : commands) add(man_page_name(each));
  return ".SH SEE ALSO\n" + text + "\n";
}

}  // namespace

std::string roff_text(std::string_view text) {
  std::string result;
  bool line_begins = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::uint32_t code = utf8_code_point(text, at);
    // At a line's begin these ask roff for something.
    if (line_begins && (code == '.' || code == '\'')) result += "\\&";
    line_begins = code == '\n';
    if (code >= 0x80) {
      std::array<char, 16> name{};
      std::snprintf(name.data(), name.size(), "\\[u%04X]", static_cast<unsigned>(code));
      result += name.data();
      continue;
    }
    switch (static_cast<char>(code)) {
      case '\\': result += "\\e"; break;
      case '-': result += "\\-"; break;
      case '~': result += "\\(ti"; break;
      case '^': result += "\\(ha"; break;
      case '`': result += "\\(ga"; break;
      case '\'': result += "\\(aq"; break;
      case '"': result += "\\(dq"; break;
      default: result += static_cast<char>(code);
    }
  }
  return result;
}

std::string man_page(std::span<const CommandDescription> commands) {
  std::string text = roff_title("shardscope") +
                     ".SH NAME\nshardscope \\- plans, predicts and runs sharded training\n"
                     ".SH SYNOPSIS\n.B shardscope\n.I COMMAND\n[options]\n.br\n.B shardscope help\n[\\fITOPIC\\fR]\n"
                     ".SH DESCRIPTION\nPlans, predicts and runs sharded (ZeRO, chunk\\-based) training, and shows that "
                     "what it predicted is what happened.\n.SH COMMANDS\n";
  for (const CommandDescription& each : commands)
    text += ".TP\n" + roff_bold(man_page_name(each)) + "(1)\n" + roff_text(each.summary) + "\n";
  text += ".SH QUESTIONS\n" + roff_bold("shardscope help") + " " + roff_italic("TOPIC") + " answers a question:\n";
  for (const Question& each : questions())
    text += ".TP\n" + roff_bold(each.topic) + "\n" + roff_text(each.question) + "\n";
  return text + exit_section() + see_also_section("shardscope", commands);
}

std::string man_page(const CommandDescription& command, std::span<const CommandDescription> commands) {
  const std::string page = man_page_name(command);
  std::string text = roff_title(page) + ".SH NAME\n" + roff_text(page) + " \\- " + roff_text(command.summary) +
                     "\n.SH SYNOPSIS\n" + roff_bold(command.program + " " + command.name) + "\n";
  for (const OptionDescription& each : command.positionals)
    text += (each.is_required ? "" : "[") + roff_italic(each.name) + (each.several ? "..." : "") +
            (each.is_required ? "" : "]") + "\n";
  text += "[options]\n" + (command.followed_by.empty() ? "" : roff_text(command.followed_by) + "\n");
  const std::size_t examples = command.details.find("Examples:\n");
  text += ".SH DESCRIPTION\n";
  text += command.details.empty() || examples == 0
              ? roff_text(command.summary) + ".\n"
              : roff_paragraphs(std::string_view(command.details).substr(0, examples));
  if (!command.positionals.empty()) text += ".SH ARGUMENTS\n";
  for (const OptionDescription& each : command.positionals)
    text += ".TP\n" + roff_italic(each.name) + "\n" + roff_lines(each.help);
  text += ".SH OPTIONS\n";
  for (const GroupDescription& group : command.groups) {
    text += ".SS " + roff_text(group.title) + "\n";
    for (const OptionDescription& each : group.options) text += roff_entry(each);
  }
  text += exit_section();
  if (examples != std::string::npos)
    text += ".SH EXAMPLES\n" + roff_paragraphs(std::string_view(command.details).substr(examples + 10));
  return text + see_also_section(page, commands);
}

}  // namespace shard::cli
