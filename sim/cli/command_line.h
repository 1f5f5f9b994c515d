// One command's options: declared once, bound to variables, read from the command line and from --config FILE.
//
//   struct Options { std::string model; int world_size = 1; Elems chunk{32 << 20}; UnitKind unit = UnitKind::module; };
//   Options o;
//   Command command("shardscope", "search", "finds the chunk size that wastes least", kDetailsWithExamples);
//   Group model = command.group("Model");
//   model.add("model", &o.model, "NAME|FILE", "a name, a config.json, or its directory").required();
//   Group sharding = command.group("Sharding");
//   sharding.add("world-size", &o.world_size, "N", "number of ranks").alias("ranks").least(1);
//   sharding.add("chunk-size", &o.chunk, "ELEMS", "elements of a chunk");
//   sharding.add_choice("unit", &o.unit, {{"tensor", UnitKind::tensor}, {"module", UnitKind::module}}, "what is
//   gathered"); auto outcome = command.parse(arguments);            // what follows the command's name if (!outcome)
//   return print_error(std::cerr, outcome.error()); if (*outcome == Outcome::help) { std::cout <<
//   command.help(terminal_width); return 0; }
//
// A variable's value when it is declared is the option's default. Nothing here prints or exits.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/cli/closest.h"
#include "sim/cli/file_options.h"
#include "sim/cli/values.h"
#include "traces/base/result.h"

namespace shard::cli {

/// Who gave an option its value; the later wins.
enum class Source { fallback, file, command_line };

/// Where a value came from: "default", "run.conf:3", "command line".
struct Origin {
  Source source = Source::fallback;
  std::string where = "default";
};

/// One enumerator of an option: its name, its value, and a line of help (may be empty).
template <class T>
struct Choice {
  std::string name;
  T value;
  std::string help = {};
};

/// Reads the text of one option. `where` names the option and where the text stands; errors repeat it.
using Reader = std::function<Result<void>(std::string_view text, std::string_view where, const Range& range)>;

/// The files that a value of an option stands for.
using FilesOf = std::function<std::vector<std::filesystem::path>(const std::string& text)>;

/// Which of the values that an option's text lists counts: its index.
using Choose = std::function<std::size_t(const std::string& option, const std::vector<std::string>& values)>;

/// Whether an option names files, and what the command does with them.
enum class FileUse { none, read, written, written_into };

/// What Command knows about an option (internal; use the handle Option).
struct OptionState {
  std::string name;
  std::vector<std::string> aliases;
  char letter = '\0';         ///< "-o" is the same; none as a rule
  std::string value_name;     ///< empty: a flag, which takes no value on the command line
  std::string kind = "text";  ///< of a value: "integer", "number" or "text", which sizes with units are, too
  std::string help;
  std::string default_text;  ///< as help prints it; empty: none
  bool is_positional = false;
  bool is_required = false;
  bool several = false;      ///< may be given more than once; each appends
  bool negatable = false;    ///< --no-NAME exists too
  bool is_common = false;    ///< shown by --help where there are too many to show them all
  bool is_once = false;      ///< takes one value where others take lists (Command::take_lists)
  bool takes_empty = false;  ///< empty text is a value
  char between = ',';        ///< what stands between the values of such a list
  FileUse file_use = FileUse::none;
  FilesOf files;  ///< none: the value is the path
  /// Names that a value may be, beside whatever else it may; none as a rule.
  std::vector<std::string> (*known_names)() = nullptr;
  Range range;
  std::vector<std::string> words;  ///< that a value may be, for which other tools have words of their own
  Reader read;
  std::function<std::string()> value;  ///< of the variable, as help prints values; none: the option's texts say it
  std::string may_differ;              ///< why ranks of one run need not agree about it; empty: they must
  std::function<void()> clear;         ///< for `several`: forgets the default before the first given value
  std::vector<std::string> texts;      ///< as given
  Origin origin;
  bool is_changed = false;  ///< by Command::change(): nothing else counts
};

/// The option as its user types it: "--trace", or the name of an argument that is no option.
[[nodiscard]] std::string spelled(const OptionState& state);

/// A handle for refining an option just declared.
class Option {
 public:
  explicit Option(OptionState& state) : state_(&state) {}
  /// A usage error when it is given nowhere.
  Option& required() { return state_->is_required = true, *this; }
  /// Another name for the same option.
  Option& alias(std::string name) { return state_->aliases.push_back(std::move(name)), *this; }
  /// "-o" for the same option: for those few that people write so everywhere.
  Option& letter(char letter) { return state_->letter = letter, *this; }
  /// Bounds of a number, inclusive; a value outside is a usage error.
  Option& least(double bound) { return state_->range.least = bound, *this; }
  Option& most(double bound) { return state_->range.most = bound, *this; }
  /// Words that a value may be: other tools' words for them are taken for them (foreign_options.h).
  Option& words(std::vector<std::string> words) { return state_->words = std::move(words), *this; }
  /// Names that a value may be, beside others: what shells complete.
  Option& known_names(std::vector<std::string> (*names)()) { return state_->known_names = names, *this; }
  /// One of those that --help shows where the command has more than fit on a screen; `--help all` shows the others too.
  Option& common() { return state_->is_common = true, *this; }
  /// Takes one value even where options take lists of them (Command::take_lists).
  Option& once() { return state_->is_once = true, *this; }
  /// Empty text is a value of its own. Of any other option it is a usage error: nearly always a variable of a script
  /// that was never set, and what it was to say is not to be guessed.
  Option& may_be_empty() { return state_->takes_empty = true, *this; }
  /// What help prints as the default, where the variable's own value does not tell ("micro-batch x world size").
  Option& default_text(std::string text) { return state_->default_text = std::move(text), *this; }
  /// The value is a file that the command reads, or stands for such files as `files` says. No output may be one of
  /// them.
  Option& reads_file(FilesOf files = {}) {
    state_->file_use = FileUse::read;
    return state_->files = std::move(files), *this;
  }
  /// The same where a value stands for one file at most, such as a known name or a path.
  Option& reads_file(std::optional<std::filesystem::path> (*file)(std::string_view)) {
    return reads_file([file](const std::string& text) {
      const std::optional<std::filesystem::path> path = file(text);
      return path ? std::vector<std::filesystem::path>{*path} : std::vector<std::filesystem::path>{};
    });
  }
  /// Ranks of one run need not agree about it, for this reason. They must about every option that does not say so.
  Option& may_differ(std::string why) { return state_->may_differ = std::move(why), *this; }
  /// The value is a file that the command writes, or stands for such files as `files` says (of a flag, "true").
  Option& writes_file(FilesOf files = {}) {
    state_->file_use = FileUse::written;
    return state_->files = std::move(files), *this;
  }
  /// The value is a directory, made where it is absent, in which the command writes the files that `files` says.
  Option& writes_into_directory(FilesOf files) {
    state_->file_use = FileUse::written_into;
    return state_->files = std::move(files), *this;
  }

