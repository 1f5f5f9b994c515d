// `shardscope completion` and `shardscope man`: what the commands say of themselves, for shells and for man.
#include <filesystem>
#include <iostream>

#include "sim/cli/closest.h"
#include "sim/cli/completion.h"
#include "sim/cli/dispatch.h"
#include "sim/cli/man_page.h"
#include "sim/commands/commands.h"
#include "sim/commands/printing.h"
#include "traces/base/output_file.h"

namespace shard::commands {
namespace {

constexpr const char* kCompletionDetails =
    R"(In bash, 'source <(shardscope completion bash)', or write it to ~/.local/share/bash-completion/completions/shardscope;
in zsh write it to a file _shardscope in a directory of fpath. 'make install' puts both where shells look for them.

Examples:
  shardscope completion bash > shardscope
  shardscope completion zsh > _shardscope
)";

constexpr const char* kManDetails =
    R"(Without a command, the page of shardscope itself. 'shardscope man simulate | man -l -' shows one; 'make install' puts
all of them where man looks for them.

Examples:
  shardscope man simulate > shardscope-simulate.1
  shardscope man --all pages
)";

/// Without a command, the page of shardscope itself.
std::filesystem::path page_in(const std::filesystem::path& folder, std::string_view command) {
  return folder / ("shardscope" + (command.empty() ? "" : "-" + std::string(command)) + ".1");
}

Result<void> write_pages(const std::string& directory, const std::vector<cli::CommandDescription>& all) {
  std::error_code fault;
  std::filesystem::create_directories(directory, fault);
  if (fault) return Error{Errc::cannot_create, fault.message(), directory, "a directory that can be made"};
  if (auto done = write_file(page_in(directory, ""), cli::man_page(all)); !done) return done;
  for (const cli::CommandDescription& each : all)
    if (auto done = write_file(page_in(directory, each.name), cli::man_page(each, all)); !done) return done;
  return {};
}

}  // namespace

int completion_command(std::span<const std::string> arguments) {
  cli::Command command("shardscope", "completion", "prints what completes commands, options and values in a shell",
                       kCompletionDetails);
  std::string shell;
  command.add_positional("bash|zsh", &shell, "the shell").required();
  if (const auto code = parsed(command, arguments)) return *code;
  const bool zsh = shell == "zsh";
  if (!zsh && shell != "bash")
    return failed({Errc::usage, "'" + shell + "' is not a shell that this is made for", "", "bash or zsh"});
  const auto all = cli::describe_commands(cli::own_path());
  if (!all) return failed(all.error());
  std::cout << (zsh ? cli::zsh_completion(*all) : cli::bash_completion(*all));
  return 0;
}

int man_command(std::span<const std::string> arguments) {
  std::string name;
  std::string directory;
  cli::Command command("shardscope", "man", "prints a command's manual page", kManDetails);
  command.add_positional("COMMAND", &name, "whose page").known_names([] {
    std::vector<std::string> names;
    for (const cli::KnownCommand& each : cli::known_commands()) names.emplace_back(each.name);
    return names;
  });
  command.group("Output")
      .add("all", &directory, "DIR", "write every page into this directory")
      .writes_into_directory([](const std::string& into) {
        std::vector<std::filesystem::path> pages{page_in(into, "")};
        for (const cli::KnownCommand& each : cli::known_commands()) pages.push_back(page_in(into, each.name));
        return pages;
      });
  if (const auto code = parsed(command, arguments)) return *code;
  if (!name.empty() && !directory.empty())
    return failed(
        {Errc::usage, "--all writes every page, and '" + name + "' asks for one", "", "leave one of them out"});
  const auto all = cli::describe_commands(cli::own_path());
  if (!all) return failed(all.error());
  if (!directory.empty()) {
    const Result<void> done = write_pages(directory, *all);
    return done ? 0 : failed(done.error());
  }
  if (name.empty()) {
    std::cout << cli::man_page(*all);
    return 0;
  }
  std::vector<std::string> names;
  for (const cli::CommandDescription& each : *all) {
    names.push_back(each.name);
    if (each.name != name) continue;
    std::cout << cli::man_page(each, *all);
    return 0;
  }
  return failed({Errc::usage, "unknown command '" + name + "'", "", cli::suggest(name, names)});
}

}  // namespace shard::commands
