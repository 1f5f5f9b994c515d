// What every command does around its own work.
#include "sim/commands/printing.h"

#include <algorithm>
#include <cctype>
#include <iostream>
#include <string_view>

#include "sim/cli/contradiction.h"

namespace shard::commands {
namespace {

/// As a shell takes it for one word.
std::string one_word(const std::string& text) {
  const bool plain = std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("_-./:=,+").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain && !text.empty()) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace

std::optional<int> parsed(cli::Command& command, std::span<const std::string> arguments) {
  const Result<cli::Outcome> outcome = command.parse(arguments);
  if (!outcome) return failed(outcome.error());
  if (*outcome == cli::Outcome::run) return std::nullopt;
  std::cout << command.help(cli::style_of(1).width);
  return 0;
}

int failed(const Error& error) {
  if (cli::take_error_in_json(error)) std::cout << cli::json_text(cli::error_json(error));
  return cli::print_error(std::cerr, error, cli::style_of(2));
}

Result<cli::Format> document_format(const cli::Command& command, const cli::OutputOptions& output) {
  Result<cli::Format> format = cli::chosen_format(command, output);
  if (format && (*format == cli::Format::csv || *format == cli::Format::markdown))
    return cli::contradiction(
        command.describe("format") + " holds one table, and the result of " + command.name() + " is several", "--json");
  return format;
}

std::string typed_option(const std::string& name, const std::string& value) {
  if (value == "true") return "--" + name;
  if (value == "false") return "--no-" + name;
  return "--" + name + " " + one_word(value);
}

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) cli::print(std::cerr, "note: " + note + '\n');
}

}  // namespace shard::commands