 private:
  OptionState* state_;
};

class Command;

/// A titled part of a command's options. Names are without the leading "--".
class Group {
 public:
  /// An option with a value: std::string, int, std::int64_t, std::uint64_t, double, Elems, Bytes, a std::optional of
  /// these (no default), or a std::vector of these (may be given several times).
  template <class T>
  Option add(std::string name, T* target, std::string value_name, std::string help) {
    OptionState& state = declare(std::move(name), std::move(value_name), std::move(help));
    state.default_text = show_value(*target);
    state.kind = kind_of_value<T>;
    state.read = [target](std::string_view text, std::string_view where, const Range& range) {
      return read_value(text, where, range, *target);
    };
    state.value = [target] { return show_value(*target); };
    if constexpr (takes_several<T>) {
      state.several = true;
      state.clear = [target] { target->clear(); };
    }
    return Option(state);
  }

  /// --NAME sets the flag; in a file NAME = true|false.
  Option add_flag(std::string name, bool* target, std::string help);
  /// --NAME and --no-NAME; in a file NAME = true|false.
  Option add_switch(std::string name, bool* target, std::string help);

  /// One of a list of names; the default is the target's value.
  template <class T>
  Option add_choice(std::string name, T* target, std::vector<Choice<T>> choices, std::string help) {
    std::vector<Named> words;
    for (const Choice<T>& choice : choices) words.push_back({choice.name, choice.help});
    return add_words(
        std::move(name), words,
        [target, choices] {
          const auto at = std::ranges::find(choices, *target, &Choice<T>::value);
          return static_cast<std::size_t>(at - choices.begin());
        },
        [target, choices](std::size_t index) { *target = choices[index].value; }, std::move(help));
  }
  /// The same for names alone: `chosen` is told which of them; `current` says which is in force, at first the default;
  /// beyond them all: none.
  struct Named {
    std::string name;
    std::string help;
  };
  Option add_words(std::string name, std::span<const Named> words, std::function<std::size_t()> current,
                   std::function<void(std::size_t)> chosen, std::string help);

