// Reads one command's options: Boost.Program_options splits the command line and lays out the help.
#include "sim/cli/command_line.h"

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>
#include <cassert>
#include <sstream>

#include "sim/cli/describe.h"
#include "sim/cli/foreign_options.h"

namespace shard::cli {
namespace po = boost::program_options;

namespace {

/// The name without dashes, as it is typed after "--".
std::string bare(std::string_view token) {
  const std::size_t first = token.find_first_not_of('-');
  return first == std::string_view::npos ? "" : std::string(token.substr(first, token.find('=', first) - first));
}

/// The option under all its names, for Boost. A switch that takes a list has it behind '=' only.
void make_known(po::options_description& known, const OptionState& option, bool takes_list) {
  std::vector<std::string> spellings = option.aliases;
  spellings.push_back(option.name);
  for (const std::string& spelling : spellings) {
    if (!option.value_name.empty())
      known.add_options()(spelling.c_str(), po::value<std::string>(), "");
    else if (takes_list)
      known.add_options()(spelling.c_str(), po::value<std::string>()->implicit_value("true"), "");
    else
      known.add_options()(spelling.c_str(), "");
  }
  if (option.negatable) known.add_options()(("no-" + option.name).c_str(), "");
}

/// Boost leaves the space at which it broke a line.
std::string without_trailing_spaces(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\n') result.erase(result.find_last_not_of(' ') + 1);
    result += c;
  }
  return result;
}

/// More than these do not fit on a screen, with a line or three each.
constexpr std::size_t kOptionsOnAScreen = 24;

Error needs_value(const OptionState& state) {
  return {Errc::usage, spelled(state) + " needs a value", "", spelled(state) + " " + state.value_name};
}

}  // namespace

Option Group::add_flag(std::string name, bool* target, std::string help) {
  OptionState& state = declare(std::move(name), "", std::move(help));
  state.read = [target](std::string_view text, std::string_view where, const Range& range) {
    return read_value(text, where, range, *target);
  };
  state.value = [target] { return show_value(*target); };
  return Option(state);
}

Option Group::add_switch(std::string name, bool* target, std::string help) {
  help += *target ? " (default; --no-" + name + " switches it off)" : " (default: --no-" + name + ")";
  Option option = add_flag(std::move(name), target, std::move(help));
  command_->groups_[index_]->options.back()->negatable = true;
  return option;
}

OptionState& Group::declare(std::string name, std::string value_name, std::string help) {
  auto state = std::make_unique<OptionState>();
  state->name = std::move(name);
  state->value_name = std::move(value_name);
  state->help = std::move(help);
  bool negated = false;
  assert(command_->lookup(state->name, negated) == nullptr);
  static_cast<void>(negated);
  return *command_->groups_[index_]->options.emplace_back(std::move(state));
}

Command::Command(std::string program, std::string name, std::string summary, std::string details)
    : program_(std::move(program)), name_(std::move(name)), summary_(std::move(summary)), details_(std::move(details)) {
  Group general = group("General");
  general.add("config", &config_, "FILE", "read options from FILE (name = value lines); the command line wins")
      .common()
      .once()
      .reads_file();
  general.add_flag("help", &help_wanted_, "show help (-h); with 'all' behind it, every option; =json: as data")
      .common()
      .once();
}

Command::~Command() = default;

Group Command::group(std::string title) {
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i]->title == title) return Group(*this, i);
  }
  auto state = std::make_unique<GroupState>();
  state->title = std::move(title);
  groups_.push_back(std::move(state));
  return Group(*this, groups_.size() - 1);
}

OptionState& Command::declare_positional(std::string value_name, std::string help) {
  auto state = std::make_unique<OptionState>();
  state->name = value_name;
  state->is_positional = true;
  state->value_name = std::move(value_name);
  state->help = std::move(help);
  return *positionals_.emplace_back(std::move(state));
}

OptionState* Command::lookup(std::string_view name, bool& negated) {
  negated = false;
  for (const auto& each : groups_) {
    for (const auto& option : each->options) {
      if (option->name == name || std::ranges::find(option->aliases, name) != option->aliases.end())
        return option.get();
      if (option->negatable && name.starts_with("no-") && name.substr(3) == option->name) {
        negated = true;
        return option.get();
      }
    }
  }
  return nullptr;
}

const OptionState& Command::find(std::string_view name) const {
  for (const auto& each : groups_) {
    for (const auto& option : each->options) {
      if (option->name == name) return *option;
    }
  }
  for (const auto& option : positionals_) {
    if (option->name == name) return *option;
  }
  assert(false && "an option that is asked about is declared");
  static const OptionState kNone;
  return kNone;
}

