// `shardscope COMMAND`: which commands there are, which program runs each, and handing over to the program beside this.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/result.h"

namespace shard::cli {

/// A command of the whole family, whichever program runs it.
struct KnownCommand {
  std::string_view name;
  std::string_view program;       ///< the binary that runs it
  std::string_view summary;       ///< one line that also says how it differs from commands like it
  std::string_view does{};        ///< "predicts": said of those that are easily taken for each other
  bool in_this_version = true;    ///< else refused, and not advertised
  std::string_view moves_with{};  ///< an option, without dashes, with which `moves_to` runs it instead
  std::string_view moves_to{};
  std::string_view moves_also_with{};  ///< a second such option
};

/// All commands, in the order help lists them.
[[nodiscard]] std::span<const KnownCommand> known_commands();

/// What a process's exit code says, in words.
[[nodiscard]] std::string_view exit_codes();

/// Runs one command on the arguments after its name; returns the process's exit code.
using Run = std::function<int(std::span<const std::string> arguments)>;

/// What main() is to do.
struct Decision {
  enum class Kind {
    run,        ///< call `run(arguments)` and return what it returns
    hand_over,  ///< hand_over(program, command, arguments)
    print,      ///< print `text` on stdout and return 0
  };
  Kind kind = Kind::print;
  std::string text;
  std::string command;
  std::string program;
  Run run;
  std::vector<std::string> arguments;
};

/// One binary of the family.
class Program {
 public:
  /// `name` is this binary's ("shardscope"), as in the list.
  Program(std::string name, std::string version, std::span<const KnownCommand> commands = known_commands());

  /// Binds a listed command to the code that runs it here.
  void add(std::string_view command, Run run);

  /// Decides on the process's arguments (without argv[0]): --help, --version, help (the questions), help COMMAND [all],
  /// help TOPIC (questions.h), help words, help WORD (words.h), each before those behind it, or a command. Errc::usage
  /// with the closest match for no command or an unknown one; Errc::unavailable for one of this binary that was not
  /// bound.
  [[nodiscard]] Result<Decision> decide(std::span<const std::string> arguments) const;

  [[nodiscard]] std::string help() const;

 private:
  /// Can it be run from here, or handed over? What cannot is neither listed nor suggested.
  [[nodiscard]] bool offers(const KnownCommand& command) const;
  [[nodiscard]] std::vector<std::string> offered() const;
  [[nodiscard]] Result<Decision> decide_help(std::span<const std::string> topic) const;

  std::string name_;
  std::string version_;
  std::span<const KnownCommand> commands_;
  std::map<std::string, Run, std::less<>> runs_;
};

/// Replaces this process by `program` from the folder of the running binary, with the arguments COMMAND ARGUMENTS....
/// Returns only on failure: Errc::unavailable when the program is not there or cannot be started. Flush streams before.
[[nodiscard]] Error hand_over(const std::string& program, const std::string& command,
                              std::span<const std::string> arguments);

}  // namespace shard::cli