  /// Lists with commas, each added to the one before: --NAME A,B --NAME C.
  Option add_list(std::string name, std::vector<std::string>* target, std::string value_name, std::string help);

  /// Anything else ("N|search|none"): `read` stores the value itself.
  Option add_custom(std::string name, std::string value_name, std::string help, Reader read);

 private:
  friend class Command;
  Group(Command& command, std::size_t index) : command_(&command), index_(index) {}
  OptionState& declare(std::string name, std::string value_name, std::string help);
  static std::string joined(std::span<const std::string> names);

  Command* command_;
  std::size_t index_;
};

enum class Outcome { run, help };

struct CommandDescription;

/// One option with the value in force, for showing an effective configuration.
struct Effective {
  std::string name;
  std::string value;
  Origin origin;
};

/// Another value of an option than was said, or none.
struct Change {
  std::string option;
  std::optional<std::string> value{};  ///< of a flag true or false

  friend bool operator==(const Change&, const Change&) = default;
};

/// One option about which ranks of a run must agree, with the value in force.
struct Settled {
  std::string name;
  std::string value;  ///< of the variable, wherever it came from; of a file that is written only whether it is given
  std::string shown;  ///< "--lr 0.1 (command line)", "no --trace"
  std::vector<std::filesystem::path> files{};  ///< that `value` stands for, where the option reads files
};

class Command {
 public:
  /// `summary` completes "search: ..." in one line; `details` is printed in help as it stands, with examples.
  Command(std::string program, std::string name, std::string summary, std::string details);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command();

  /// Groups are printed in the order of declaration.
  [[nodiscard]] Group group(std::string title);

  /// Arguments that are no options, in order. A vector takes all that are left, at least one if required.
  template <class T>
  Option add_positional(std::string value_name, T* target, std::string help) {
    OptionState& state = declare_positional(std::move(value_name), std::move(help));
    state.read = [target](std::string_view text, std::string_view where, const Range& range) {
      return read_value(text, where, range, *target);
    };
    if constexpr (takes_several<T>) {
      state.several = true;
      state.clear = [target] { target->clear(); };
    }
    return Option(state);
  }

  /// What stands behind the options, read by the caller and not by parse(): the last words of the usage line.
  Command& followed_by(std::string what) {
    followed_by_ = std::move(what);
    return *this;
  }

  /// Reads `arguments` (after the command's name), then --config FILE for what they leave open. --help and -h win over
  /// every error; `--help all` (and --help=all) makes help() show every option, --help=json description(). Errors:
  /// Errc::usage for an unknown, repeated, missing, empty or unparsable option (with the closest match and where it
  /// stands);
  /// Errc::no_input or Errc::malformed for the file; then as check_files() for the files that options read and write.
  /// Call once.
  ///
  /// The file: `name = value` lines, `#` comments, values optionally in double quotes, a flag by itself or =
  /// true|false. Lines after `[other]` are for that command alone and skipped unless it is this one.
  [[nodiscard]] Result<Outcome> parse(std::span<const std::string> arguments);

  /// Of configurations that are no `name = value` lines: `read` is called by parse() once the command line is read, and
  /// sets what it leaves open by offer(). It returns whether it took --config's file, which parse() then does not read.
  void before_config(std::function<Result<bool>()> read) { more_options_ = std::move(read); }
  /// Sets an option that the command line does not give; as parse() does for a file. `name` must be declared.
  [[nodiscard]] Result<void> offer(std::string_view name, const std::string& text, const Origin& origin);
  /// Whatever parse() finds about these options does not count; those that get a value have it as if it were typed. An
  /// option that is not declared is parse()'s error. Call it before.
  void change(std::span<const Change> changes) { changes_.assign(changes.begin(), changes.end()); }
  /// From now on the text of every option that is not declared once(), on the command line and in --config FILE, may be
  /// a list (lists.h), of which the value that `choose` says is taken: it is asked for each text of several values, in
  /// the order in which parse() meets them. All values are checked. Of an option whose own value has commas the list
  /// has semicolons; a switch takes its list as --NAME=true,false. Call it behind the declarations.
  void take_lists(Choose choose) { choose_ = std::move(choose); }
  /// A file that the command reads beside those that its options name: no output may be it. `what` names it in errors:
  /// "the program (train.py)". Call it before the end of parse(): ahead of it, or in before_config()'s `read`.
  void reads_also(std::string what, std::filesystem::path path) {
    other_inputs_.push_back({std::move(what), std::move(path)});
  }
  /// Nothing is missing, whatever is required: what is asked for needs no option.
  void require_nothing() { requires_nothing_ = true; }

