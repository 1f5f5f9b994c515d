// The interpreter of what a shell does between commands.
#include "sim/foreign/shell_script.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "sim/foreign/python_tokens.h"
#include "sim/foreign/shell_condition.h"
#include "sim/foreign/shell_sbatch.h"
#include "sim/foreign/shell_tokens.h"
#include "sim/foreign/shell_variables.h"

namespace shard::foreign {
namespace {

using ShKind = ShellTokenKind;
/// Whether a command succeeds; nothing where only a run knows.
using Status = std::optional<bool>;

constexpr int kMaxShellDepth = 48;
constexpr std::size_t kMaxCommands = 10'000;
/// Tokens of called functions together: a long one may be called often.
constexpr std::size_t kMaxWalked = 1'000'000;

/// What a run of commands is read from.
struct Stream {
  std::shared_ptr<const std::vector<ShellToken>> tokens;
  std::size_t at = 0;
  [[nodiscard]] const ShellToken& now(std::size_t ahead = 0) const {
    return (*tokens)[std::min(at + ahead, tokens->size() - 1)];
  }
};

class ShellReader {
 public:
  ShellReader(std::string_view file) : file_(file), variables_(file) {}

  Result<ShellScript> run(std::string_view source) {
    if (source.size() > kMaxScriptBytes) return fault("more than 1 MiB of script", 1);
    ShellText text;
    text.reserve(source.size());
    int line = 1;
    for (const char c : source) {
      text.push_back({.letter = c, .splits = false, .line = line, .missing = 0});
      line += c == '\n' ? 1 : 0;
    }
    script_.sbatch = sbatch_lines(source);
    for (const auto& [name, value] : script_.sbatch)
      if (name == "nodes")
        for (const char* each : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"})
          variables_.set(each, shell_text(value.text, value.line));
    interpret(text, true, 0);
    if (error_) return *error_;
    script_.missing = variables_.missing();
    return std::move(script_);
  }

 private:
  Error fault(std::string what, int line) {
    if (!error_)
      error_ = Error{.code = Errc::malformed,
                     .what = std::move(what),
                     .where = std::string(file_) + ":" + std::to_string(line),
                     .help = "close it, or restore the file's end"};
    return *error_;
  }
  void keep(const Error& error) {
    if (!error_) error_ = error;
  }

  void interpret(const ShellText& text, bool runs, int depth) {
    Result<std::vector<ShellToken>> tokens = shell_tokens(text, file_);
    if (!tokens) return keep(tokens.error());
    Stream in{.tokens = std::make_shared<const std::vector<ShellToken>>(std::move(*tokens))};
    while (in.now().kind != ShKind::end && !error_) {
      const std::size_t before = in.at;
      list(in, runs, depth);
      if (in.at == before) {  // ")" or "}" or "fi" that closes nothing
        if (depth == 0) fault("'" + shown(in.now()) + "' closes nothing", in.now().line);
        ++in.at;
      }
    }
  }

  static std::string shown(const ShellToken& token) {
    return token.kind == ShKind::word ? letters(token.raw) : token.op;
  }
  static bool is_op(const Stream& in, std::string_view op, std::size_t ahead = 0) {
    return in.now(ahead).kind == ShKind::op && in.now(ahead).op == op;
  }
  static bool is_word(const Stream& in, std::string_view word, std::size_t ahead = 0) {
    const ShellToken& token = in.now(ahead);
    return token.kind == ShKind::word && token.raw.size() == word.size() && letters(token.raw) == word;
  }
  static bool take_op(Stream& in, std::string_view op) {
    if (!is_op(in, op)) return false;
    ++in.at;
    return true;
  }
  static bool take_word(Stream& in, std::string_view word) {
    if (!is_word(in, word)) return false;
    ++in.at;
    return true;
  }
  static void skip_lines(Stream& in) {
    while (is_op(in, "\n") || is_op(in, ";")) ++in.at;
  }

  static bool closes(const Stream& in) {
    if (in.now().kind == ShKind::end) return true;
    if (in.now().kind == ShKind::op)
      return in.now().op == ")" || in.now().op == ";;" || in.now().op == ";&" || in.now().op == ";;&";
    static constexpr auto kClosing =
        std::to_array<std::string_view>({"fi", "else", "elif", "then", "do", "done", "esac", "}"});
    return std::any_of(kClosing.begin(), kClosing.end(), [&](std::string_view each) { return is_word(in, each); });
  }

  /// Commands up to what closes them; the status of the last.
  Status list(Stream& in, bool runs, int depth) {
    Status status = true;
    if (depth > kMaxShellDepth) fault("blocks are nested deeper than " + std::to_string(kMaxShellDepth), in.now().line);
    while (!error_) {
      while (is_op(in, "\n") || is_op(in, ";") || is_op(in, "&")) ++in.at;
      if (closes(in)) break;
      status = chain(in, runs, depth);
    }
    return status;
  }

  /// a && b || c
  Status chain(Stream& in, bool runs, int depth) {
    Status status = pipeline(in, runs, depth);
    while (!error_ && (is_op(in, "&&") || is_op(in, "||"))) {
      const bool both = is_op(in, "&&");
      ++in.at;
      while (is_op(in, "\n")) ++in.at;
      const bool goes_on = both ? status.value_or(true) : !status.value_or(true);
      const Status next = pipeline(in, runs && goes_on, depth);
      if (goes_on) status = status ? next : Status{};
    }
    return status;
  }

  Status pipeline(Stream& in, bool runs, int depth) {
    bool negated = false;
    while (take_word(in, "!")) negated = !negated;
    take_word(in, "time");
    Status status = command(in, runs, depth);
    while (!error_ && (is_op(in, "|") || is_op(in, "|&"))) {
      ++in.at;
      while (is_op(in, "\n")) ++in.at;
      static_cast<void>(command(in, runs, depth));
      status = std::nullopt;
    }
    return negated && status ? !*status : status;
  }

  Status command(Stream& in, bool runs, int depth) {
    if (closes(in)) return fault("a command is missing", in.now().line), Status{};
    const int line = in.now().line;
    Status status;
    if (in.now().kind == ShKind::arithmetic) {
      const ShellText raw = in.now().raw;
      ++in.at;
      if (runs) status = arithmetic_status(raw);
    } else if (take_op(in, "(")) {
      status = list(in, runs, depth + 1);
      close_op(in, ")", "'('", line);
    } else if (take_word(in, "{")) {
      status = list(in, runs, depth + 1);
      close(in, "}", "'{'", line);
    } else if (take_word(in, "if")) {
      if_command(in, runs, depth, line);
    } else if (take_word(in, "for") || take_word(in, "select")) {
      for_command(in, runs, depth, line);
    } else if (take_word(in, "while") || take_word(in, "until")) {
      list(in, false, depth + 1);
      body(in, false, depth, line);
    } else if (take_word(in, "case")) {
      case_command(in, runs, depth, line);
    } else if (is_word(in, "[[")) {
      status = double_bracket(in, runs);
    } else if (is_function(in)) {
      function(in, line, depth);
    } else {
      return simple(in, runs, depth);
    }
    redirects(in);
    return status;
  }

  void redirects(Stream& in) {
    while (in.now().kind == ShKind::redirect) {
      ++in.at;
      if (in.now().kind == ShKind::word) ++in.at;
    }
  }

  void close(Stream& in, std::string_view word, std::string_view opened, int line) {
    if (!take_word(in, word)) fault(std::string(opened) + " is never closed with '" + std::string(word) + "'", line);
  }
  void close_op(Stream& in, std::string_view op, std::string_view opened, int line) {
    if (!take_op(in, op)) fault(std::string(opened) + " is never closed", line);
  }

  Status arithmetic_status(const ShellText& raw) {
    const Result<ShellText> value = variables_.arithmetic(raw, "((" + letters(raw) + "))");
    if (!value) return keep(value.error()), Status{};
    const std::optional<std::string> known = variables_.known(*value);
    return known ? Status(*known != "0") : Status{};
  }

  void if_command(Stream& in, bool runs, int depth, int line) {
    bool done = false;
    while (!error_) {
      const Status status = list(in, runs && !done, depth + 1);
      const bool taken = runs && !done && status.value_or(false);
      close(in, "then", "'if'", line);
      list(in, taken, depth + 1);
      done = done || taken;
      if (take_word(in, "elif")) continue;
      if (take_word(in, "else")) list(in, runs && !done, depth + 1);
      close(in, "fi", "'if'", line);
      return;
    }
  }

  /// do ... done, or { ... }
  void body(Stream& in, bool runs, int depth, int line) {
    skip_lines(in);
    if (take_word(in, "{")) {
      list(in, runs, depth + 1);
      return close(in, "}", "'{'", line);
    }
    close(in, "do", "a loop", line);
    list(in, runs, depth + 1);
    close(in, "done", "a loop", line);
  }

  void for_command(Stream& in, bool runs, int depth, int line) {
    if (in.now().kind == ShKind::arithmetic) {
      ++in.at;
      return body(in, runs, depth, line);
    }
    const std::string name = shown(in.now());
    ++in.at;
    skip_lines(in);
    std::vector<ShellText> values;
    if (take_word(in, "in")) {
      for (; in.now().kind == ShKind::word && !error_; ++in.at) {
        if (!runs || !values.empty()) continue;
        Result<std::vector<ShellText>> words = variables_.split(in.now().raw);
        if (!words) return keep(words.error());
        values = std::move(*words);
      }
    } else {
      values = variables_.positional;
    }
    if (runs && !values.empty()) variables_.set(name, values.front());
    body(in, runs && !values.empty(), depth, line);
  }

  void case_command(Stream& in, bool runs, int depth, int line) {
    const Result<ShellText> word = variables_.expand(in.now().raw);
    if (!word) return keep(word.error());
    const std::optional<std::string> value = runs ? variables_.known(*word) : std::nullopt;
    ++in.at;
    skip_lines(in);
    if (!take_word(in, "in")) return void(fault("'case' without 'in'", line));
    bool done = false;
    while (!error_) {
      skip_lines(in);
      if (take_word(in, "esac")) return;
      if (in.now().kind == ShKind::end) return void(fault("'case' is never closed with 'esac'", line));
      take_op(in, "(");
      bool fits = false;
      while (!is_op(in, ")") && in.now().kind != ShKind::end) {
        const std::string pattern = in.now().kind == ShKind::word ? unquoted(in.now().raw) : "";
        fits =
            fits || pattern == "*" || (value && in.now().kind == ShKind::word && shell_pattern_fits(pattern, *value));
        ++in.at;
      }
      close_op(in, ")", "a pattern of 'case'", line);
      list(in, runs && fits && !done, depth + 1);
      done = done || fits;
      if (in.now().kind == ShKind::op && in.now().op.starts_with(";"))
        ++in.at;
      else if (!is_word(in, "esac"))
        return void(fault("'case' is never closed with 'esac'", line));
    }
  }

  static std::string unquoted(const ShellText& raw) {
    std::string text = letters(raw);
    std::erase_if(text, [](char c) { return c == '"' || c == '\''; });
    return text;
  }

  Status double_bracket(Stream& in, bool runs) {
    const int line = in.now().line;
    ++in.at;
    std::vector<ShellText> words;
    for (; !is_word(in, "]]") && !error_; ++in.at) {
      const ShellToken& token = in.now();
      if (token.kind == ShKind::end || is_op(in, "\n")) return fault("'[[' is never closed", line), Status{};
      if (token.kind != ShKind::word) {
        words.push_back(shell_text(token.op, token.line));
        continue;
      }
      if (!runs) continue;
      Result<ShellText> word = variables_.expand(token.raw);
      if (!word) return keep(word.error()), Status{};
      words.push_back(std::move(*word));
    }
    ++in.at;
    return runs ? shell_test(words, variables_) : Status{};
  }

  static bool is_function(const Stream& in) {
    if (in.now().kind != ShKind::word) return false;
    if (is_word(in, "function")) return in.now(1).kind == ShKind::word;
    return is_op(in, "(", 1) && is_op(in, ")", 2);
  }

  void function(Stream& in, int line, int depth) {
    if (depth > kMaxShellDepth)
      return void(fault("functions are nested deeper than " + std::to_string(kMaxShellDepth), line));
    take_word(in, "function");
    const std::string name = shown(in.now());
    ++in.at;
    if (take_op(in, "(")) close_op(in, ")", "'('", line);
    skip_lines(in);
    const Stream body = in;
    static_cast<void>(command(in, false, depth + 1));
    functions_.insert_or_assign(name, body);
  }

  /// The name and, of what runs, the value.
  std::optional<std::pair<std::string, ShellText>> assigned(const ShellText& raw) {
    const std::size_t value_at = assigned_at(raw);
    if (value_at == 0) return std::nullopt;
    std::string name = letters({raw.begin(), raw.begin() + static_cast<std::ptrdiff_t>(value_at) - 1});
    Result<ShellText> value = variables_.expand({raw.begin() + static_cast<std::ptrdiff_t>(value_at), raw.end()});
    if (!value) return keep(value.error()), std::nullopt;
    return std::pair(std::move(name), std::move(*value));
  }

  void assign(const std::string& name, ShellText value) {
    if (name.ends_with('+')) return variables_.append(name.substr(0, name.size() - 1), value);
    variables_.set(name, std::move(value));
  }

  void assign_list(const ShellToken& token) {
    std::vector<ShellText> values;
    for (const ShellText& item : token.items) {
      Result<std::vector<ShellText>> words = variables_.split(item);
      if (!words) return keep(words.error());
      std::move(words->begin(), words->end(), std::back_inserter(values));
    }
    if (token.op.ends_with('+')) return variables_.append_list(token.op.substr(0, token.op.size() - 1), values);
    variables_.set_list(token.op, std::move(values));
  }

  Status simple(Stream& in, bool runs, int depth) {
    std::vector<std::pair<std::string, ShellText>> environment;
    std::vector<ShellText> words;
    bool declares = false;
    const std::size_t first = in.at;
    for (; !error_; ++in.at) {
      const ShellToken& token = in.now();
      if (token.kind == ShKind::redirect) {
        if (in.now(1).kind == ShKind::word) ++in.at;
      } else if (token.kind == ShKind::array) {
        if (runs) assign_list(token);
      } else if (token.kind == ShKind::word) {
        if (!runs) continue;
        if (words.empty() || declares)
          if (std::optional<std::pair<std::string, ShellText>> one = assigned(token.raw)) {
            environment.push_back(std::move(*one));
            continue;
          }
        Result<std::vector<ShellText>> more = variables_.split(token.raw);
        if (!more) return keep(more.error()), Status{};
        const bool is_command = words.empty() && !more->empty();
        std::move(more->begin(), more->end(), std::back_inserter(words));
        if (is_command) declares = is_declaration(letters(words[0]));
      } else {
        break;
      }
    }
    if (in.at == first)
      return fault("'" + shown(in.now()) + "' stands where a command belongs", in.now().line), Status{};
    if (!runs) return Status{};
    if (words.empty() || declares) {
      for (auto& [name, value] : environment) assign(name, std::move(value));
      return true;
    }
    return execute(environment, words, depth);
  }

  static bool is_declaration(std::string_view command) {
    return command == "export" || command == "declare" || command == "local" || command == "readonly" ||
           command == "typeset";
  }

  Status execute(const std::vector<std::pair<std::string, ShellText>>& environment, const std::vector<ShellText>& words,
                 int depth) {
    const std::string name = letters(words[0]);
    const std::span<const ShellText> rest = std::span(words).subspan(1);
    if (name == "true" || name == ":") return true;
    if (name == "false") return false;
    if (name == "[" || name == "test") {
      std::vector<ShellText> tested(rest.begin(), rest.end());
      if (name == "[" && !tested.empty() && letters(tested.back()) == "]") tested.pop_back();
      return shell_test(tested, variables_);
    }
    if (name == "unset") {
      for (const ShellText& each : rest) variables_.unset(letters(each));
      return true;
    }
    if (name == "eval") return nested(joined(rest), depth), Status(true);
    if ((name == "bash" || name == "sh") && rest.size() > 1 && letters(rest[0]).ends_with('c') &&
        letters(rest[0]).starts_with('-'))
      return nested(rest[1], depth), Status{};
    if (const auto function = functions_.find(name); function != functions_.end())
      return call(function->second, rest, depth);
    if (script_.commands.size() >= kMaxCommands) return fault("more commands than a launch script has", 1), Status{};
    ShellCommand command;
    for (const auto& [key, value] : environment) command.environment.emplace_back(key, variables_.word(value));
    for (const ShellText& each : words) command.words.push_back(variables_.word(each));
    script_.commands.push_back(std::move(command));
    embedded(rest, depth);
    return Status{};
  }

  /// srun ... bash -c "..."
  void embedded(std::span<const ShellText> rest, int depth) {
    for (std::size_t i = 0; i + 2 < rest.size(); ++i) {
      const std::string name = letters(rest[i]);
      const std::string flag = letters(rest[i + 1]);
      if ((name == "bash" || name == "sh" || name.ends_with("/bash")) && flag.starts_with('-') && flag.ends_with('c'))
        return nested(rest[i + 2], depth);
    }
  }

  static ShellText joined(std::span<const ShellText> words) {
    ShellText text;
    for (const ShellText& each : words) {
      if (!text.empty()) text.push_back({.letter = ' ', .splits = false, .line = text.back().line, .missing = 0});
      text.insert(text.end(), each.begin(), each.end());
    }
    return text;
  }

  /// Text that the shell reads again: what stands in it as missing is not read for variables a second time.
  void nested(const ShellText& text, int depth) {
    if (depth >= 8) return void(fault("commands within commands without end", text.empty() ? 1 : text[0].line));
    if ((interpreted_ += text.size()) > 1'000'000) return void(fault("commands within commands without end", 1));
    interpret(text, true, depth + 1);
  }

  Status call(Stream body, std::span<const ShellText> arguments, int depth) {
    // Recursion says nothing about a launch.
    if (depth > 16 || ++calls_ > 1000 || walked_ > kMaxWalked) return Status{};
    std::vector<ShellText> outer =
        std::exchange(variables_.positional, std::vector<ShellText>(arguments.begin(), arguments.end()));
    const std::size_t first = body.at;
    const Status status = command(body, true, depth + 1);
    walked_ += body.at - first;
    variables_.positional = std::move(outer);
    return status;
  }

  std::string_view file_;
  ShellVariables variables_;
  ShellScript script_{};
  std::map<std::string, Stream> functions_{};  ///< where their bodies begin
  std::size_t interpreted_ = 0;
  std::size_t calls_ = 0;
  std::size_t walked_ = 0;  ///< tokens of functions that were called
  std::optional<Error> error_{};
};

}  // namespace

Result<ShellScript> read_shell(std::string_view source, std::string_view file) {
  return ShellReader(file).run(source);
}

}  // namespace shard::foreign
