// Chooses a command, or the program that runs it.
#include "sim/cli/dispatch.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "sim/cli/answers.h"
#include "sim/cli/closest.h"
#include "sim/cli/questions.h"
#include "sim/cli/words.h"

namespace shard::cli {
namespace {

constexpr std::array<KnownCommand, 19> kCommands{{
    {"search", "shardscope", "finds the chunk size that wastes least, offline"},
    {"simulate", "shardscope", "predicts memory, communication and time of one strategy; runs nothing", "predicts"},
    {"sweep", "shardscope", "predicts many strategies, lists in any option: one row each", "predicts many"},
    {"plan", "shardscope", "prints what each rank would do, op by op, after any pass"},
    {"compare", "shardscope", "lines two traces up, op by op: predicted and measured, or two runs; or two strategies",
     "lines two traces up"},
    {"inspect", "shardscope", "says what is in one trace or recording, or what GPUs are here", "", true, "device",
     "shardscope-train", "recorder"},
    {"convert", "shardscope", "writes a trace for other tools (Perfetto, Chrome, PyTorch), or a picture of it"},
    {"validate", "shardscope", "checks predictions against published runs",
     "checks predictions against published runs"},
    {"train", "shardscope-train", "runs it for real, sharded, on CPU ranks", "runs"},
    {"verify", "shardscope-train", "proves a strategy equal to unsharded training, bit for bit",
     "proves a strategy equal to unsharded training"},
    {"checkpoint", "shardscope-train", "lists the checkpoints of a run, reads every byte of them, says what is in one"},
    {"calibrate", "shardscope-train", "measures this machine, so that predicted times are its own"},
    {"dryrun", "shardscope-profile", "runs your own PyTorch program on a stand-in GPU and says what memory it takes",
     "runs your own PyTorch program on a stand-in GPU"},
    {"profile", "shardscope-profile", "records what a CUDA program does on its GPUs: time and memory"},
    {"view", "shardscope-view", "opens traces in a window, predicted and measured on one timeline"},
    {"report", "shardscope-view", "writes what view shows as pictures and text"},
    {"completion", "shardscope", "prints what completes commands, options and values in bash or zsh"},
    {"mcp", "shardscope", "serves these commands as tools to editors and agents (Model Context Protocol)"},
    {"man", "shardscope", "prints a command's manual page, for man"},
}};

#ifdef SHARDSCOPE_FROM_WHEEL
constexpr std::string_view kHowToGetPrograms =
    "pip install 'shardscope[train]', a second wheel ('make wheel' makes both), or 'make build' in Shardscope's sources";
#else
constexpr std::string_view kHowToGetPrograms =
    "'make deps' installs the packages it needs (packages.txt); then configure and build again";
#endif

/// Is --OPTION there, with a value behind it or after '='?
bool mentions(std::span<const std::string> arguments, std::string_view option) {
  const std::string spelled = "--" + std::string(option);
  return std::ranges::any_of(
      arguments, [&](const std::string& each) { return each == spelled || each.starts_with(spelled + "="); });
}

}  // namespace

std::span<const KnownCommand> known_commands() {
  return kCommands;
}

std::string_view exit_codes() {
  return "0 ok, 1 failed check, 2 usage, 3 does not fit, 65 malformed file, 66 absent file,\n"
         "69 something needed is absent, 70 internal, 73 cannot create, 74 input/output, 75 worth a retry,\n"
         "78 values that contradict each other.";
}

Program::Program(std::string name, std::string version, std::span<const KnownCommand> commands)
    : name_(std::move(name)), version_(std::move(version)), commands_(commands) {}

void Program::add(std::string_view command, Run run) {
  assert(std::ranges::any_of(commands_, [&](const KnownCommand& each) { return each.name == command; }));
  runs_.insert_or_assign(std::string(command), std::move(run));
}

bool Program::offers(const KnownCommand& command) const {
  return runs_.contains(command.name) || (command.program != name_ && command.in_this_version);
}

std::vector<std::string> Program::offered() const {
  std::vector<std::string> names;
  for (const KnownCommand& each : commands_)
    if (offers(each)) names.emplace_back(each.name);
  return names;
}

Result<Decision> Program::decide_help(std::span<const std::string> topic) const {
  Decision decision;
  if (topic.empty()) return decision.text = questions_help(name_), decision;
  const bool is_command =
      std::ranges::any_of(commands_, [&](const KnownCommand& each) { return each.name == topic[0]; });
  if (is_command) {
    std::vector<std::string> words{topic[0], "--help"};
    if (topic.size() > 1 && topic[1] == "all") words.emplace_back("all");
    return decide(words);
  }
  if (topic[0] == "words") return decision.text = words_help(), decision;
  if (topic[0] == "json") return decision.text = answers_help(), decision;
  // A word of two parts need not be quoted.
  std::string phrase;
  for (const std::string& part : topic) phrase.append(phrase.empty() ? "" : " ").append(part);
  const Word* const word = find_word(phrase);
  if (const Question* const question = find_question(phrase);
      question != nullptr && (word == nullptr || topic.size() == 1))
    decision.text = answered(*question);
  // Some are both: "chunk" is asked about, and stands in outputs.
  if (word != nullptr) decision.text += (decision.text.empty() ? "" : "\nThe word in outputs:\n") + explained(*word);
  if (!decision.text.empty()) return decision;
  std::vector<std::string> known = offered();
  for (const Question& each : questions()) known.emplace_back(each.topic);
  for (const Word& each : known_words()) known.emplace_back(each.name);
  const auto match = closest(phrase, known);
  return Error{Errc::usage, "'" + phrase + "' is neither a command, a question's topic nor a word of the outputs", "",
               (match ? "did you mean '" + *match + "'? " : "") + "'" + name_ + " help' lists the questions, '" +
                   name_ + " --help' the commands, '" + name_ + " help words' the words"};
}

Result<Decision> Program::decide(std::span<const std::string> arguments) const {
  std::vector<std::string> words(arguments.begin(), arguments.end());
  if (!words.empty() && words[0] == "help") return decide_help(arguments.subspan(1));
  if (words.empty()) {
    return Error{Errc::usage, "which command?", "", "'" + name_ + " --help' lists them"};
  }
  Decision decision;
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "--version") {
    decision.text = words[0] == "--version" ? name_ + " " + version_ + "\n" : help();
    return decision;
  }
  const auto known = std::ranges::find_if(commands_, [&](const KnownCommand& each) { return each.name == words[0]; });
  if (known == commands_.end()) {
    if (words[0].starts_with('-')) {
      return Error{Errc::usage, "the command comes first, before '" + words[0] + "'", "",
                   "'" + name_ + " COMMAND " + words[0] + "'; " + "'" + name_ + " --help' lists the commands"};
    }
    return Error{Errc::usage, "unknown command '" + words[0] + "'", "", suggest(words[0], offered())};
  }
  decision.command = known->name;
  decision.arguments.assign(words.begin() + 1, words.end());
  const bool moves = !known->moves_with.empty();
  const auto moved_by = [&](std::string_view option) {
    return !option.empty() && mentions(decision.arguments, option);
  };
  const bool moved = moved_by(known->moves_with) || moved_by(known->moves_also_with);
  decision.program = moved ? known->moves_to : known->program;
  const auto run = runs_.find(known->name);
  if (run != runs_.end() && (!moves || decision.program == name_)) {
    decision.kind = Decision::Kind::run;
    decision.run = run->second;
  } else if (decision.program != name_ && known->in_this_version) {
    decision.kind = Decision::Kind::hand_over;
  } else {
    return Error{Errc::unavailable, "'" + words[0] + "' is not in this version", "",
                 "'" + name_ + " --help' lists what is"};
  }
  return decision;
}

