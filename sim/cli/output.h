// Where results and messages go and how they look: format, colour, width, the one way an error is printed.
#pragma once

#include <functional>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "traces/base/result.h"

namespace shard::cli {

class Command;

enum class Format { table, json, csv, markdown };

/// What a stream can show.
struct Style {
  bool terminal = false;
  bool color = false;
  bool unicode = false;
  int width = 100;  ///< columns
};

/// Looks up an environment variable; nullptr when it is not set.
using Environment = std::function<const char*(const char* name)>;

/// Colour: a terminal, NO_COLOR unset or empty, TERM not "dumb". Unicode: the first set one of LC_ALL, LC_CTYPE, LANG
/// names UTF-8. Width: the terminal's, else 100.
[[nodiscard]] Style style_for(bool terminal, int terminal_width, const Environment& environment);
/// The style of an open file descriptor, from the process's own environment.
[[nodiscard]] Style style_of(int descriptor);

/// The options every command with a result has.
struct OutputOptions {
  bool json = false;
  Format format = Format::table;
};
/// Declares --json and --format table|json|csv|markdown in the group "Output".
void add_output_options(Command& command, OutputOptions& options);
/// The form asked for, after Command::parse. Errc::contradiction for --json with another --format.
[[nodiscard]] Result<Format> chosen_format(const Command& command, const OutputOptions& options);

/// {"schema_version": 1, "command": COMMAND}, to be filled with the result.
[[nodiscard]] nlohmann::ordered_json json_document(const std::string& command);
/// Indented, with a final newline. Text that is not UTF-8 (a file's name) is shown with replacement characters; control
/// characters are escaped, so that it can be shown on a terminal.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& value);

/// Prints text that may hold names from files, made printable (traces/base/printable.h) on any stream; a program's own
/// make all text so (screen.h).
void print(std::ostream& out, std::string_view text);

/// The process was asked for JSON: the first error of its command is to be on stdout, too, as the object of
/// error_json(), but for what an answer says for itself (does_not_fit, check_failed). Said once, before anything runs,
/// by run_program().
void say_errors_in_json();
/// Whether this error is that one; true at most once.
[[nodiscard]] bool take_error_in_json(const Error& error);
/// {"schema_version", "error": {"code", "exit_code", "what", "where", "help"}}: the enumerator's word, and null for a
/// part that the error does not have.
[[nodiscard]] nlohmann::ordered_json error_json(const Error& error);

/// Prints "shardscope: WHERE: WHAT" and "  try: HELP", and returns the process's exit code. For main() only.
/// In one write, so that ranks that share a stream do not cut each other's lines.
int print_error(std::ostream& out, const Error& error, const Style& style = {});

/// Flushes; Errc::io when something could not be written (a full disk).
[[nodiscard]] Result<void> flush(std::ostream& out);

/// The last thing main() does: flushes what was printed. `code`, or 74 with a message on `errors` when the result could
/// not be written (a full disk).
[[nodiscard]] int finish(std::ostream& out, std::ostream& errors, int code);

}  // namespace shard::cli