std::vector<std::string> Command::names() const {
  std::vector<std::string> all;
  for (const auto& each : groups_) {
    for (const auto& option : each->options) {
      all.push_back(option->name);
      all.insert(all.end(), option->aliases.begin(), option->aliases.end());
      if (option->negatable) all.push_back("no-" + option->name);
    }
  }
  return all;
}

std::string Command::invocation() const {
  return program_ + (name_.empty() ? "" : " " + name_);
}

std::size_t Command::uncommon_count() const {
  std::size_t options = 0;
  std::size_t uncommon = 0;
  for (const auto& each : groups_) {
    options += each->options.size();
    uncommon += static_cast<std::size_t>(
        std::ranges::count_if(each->options, [](const auto& option) { return !option->is_common; }));
  }
  return options > kOptionsOnAScreen ? uncommon : 0;
}

std::string Command::see_help() const {
  return "see '" + invocation() + (uncommon_count() > 0 ? " --help all'" : " --help'");
}

std::string Command::suggested(std::string_view unknown) const {
  const std::string ours(own_option(unknown));
  if (!ours.empty() && has(ours.substr(0, ours.find(' '))))
    return "here it is '--" + ours + "'" + std::string(meaning_of(ours)) + "; ";
  if (const std::string other(command_of(ours)); !other.empty() && other != name_)
    return "'" + program_ + " " + other + "' has it: --" + ours + "; ";
  if (const std::string missing = not_modelled(unknown); !missing.empty()) return missing + "; ";
  const auto match = cli::closest(unknown, names());
  return match ? "did you mean '--" + *match + "'? " : "";
}

std::string Command::own_name(std::string_view name) {
  bool negated = false;
  if (lookup(name, negated) != nullptr) return std::string(name);
  std::string dashed(name);
  std::ranges::replace(dashed, '_', '-');
  if (lookup(dashed, negated) != nullptr) return dashed;
  const std::string same(same_option(dashed));
  if (!same.empty() && lookup(same.substr(0, same.find(' ')), negated) != nullptr) return same;
  return std::string(name);
}

/// What a lone "-x" or a word that belongs to no option may be.
std::string Command::meant_by(const std::string& word, bool lacks_model) const {
  if (word.starts_with('-')) return "options begin with two dashes; ";
  if (followed_by_.starts_with("-- "))
    return "what is run stands behind --: '" + invocation() + " -- " + (word.ends_with(".py") ? "python3 " : "") +
           word + "'; ";
  return lacks_model ? "if it is the model, '--model " + word + "'; " : "";
}

