// What every command does around its own work.
#include "sim/commands/printing.h"

#include "sim/cli/contradiction.h"

namespace shard::commands {

std::optional<int> parsed(cli::Command& command, std::span<const std::string> arguments) {
  const Result<cli::Outcome> outcome = command.parse(arguments);
  if (!outcome) return failed(outcome.error());
  if (*outcome == cli::Outcome::run) return std::nullopt;
  std::cout << command.help(cli::style_of(1).width);
  return 0;
}

int failed(const Error& error) {
  return cli::print_error(std::cerr, error, cli::style_of(2));
}

Result<cli::Format> document_format(const cli::Command& command, const cli::OutputOptions& output) {
  Result<cli::Format> format = cli::chosen_format(command, output);
  if (format && (*format == cli::Format::csv || *format == cli::Format::markdown))
    return cli::contradiction(
        command.describe("format") + " holds one table, and the result of " + command.name() + " is several", "--json");
  return format;
}

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) cli::print(std::cerr, "note: " + note + '\n');
}

}  // namespace shard::commands
