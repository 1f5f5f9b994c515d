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

#include "sim/cli/closest.h"

namespace shard::cli {
namespace {

constexpr std::array<KnownCommand, 13> kCommands{{
    {"search", "shardscope", "finds the best chunk size or strategy, offline"},
    {"simulate", "shardscope", "predicts memory, communication and time of one strategy; runs nothing"},
    {"plan", "shardscope", "prints what each rank would do, op by op, after any pass"},
    {"compare", "shardscope", "lines two traces up, op by op: predicted and measured, or two runs"},
    {"inspect", "shardscope", "says what is in one trace or recording"},
    {"convert", "shardscope", "writes a trace for other tools (Perfetto, Chrome, PyTorch), or a picture of it"},
    {"validate", "shardscope", "checks predictions against published runs", false},
    {"train", "shardscope-train", "runs it for real, sharded, on CPU ranks or on GPUs"},
    {"verify", "shardscope-train", "proves a strategy equal to unsharded training, bit for bit", false},
    {"calibrate", "shardscope-train", "measures this machine, so that predicted times are its own", false},
    {"profile", "shardscope-profile", "records where a run's time and memory go", false},
    {"view", "shardscope-view", "opens traces in a window, predicted and measured on one timeline"},
    {"report", "shardscope-view", "writes what view shows as pictures and text"},
}};

}  // namespace

std::span<const KnownCommand> known_commands() {
  return kCommands;
}

Program::Program(std::string name, std::string version, std::span<const KnownCommand> commands)
    : name_(std::move(name)), version_(std::move(version)), commands_(commands) {}

void Program::add(std::string_view command, Run run) {
  assert(std::ranges::any_of(commands_, [&](const KnownCommand& each) { return each.name == command; }));
  runs_.insert_or_assign(std::string(command), std::move(run));
}

Result<Decision> Program::decide(std::span<const std::string> arguments) const {
  std::vector<std::string> words(arguments.begin(), arguments.end());
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    if (words.empty()) {
      words = {"--help"};
    } else {
      words = {words[0], "--help"};
    }
  }
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
    std::vector<std::string> names;
    for (const KnownCommand& each : commands_) names.emplace_back(each.name);
    if (words[0].starts_with('-')) {
      return Error{Errc::usage, "the command comes first, before '" + words[0] + "'", "",
                   "'" + name_ + " COMMAND " + words[0] + "'; " + "'" + name_ + " --help' lists the commands"};
    }
    return Error{Errc::usage, "unknown command '" + words[0] + "'", "", suggest(words[0], names)};
  }
  decision.command = known->name;
  decision.program = known->program;
  decision.arguments.assign(words.begin() + 1, words.end());
  const auto run = runs_.find(known->name);
  if (run != runs_.end()) {
    decision.kind = Decision::Kind::run;
    decision.run = run->second;
  } else if (known->program != name_ && known->in_this_version) {
    decision.kind = Decision::Kind::hand_over;
  } else {
    return Error{Errc::unavailable, "'" + words[0] + "' is not in this version", "", "'" + name_ + " --help'"};
  }
  return decision;
}

std::string Program::help() const {
  std::string text = name_ + " " + version_ +
                     ": plans, predicts and runs sharded training\n\n"
                     "Usage: " +
                     name_ + " COMMAND [options]      '" + name_ + " COMMAND --help' explains one\n\n";
  std::size_t width = 0;
  for (const KnownCommand& each : commands_) width = std::max(width, each.name.size());
  for (const KnownCommand& each : commands_) {
    // What this version does not have is not advertised.
    if (!runs_.contains(each.name) && (each.program == name_ || !each.in_this_version)) continue;
    text.append("  ").append(each.name).append(width - each.name.size() + 2, ' ').append(each.summary).append("\n");
  }
  return text +
         "\nThe alike: simulate predicts, train runs, compare lines two traces up, verify proves a strategy equal to\n"
         "unsharded training, validate checks predictions against published runs.\n\n"
         "Exit codes: 0 ok, 1 failed check, 2 usage, 3 does not fit, 65 malformed file, 66 absent file,\n"
         "69 something needed is absent, 70 internal, 73 cannot create, 74 input/output, 75 worth a retry,\n"
         "78 values that contradict each other.\n";
}

Error hand_over(const std::string& program, const std::string& command, std::span<const std::string> arguments) {
  std::error_code fault;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", fault);
  const std::filesystem::path path = self.parent_path() / program;
  const std::string what = "'" + command + "' is run by " + program + ", ";
  const std::string help = "'make deps' installs the packages it needs (packages.txt); then configure and build again";
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