/// The arguments with "--output" for "-o", and our names for those of other tools that mean the same.
std::vector<std::string> Command::spelled_out(std::span<const std::string> arguments) {
  constexpr std::array kYes{"true", "True", "1", "yes", "full"};
  std::vector<std::string> list(arguments.begin(), arguments.end());
  for (std::size_t i = 0; i < list.size() && list[i] != "--"; ++i) {
    if (list[i].starts_with("--") && list[i].size() > 2) {
      const std::size_t equals = std::min(list[i].find('='), list[i].size());
      std::string name = own_name(std::string_view(list[i]).substr(2, equals - 2));
      // "precision bf16" has the value with it.
      if (const std::size_t blank = name.find(' '); blank == std::string::npos)
        list[i] = "--" + name + list[i].substr(equals);
      else if (equals == list[i].size()) {
        list[i] = "--" + name.replace(blank, 1, "=");
        // "--bf16 true", as Hugging Face has flags.
        if (i + 1 < list.size() && std::ranges::find(kYes, list[i + 1]) != kYes.end())
          list.erase(list.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
    if (list[i].size() != 2 || list[i][0] != '-' || list[i][1] == '\0') continue;
    const char letter = list[i][1];
    for (const auto& each : groups_)
      for (const auto& option : each->options)
        if (option->letter == letter) list[i] = "--" + option->name;
  }
  return list;
}

Result<void> Command::find_changed() {
  for (const Change& change : changes_) {
    bool negated = false;
    OptionState* const state = lookup(change.option, negated);
    if (state == nullptr || negated)
      return Error{Errc::usage, "unknown option '--" + change.option + "'", "", see_help()};
    state->is_changed = true;
  }
  return {};
}

Result<void> Command::set_changed() {
  for (const Change& change : changes_) {
    bool negated = false;
    if (!change.value) continue;
    if (auto done = set(*lookup(change.option, negated), *change.value, {Source::command_line, "command line"}); !done)
      return done;
  }
  return {};
}

Result<void> Command::parse_arguments(std::span<const std::string> arguments) {
  po::options_description known;
  for (const auto& each : groups_)
    for (const auto& option : each->options) make_known(known, *option, takes_list(*option));
  // No guessing: an abbreviation that works today is ambiguous when an option is added. "-h" is handled before.
  const int style = po::command_line_style::allow_long | po::command_line_style::long_allow_adjacent |
                    po::command_line_style::long_allow_next;
  std::vector<po::option> given;
  try {
    const std::vector<std::string> list = spelled_out(arguments);
    given = po::command_line_parser(list).options(known).style(style).run().options;
  } catch (const po::unknown_option& fault) {
    const std::string name = bare(fault.get_option_name());
    return Error{Errc::usage, "unknown option '--" + name + "'", "", suggested(name) + see_help()};
  } catch (const po::invalid_command_line_syntax& fault) {
    const std::string name = bare(fault.get_option_name());
    bool negated = false;
    const OptionState* state = lookup(name, negated);
    if (state != nullptr && !state->value_name.empty()) return needs_value(*state);
    return Error{Errc::usage, "--" + name + " takes no value", "", see_help()};
  } catch (const po::error& fault) {
    return Error{Errc::usage, fault.what(), "", see_help()};
  }

  std::size_t next_positional = 0;
  for (const po::option& option : given) {
    if (option.string_key.empty()) {
      const std::string& text = option.value.at(0);
      if (next_positional == positionals_.size()) {
        const bool lacks_model = has("model") && std::ranges::count(given, "model", &po::option::string_key) == 0;
        return Error{Errc::usage, "unexpected argument '" + text + "'", "", meant_by(text, lacks_model) + see_help()};
      }
      OptionState& state = *positionals_[next_positional];
      if (!state.several) ++next_positional;
      if (auto done = set(state, text, {Source::command_line, "command line"}); !done) return done;
      continue;
    }
    bool negated = false;
    OptionState* state = lookup(option.string_key, negated);
    assert(state != nullptr);
    // Boost lets "--model --stage 3" make "--stage" the model.
    bool unused = false;
    if (option.original_tokens.size() == 2 && option.original_tokens[1].starts_with("--") &&
        lookup(bare(option.original_tokens[1]), unused) != nullptr) {
      return needs_value(*state);
    }
    const std::string text = !option.value.empty() ? option.value[0] : negated ? "false" : "true";
    if (state->is_changed) continue;
    if (auto done = set(*state, text, {Source::command_line, "command line"}); !done) return done;
  }
  return {};
}

Result<Outcome> Command::parse(std::span<const std::string> arguments) {
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    const std::string& argument = arguments[i];
    if (argument != "--help" && argument != "-h" && argument != "--help=all" && argument != "--help=json") continue;
    description_wanted_ = argument == "--help=json";
    all_wanted_ = argument == "--help=all" || (i + 1 < arguments.size() && arguments[i + 1] == "all");
    return Outcome::help;
  }
  if (auto done = find_changed(); !done) return done.error();
  if (auto done = parse_arguments(arguments); !done) return done.error();
  if (auto done = set_changed(); !done) return done.error();
  bool config_is_taken = false;
  if (more_options_) {
    const Result<bool> taken = more_options_();
    if (!taken) return taken.error();
    config_is_taken = *taken;
  }
  if (!config_.empty() && !config_is_taken) {
    if (auto done = parse_file(config_); !done) return done.error();
  }
  for (const auto& state : positionals_) {
    if (state->is_required && state->texts.empty() && !requires_nothing_) {
      return Error{Errc::usage, state->value_name + " is missing: " + state->help, "", see_help()};
    }
  }
  for (const auto& each : groups_) {
    for (const auto& state : each->options) {
      if (state->is_required && state->texts.empty() && !requires_nothing_) {
        return Error{Errc::usage, "--" + state->name + " is required: " + state->help.substr(0, state->help.find('\n')),
                     "", "--" + state->name + " " + state->value_name + "; " + see_help()};
      }
    }
  }
  if (auto done = check_named_files(); !done) return done.error();
  return Outcome::run;
}

std::string Command::help(int width) const {
  if (description_wanted_) return to_json_text(description());
  std::ostringstream out;
  const std::size_t left_out = all_wanted_ ? 0 : uncommon_count();
  out << invocation() << ": " << summary_ << "\n\nUsage: " << invocation();
  for (const auto& state : positionals_) {
    const std::string text = state->value_name + (state->several ? "..." : "");
    out << ' ' << (state->is_required ? text : "[" + text + "]");
  }
  for (const auto& each : groups_) {
    for (const auto& state : each->options) {
      if (state->is_required) out << " --" << state->name << ' ' << state->value_name;
    }
  }
  out << " [options]" << (followed_by_.empty() ? "" : " ") << followed_by_ << '\n';
  for (const auto& state : positionals_) out << "  " << state->value_name << ": " << state->help << '\n';
  const auto line = static_cast<unsigned>(std::max(width, 60));
  const auto print = [&](const GroupState& each) {
    po::options_description shown(each.title, line, line / 2);
    for (const auto& state : each.options) {
      if (left_out > 0 && !state->is_common) continue;
      std::string text = state->help;
      for (const std::string& alias : state->aliases) text += " (also --" + alias + ")";
      if (state->letter != '\0') text += std::string(" (also -") + state->letter + ")";
      if (state->is_required) text += " (required)";
      if (state->several) text += " (may be given several times)";
      if (takes_list(*state) && state->between != ',')
        text += std::string(" (between the values of a list: '") + state->between + "')";
      if (takes_list(*state) && state->value_name.empty()) text += " (both: --" + state->name + "=true,false)";
      // Boost takes a tab for a paragraph's indent and '%' as it stands.
      if (state->value_name.empty()) {
        shown.add_options()(state->name.c_str(), text.c_str());
        continue;
      }
      auto* value = po::value<std::string>()->value_name(state->value_name);
      if (!state->default_text.empty()) value->default_value("", state->default_text);
      shown.add_options()(state->name.c_str(), value, text.c_str());
    }
    if (!shown.options().empty()) out << '\n' << shown;
  };
  for (std::size_t i = 1; i < groups_.size(); ++i) print(*groups_[i]);
  print(*groups_[0]);  // General comes last
  if (left_out > 0)
    out << "\nThese are the common options; '" << invocation() << " --help all' shows " << left_out << " more.\n";
  if (!details_.empty()) out << '\n' << details_ << (details_.ends_with('\n') ? "" : "\n");
  return without_trailing_spaces(out.str());
}

std::optional<std::string> Command::typed(std::string_view name) const {
  const OptionState& state = find(name);
  if (state.origin.source != Source::command_line || state.texts.empty()) return std::nullopt;
  return state.texts.back();
}

Result<void> Command::offer(std::string_view name, const std::string& text, const Origin& origin) {
  bool negated = false;
  OptionState* const state = lookup(name, negated);
  assert(state != nullptr && !negated);
  if (state->is_changed || state->origin.source == Source::command_line) return {};
  return store(*state, text, origin);
}

bool Command::has(std::string_view name) const {
  return std::ranges::any_of(groups_, [name](const auto& each) {
    return std::ranges::any_of(each->options, [name](const auto& option) { return option->name == name; });
  });
}

bool Command::given(std::string_view name) const {
  return find(name).origin.source != Source::fallback;
}

const Origin& Command::origin(std::string_view name) const {
  return find(name).origin;
}

std::string Command::describe(std::string_view name) const {
  const OptionState& state = find(name);
  std::string text = spelled(state);
  if (state.texts.empty()) {
    if (!state.default_text.empty()) text += " " + state.default_text;
  } else if (!state.value_name.empty()) {
    for (const std::string& each : state.texts) text += " " + each;
  } else if (state.texts.back() != "true") {
    if (state.negatable)
      text = "--no-" + state.name;
    else
      text += "=" + state.texts.back();
  }
  return text + " (" + state.origin.where + ")";
}

std::vector<std::string> Command::arguments_for(const Command& other) const {
  std::vector<std::string> arguments;
  for (const auto& each : groups_)
    for (const auto& state : each->options) {
      if (state->name == "help" || state->name == "config" || !other.has(state->name)) continue;
      for (const std::string& text : state->texts) {
        if (!state->value_name.empty())
          arguments.push_back("--" + state->name + "=" + text);
        else if (text == "true")
          arguments.push_back("--" + state->name);
        else if (state->negatable)
          arguments.push_back("--no-" + state->name);
      }
    }
  return arguments;
}

std::vector<Effective> Command::effective() const {
  std::vector<Effective> all;
  for (const auto& each : groups_) {
    for (const auto& state : each->options) {
      if (state->name == "help" || state->name == "config") continue;
      std::string value;
      for (const std::string& text : state->texts) value.append(value.empty() ? "" : " ").append(text);
      if (state->texts.empty()) value = state->default_text;
      if (!value.empty()) all.push_back({state->name, value, state->origin});
    }
  }
  return all;
}

}  // namespace shard::cli