std::string Program::help() const {
  std::string text = name_ + " " + version_ +
                     ": plans, predicts and runs sharded training\n\n"
                     "Usage: " +
                     name_ + " COMMAND [options]      '" + name_ + " COMMAND --help' explains one\n\n";
  std::size_t width = 0;
  std::string alike;
  for (const KnownCommand& each : commands_) width = std::max(width, each.name.size());
  for (const KnownCommand& each : commands_) {
    if (!offers(each)) continue;
    if (!each.does.empty()) alike.append(alike.empty() ? "" : ", ").append(each.name).append(" ").append(each.does);
    text.append("  ").append(each.name).append(width - each.name.size() + 2, ' ').append(each.summary).append("\n");
  }
  return text + "\nEasily confused: " + alike + ".\n'" + name_ + " help' answers questions (will it fit?), '" + name_ +
         " help words' explains the words that outputs use.\n\nExit codes: " + std::string(exit_codes()) + "\n";
}

Error hand_over(const std::string& program, const std::string& command, std::span<const std::string> arguments) {
  std::error_code fault;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", fault);
  const std::filesystem::path path = self.parent_path() / program;
  const std::string what = "'" + command + "' is run by " + program + ", ";
  const std::string help(kHowToGetPrograms);
  if (fault || !std::filesystem::exists(path, fault)) {
    return {Errc::unavailable, what + "which is not built", path.string(), help};
  }
  std::vector<std::string> words{path.string(), command};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(path.c_str(), pointers.data());
  return {Errc::unavailable, what + "which cannot be started: " + std::strerror(errno), path.string(), help};
}

}  // namespace shard::cli