  /// Summary, usage line, options by group, details. `width` is the terminal's. Of more options than fit on a screen
  /// the common ones, and how to see the rest, unless parse() was asked for all.
  [[nodiscard]] std::string help(int width = 100) const;

  /// The same as data (describe.h).
  [[nodiscard]] CommandDescription description() const;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& summary() const { return summary_; }

  /// Is there an option of this name?
  [[nodiscard]] bool has(std::string_view name) const;
  /// What the command line itself says of the option, last where it may be given several times; nothing where it leaves
  /// it open.
  [[nodiscard]] std::optional<std::string> typed(std::string_view name) const;
  /// The file of --config; empty where there is none.
  [[nodiscard]] const std::string& config_file() const { return config_; }
  /// Was the option given (in a file or on the command line)? Where did its value come from? `name` must be declared.
  [[nodiscard]] bool given(std::string_view name) const;
  [[nodiscard]] const Origin& origin(std::string_view name) const;
  /// "--stage 3 (run.conf:4)": for errors that say which values contradict each other.
  [[nodiscard]] std::string describe(std::string_view name) const;
  /// The options that are given here and that `other` has, too, as its arguments.
  [[nodiscard]] std::vector<std::string> arguments_for(const Command& other) const;
  /// Every option that has a value, in the order of declaration.
  [[nodiscard]] std::vector<Effective> effective() const;
  /// Every option that may not differ between ranks, in the order of declaration: whatever gave it its value, a default
  /// among that, and whatever the command has made of its variable since.
  [[nodiscard]] std::vector<Settled> settled() const;

 private:
  friend class Group;
  struct GroupState {
    std::string title;
    std::vector<std::unique_ptr<OptionState>> options;
  };

  OptionState& declare_positional(std::string value_name, std::string help);
  [[nodiscard]] const OptionState& find(std::string_view name) const;
  [[nodiscard]] OptionState* lookup(std::string_view name, bool& negated);
  [[nodiscard]] std::vector<std::string> names() const;
  /// The name of ours that a user means by this one: '_' for '-', another tool's name that means the same ("precision
  /// bf16" has the value with it). The name itself where there is none.
  [[nodiscard]] std::string own_name(std::string_view name);
  [[nodiscard]] std::string meant_by(const std::string& word, bool lacks_model) const;
  [[nodiscard]] std::vector<std::string> spelled_out(std::span<const std::string> arguments);
  [[nodiscard]] Result<void> find_changed();
  [[nodiscard]] Result<void> set_changed();
  [[nodiscard]] Result<void> parse_arguments(std::span<const std::string> arguments);
  [[nodiscard]] Result<void> parse_file(const std::string& path);
  [[nodiscard]] Result<void> set(OptionState& state, const std::string& text, const Origin& origin);
  /// The same of one value.
  [[nodiscard]] Result<void> store(OptionState& state, const std::string& text, const Origin& origin);
  [[nodiscard]] bool takes_list(const OptionState& state) const { return choose_ && !state.is_once; }
  [[nodiscard]] Result<void> check_named_files() const;
  [[nodiscard]] std::string see_help() const;
  [[nodiscard]] std::string suggested(std::string_view unknown) const;
  [[nodiscard]] std::string invocation() const;
  [[nodiscard]] std::size_t uncommon_count() const;

  std::string program_;
  std::string name_;
  std::string summary_;
  std::string details_;
  std::string followed_by_{};
  std::string config_;
  std::vector<Change> changes_;
  std::function<Result<bool>()> more_options_{};
  Choose choose_{};
  std::vector<NamedFile> other_inputs_{};
  bool requires_nothing_ = false;
  bool help_wanted_ = false;
  bool all_wanted_ = false;
  bool description_wanted_ = false;
  std::vector<std::unique_ptr<GroupState>> groups_;
  std::vector<std::unique_ptr<OptionState>> positionals_;
};

}  // namespace shard::cli
