// Scripts for shells. Of each option a line; options alike in several commands share one.
#include "sim/cli/completion.h"

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/cli/questions.h"

namespace shard::cli {
namespace {

std::string joined_words(std::span<const std::string> words, std::string_view between) {
  std::string text;
  for (const std::string& each : words) text.append(text.empty() ? "" : between).append(each);
  return text;
}

/// In single quotes, as every shell reads it.
std::string shell_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// The names that `help` takes.
std::vector<std::string> help_topics(std::span<const CommandDescription> commands) {
  std::vector<std::string> topics;
  for (const CommandDescription& each : commands) topics.push_back(each.name);
  for (const Question& each : questions()) topics.emplace_back(each.topic);
  topics.emplace_back("words");
  topics.emplace_back("json");
  return topics;
}

/// Every spelling of an option, with dashes.
std::vector<std::string> option_spellings(const OptionDescription& option) {
  std::vector<std::string> all{"--" + option.name};
  for (const std::string& alias : option.aliases) all.push_back("--" + alias);
  return all;
}

/// What follows an option or stands for an argument, as bash assigns it.
std::string bash_values(const OptionDescription& option) {
  std::string text = "words=" + shell_quoted(joined_words(option.values, " "));
  if (option.is_file) text += " files=1";
  if (!option.list_separator.empty()) text += " between=" + shell_quoted(option.list_separator);
  return text;
}

constexpr std::string_view kBashHead = R"(# bash completion for shardscope; written by 'shardscope completion bash'.

# Completes the word $1 of the words $2, behind the last $3 in it, and with files where $4 is not empty.
_shardscope_offer()
{
    local word=$1 separator=${3-} files=${4-} before=
    if [[ -n $separator && $word == *"$separator"* ]]; then
        before=${word%"$separator"*}$separator
        word=${word##*"$separator"}
    fi
    mapfile -t COMPREPLY < <(compgen -P "$before" -W "$2" -- "$word" || :
        if [[ -n $files ]]; then compgen -P "$before" -f -- "$word"; fi)
    if [[ -n $files ]]; then compopt -o filenames 2>/dev/null || :; fi
    if [[ -n $separator ]]; then compopt -o nospace 2>/dev/null || :; fi
    return 0
}

_shardscope()
{
    local command=${COMP_WORDS[1]-} current=${COMP_WORDS[COMP_CWORD]-} option=${COMP_WORDS[COMP_CWORD-1]-}
    local words= files= between= i
    COMPREPLY=()
    # A word "--stage=3" comes in three parts.
    if [[ $current == = ]]; then
        current=
    elif [[ $option == = ]]; then
        option=${COMP_WORDS[COMP_CWORD-2]-}
    elif [[ $current == --*=* ]]; then
        option=${current%%=*} current=${current#*=}
    fi
)";

constexpr std::string_view kBashBehind = R"(    # Behind a lone "--" stands another program with its own arguments.
    for ((i = 2; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            mapfile -t COMPREPLY < <(compgen -c -- "$current"; compgen -f -- "$current")
            return 0
        fi
    done
)";

}  // namespace

std::string bash_completion(std::span<const CommandDescription> commands) {
  std::string text(kBashHead);
  std::vector<std::string> names;
  for (const CommandDescription& each : commands) names.push_back(each.name);
  std::vector<std::string> first = names;
  for (const char* const word : {"help", "--help", "--version"}) first.emplace_back(word);
  text += "    if ((COMP_CWORD == 1)); then\n        _shardscope_offer \"$current\" " +
          shell_quoted(joined_words(first, " ")) +
          "\n        return\n    fi\n    if [[ $command == help ]]; then\n        _shardscope_offer \"$current\" " +
          shell_quoted(joined_words(help_topics(commands), " ")) + "\n        return\n    fi\n" +
          std::string(kBashBehind);

  // Of values: all pairs of command and option that share them.
  std::map<std::string, std::vector<std::string>> shared;
  for (const CommandDescription& command : commands)
    for (const GroupDescription& group : command.groups)
      for (const OptionDescription& option : group.options)
        if (!option.value_name.empty())
          for (const std::string& name : option_spellings(option))
            shared[bash_values(option)].push_back(shell_quoted(command.name + " " + name));
  text += "    case \"$command $option\" in\n";
  for (const auto& [values, pairs] : shared)
    text += "        " + joined_words(pairs, "|") + ")\n            " + values +
            "\n            _shardscope_offer \"$current\" \"$words\" \"$between\" \"$files\"\n            return ;;\n";
  text += "    esac\n    case $command in\n";
  for (const CommandDescription& command : commands) {
    std::vector<std::string> options;
    for (const GroupDescription& group : command.groups)
      for (const OptionDescription& option : group.options) {
        const std::vector<std::string> all = option_spellings(option);
        options.insert(options.end(), all.begin(), all.end());
        if (option.negatable) options.push_back("--no-" + option.name);
        if (!option.letter.empty()) options.push_back("-" + option.letter);
      }
    if (!command.followed_by.empty()) options.emplace_back("--");
    text += "        " + command.name +
            ")\n            if [[ $current == -* ]]; then words=" + shell_quoted(joined_words(options, " "));
    if (command.positionals.empty()) {
      text += "; else words=" + shell_quoted(joined_words(options, " "));
    } else {
      // Which of several is being written is not counted: each is offered what any of them takes.
      OptionDescription any = command.positionals.front();
      for (const OptionDescription& each : std::span(command.positionals).subspan(1)) {
        any.values.insert(any.values.end(), each.values.begin(), each.values.end());
        any.is_file = any.is_file || each.is_file;
      }
      text += "; else " + bash_values(any);
    }
    text += "; fi ;;\n";
  }
  return text +
         "    esac\n    _shardscope_offer \"$current\" \"$words\" '' \"$files\"\n}\n"
         "complete -F _shardscope shardscope\n";
}

namespace {

/// Inside [...] or a message of _arguments.
std::string zsh_text(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, text.find('\n'))) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_action(const OptionDescription& option) {
  std::string message = zsh_text(option.value_name.empty() ? option.name : option.value_name);
  if (option.values.empty()) return ":" + message + ":" + (option.is_file ? "_files" : "");
  if (!option.list_separator.empty() && !option.is_file)
    return ":" + message + ":_values -s " + option.list_separator + " value " + joined_words(option.values, " ");
  const std::string words = joined_words(option.values, " ");
  // A leading blank: the action is run as it stands.
  return ":" + message + ":" + (option.is_file ? " _shardscope_names_or_files " + words : "(" + words + ")");
}

void add_zsh_option(std::string& text, const OptionDescription& option) {
  const std::string help = "[" + zsh_text(option.help) + "]";
  const std::string many = option.several ? "*" : "";
  const std::string indent = "                ";
  for (const std::string& name : option_spellings(option))
    text +=
        indent +
        shell_quoted(option.value_name.empty() ? many + name + help : many + name + "=" + help + zsh_action(option)) +
        " \\\n";
  if (!option.letter.empty()) text += indent + shell_quoted("-" + option.letter + help + zsh_action(option)) + " \\\n";
  if (option.negatable) text += indent + shell_quoted("--no-" + option.name + "[not --" + option.name + "]") + " \\\n";
}

}  // namespace

std::string zsh_completion(std::span<const CommandDescription> commands) {
  std::string text =
      "#compdef shardscope\n# zsh completion for shardscope; written by 'shardscope completion zsh'.\n\n"
      "_shardscope_names_or_files()\n{\n    compadd -- \"$@\"\n    _files\n}\n\n_shardscope()\n{\n"
      "    local -a commands topics\n    commands=(\n";
  for (const CommandDescription& each : commands)
    text += "        " + shell_quoted(each.name + ":" + zsh_text(each.summary)) + "\n";
  text += "        'help:answers questions, and explains commands and words'\n    )\n    topics=(" +
          joined_words(help_topics(commands), " ") +
          ")\n    if ((CURRENT == 2)); then\n        _describe command commands\n        return\n    fi\n"
          "    local command=$words[2]\n    shift words\n    ((CURRENT--))\n    case $command in\n"
          "        help) compadd -a topics ;;\n";
  for (const CommandDescription& command : commands) {
    text += "        " + command.name + ")\n            _arguments \\\n";
    for (const GroupDescription& group : command.groups)
      for (const OptionDescription& option : group.options) add_zsh_option(text, option);
    for (const OptionDescription& each : command.positionals)
      text += "                " + shell_quoted((each.several ? "*" : "") + zsh_action(each)) + " \\\n";
    if (!command.followed_by.empty()) text += "                '*::program:_normal' \\\n";
    text += "                && return 0 ;;\n";
  }
  return text + "    esac\n}\n\n_shardscope \"$@\"\n";
}

}  // namespace shard::cli
