// torchrun's options as of PyTorch 2.11 (torch/distributed/run.py); argparse takes unique beginnings of them, too.
#include "profiler/commands/launch_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "profiler/dryrun/program_python.h"

namespace shard::dryrun {
namespace {

using std::string_view;
using Words = std::vector<std::string>;

constexpr std::array<string_view, 7> kLaunchers = {"torchrun", "accelerate", "deepspeed", "mpirun",
                                                   "mpiexec",  "srun",       "horovodrun"};
constexpr std::array<string_view, 4> kModules = {"torch.distributed.run", "torch.distributed.launch",
                                                 "accelerate.commands.launch", "deepspeed.launcher.runner"};

constexpr std::array<string_view, 22> kWithValue = {"nnodes",
                                                    "nproc-per-node",
                                                    "rdzv-backend",
                                                    "rdzv-endpoint",
                                                    "rdzv-id",
                                                    "rdzv-conf",
                                                    "max-restarts",
                                                    "role",
                                                    "monitor-interval",
                                                    "start-method",
                                                    "log-dir",
                                                    "redirects",
                                                    "tee",
                                                    "local-ranks-filter",
                                                    "node-rank",
                                                    "master-addr",
                                                    "master-port",
                                                    "local-addr",
                                                    "logs-specs",
                                                    "event-log-handler",
                                                    "signals-to-handle",
                                                    "numa-binding"};
constexpr std::array<string_view, 6> kFlags = {"standalone", "module",  "no-python",
                                               "run-path",   "use-env", "virtual-local-rank"};

std::string base_name(const std::string& word) {
  return std::filesystem::path(word).filename().string();
}

/// Where the launcher is among the words.
struct LauncherWords {
  std::size_t at = 0, arguments = 0;  ///< the launcher's word, and the first behind it
  std::string name;
};

std::optional<LauncherWords> launcher_words(const Words& words) {
  std::size_t at = 0;
  while (at < words.size() && (base_name(words[at]) == "env" || words[at].find('=') != std::string::npos)) ++at;
  if (at == words.size()) return std::nullopt;
  const std::string name = base_name(words[at]);
  if (std::ranges::find(kLaunchers, name) != kLaunchers.end()) return LauncherWords{at, at + 1, name};
  if (!name.starts_with("python")) return std::nullopt;
  std::size_t module = at + 1;
  while (module < words.size() && words[module].starts_with("-") && words[module] != "-m") ++module;
  if (module + 1 >= words.size() || words[module] != "-m") return std::nullopt;
  const std::string& named = words[module + 1];
  if (std::ranges::find(kModules, named) == kModules.end()) return std::nullopt;
  return LauncherWords{at, module + 2, named};
}

/// The option that a word names, whole or by a beginning that no other has; "": none, or several.
string_view option_of(std::string word) {
  if (word == "-m") return "module";
  if (word == "-r") return "redirects";
  if (word == "-t") return "tee";
  if (!word.starts_with("--")) return "";
  word.erase(0, 2);
  std::ranges::replace(word, '_', '-');
  string_view found;
  int count = 0;
  const auto look = [&](string_view option) {
    if (option == word) found = option, count = -100;
    if (option.starts_with(word)) ++count, found = count > 0 ? option : found;
  };
  std::ranges::for_each(kWithValue, look);
  std::ranges::for_each(kFlags, look);
  return count == 1 || count < 0 ? found : string_view();
}

std::optional<std::int64_t> number(const std::string& text) {
  std::int64_t value = 0;
  const auto [stopped, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || stopped != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/// "8", "gpu", "auto", "2:2".
std::optional<std::int64_t> count_of(const std::string& text, std::int64_t devices) {
  if (text == "gpu" || text == "auto" || text == "cuda") return devices;
  const std::size_t colon = text.find(':');
  const auto least = number(text.substr(0, colon));
  if (colon != std::string::npos && number(text.substr(colon + 1)) != least) return std::nullopt;
  return least && *least > 0 ? least : std::nullopt;
}

}  // namespace

std::string launcher_of(const Words& program) {
  const std::optional<LauncherWords> place = launcher_words(program);
  return place ? place->name : "";
}

std::optional<LaunchLine> read_torchrun(const Words& program, std::int64_t devices) {
  const std::optional<LauncherWords> place = launcher_words(program);
  if (!place || (place->name != "torchrun" && !place->name.starts_with("torch.distributed."))) return std::nullopt;
  LaunchLine line{.launcher = place->name,
                  .program = {program.begin(), program.begin() + static_cast<std::ptrdiff_t>(place->at)}};
  bool module = false, python = true;
  std::int64_t host = 0;
  std::size_t at = place->arguments;
  for (; at < program.size() && program[at].starts_with("-"); ++at) {
    const std::size_t equals = program[at].find('=');
    const string_view option = option_of(program[at].substr(0, equals));
    if (option.empty() || option == "run-path") return std::nullopt;
    if (std::ranges::find(kFlags, option) != kFlags.end()) {
      if (equals != std::string::npos) return std::nullopt;
      module = module || option == "module";
      python = python && option != "no-python";
      continue;
    }
    if (equals == std::string::npos && ++at == program.size()) return std::nullopt;
    const std::string value = equals == std::string::npos ? program[at] : program[at].substr(equals + 1);
    if (option != "nnodes" && option != "nproc-per-node" && option != "node-rank") continue;
    const std::optional<std::int64_t> count = option == "node-rank" ? number(value) : count_of(value, devices);
    if (!count) return std::nullopt;
    (option == "nnodes" ? line.hosts : option == "node-rank" ? host : line.ranks_per_host) = *count;
  }
  if (at == program.size() || host >= line.hosts) return std::nullopt;
  line.first_rank = host * line.ranks_per_host;
  if (python) {
    line.program.push_back(interpreter_of(program[place->at], "python3"));
    if (module) line.program.emplace_back("-m");
  }
  line.program.insert(line.program.end(), program.begin() + static_cast<std::ptrdiff_t>(at), program.end());
  return line;
}

}  // namespace shard::dryrun
