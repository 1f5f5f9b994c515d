// Commands as data, and asking the programs for it.
#include "sim/cli/describe.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/cli/command_line.h"
#include "sim/cli/dispatch.h"
#include "sim/cli/output.h"

namespace shard::cli {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const OptionDescription& o) {
  return {{"name", o.name},
          {"letter", o.letter},
          {"aliases", o.aliases},
          {"value_name", o.value_name},
          {"default", o.default_text},
          {"help", o.help},
          {"values", o.values},
          {"list_separator", o.list_separator},
          {"kind", o.kind},
          {"least", o.least ? Json(*o.least) : Json()},
          {"most", o.most ? Json(*o.most) : Json()},
          {"is_common", o.is_common},
          {"is_file", o.is_file},
          {"is_required", o.is_required},
          {"several", o.several},
          {"negatable", o.negatable}};
}

std::optional<double> bound_of(const Json& j) {
  return j.is_null() ? std::nullopt : std::optional(j.get<double>());
}

OptionDescription option_of(const Json& j) {
  return {.name = j.at("name"),
          .letter = j.at("letter"),
          .aliases = j.at("aliases"),
          .value_name = j.at("value_name"),
          .default_text = j.at("default"),
          .help = j.at("help"),
          .values = j.at("values"),
          .list_separator = j.at("list_separator"),
          .kind = j.at("kind"),
          .least = bound_of(j.at("least")),
          .most = bound_of(j.at("most")),
          .is_common = j.at("is_common"),
          .is_file = j.at("is_file"),
          .is_required = j.at("is_required"),
          .several = j.at("several"),
          .negatable = j.at("negatable")};
}

Json to_json(const std::vector<OptionDescription>& options) {
  Json list = Json::array();
  for (const OptionDescription& each : options) list.push_back(to_json(each));
  return list;
}

/// "0..3": its numbers, where they are few.
std::optional<std::vector<std::string>> numbers_of(std::string_view range) {
  const std::size_t dots = range.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  int first = 0;
  int last = 0;
  const char* const end = range.data() + range.size();
  if (std::from_chars(range.data(), range.data() + dots, first).ptr != range.data() + dots) return std::nullopt;
  if (std::from_chars(range.data() + dots + 2, end, last).ptr != end) return std::nullopt;
  constexpr int kFew = 12;
  if (first == 0 && last == 1) return std::nullopt;  // a fraction
  if (last < first || last - first > kFew) return std::nullopt;
  std::vector<std::string> numbers;
  for (int n = first; n <= last; ++n) numbers.push_back(std::to_string(n));
  return numbers;
}

/// What a program prints on stdout; nothing where it does not end with 0.
std::optional<std::string> output_of(const std::string& program, std::vector<std::string> arguments) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  arguments.insert(arguments.begin(), program);
  std::vector<char*> words;
  for (std::string& each : arguments) words.push_back(each.data());
  words.push_back(nullptr);
  pid_t child = -1;
  const int failed = ::posix_spawn(&child, program.c_str(), &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string text;
  std::array<char, 65536> buffer{};
  for (ssize_t got = 0; failed == 0;) {
    got = ::read(ends[0], buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  if (failed != 0) return std::nullopt;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return text;
}

}  // namespace

std::vector<std::string> words_of(std::string_view value_name) {
  std::vector<std::string> words;
  while (!value_name.empty()) {
    const std::size_t end = std::min(value_name.find('|'), value_name.size());
    // "variable[:ELEMS]" may stand by itself.
    const std::string_view part = value_name.substr(0, std::min(value_name.substr(0, end).find('['), end));
    value_name.remove_prefix(std::min(end + 1, value_name.size()));
    if (auto numbers = numbers_of(part)) {
      words.insert(words.end(), numbers->begin(), numbers->end());
      continue;
    }
    const bool is_word = !part.empty() && std::ranges::none_of(part, [](char c) {
      return std::isupper(static_cast<unsigned char>(c)) != 0 ||
             (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_' && c != '.');
    });
    if (is_word && part.find("..") == std::string_view::npos) words.emplace_back(part);
  }
  return words;
}

CommandDescription Command::description() const {
  const bool all_are_shown = uncommon_count() == 0;
  const auto described = [&](const OptionState& state) {
    OptionDescription option{.name = state.name,
                             .letter = state.letter == '\0' ? "" : std::string(1, state.letter),
                             .aliases = state.aliases,
                             .value_name = state.value_name,
                             .default_text = state.default_text,
                             .help = state.help,
                             .values = words_of(state.value_name),
                             .list_separator = takes_list(state) ? std::string(1, state.between) : "",
                             .kind = state.value_name.empty() ? "flag" : state.kind,
                             .least = state.range.least,
                             .most = state.range.most,
                             .is_common = all_are_shown || state.is_common,
                             .is_file = state.file_use != FileUse::none && !state.value_name.empty(),
                             .is_required = state.is_required,
                             .several = state.several,
                             .negatable = state.negatable};
    const auto add = [&](const std::vector<std::string>& more) {
      for (const std::string& each : more)
        if (std::ranges::find(option.values, each) == option.values.end()) option.values.push_back(each);
    };
    add(state.words);
    if (state.known_names != nullptr) add(state.known_names());
    for (const char* const file : {"FILE", "PATH", "DIR"})
      if (state.value_name.find(file) != std::string::npos) option.is_file = true;
    return option;
  };
  CommandDescription all{
      .program = program_, .name = name_, .summary = summary_, .details = details_, .followed_by = followed_by_};
  for (const auto& each : positionals_) all.positionals.push_back(described(*each));
  for (std::size_t i = 1; i <= groups_.size(); ++i) {  // General comes last
    const GroupState& from = *groups_[i % groups_.size()];
    GroupDescription group{.title = from.title, .options = {}};
    for (const auto& each : from.options) group.options.push_back(described(*each));
    if (!group.options.empty()) all.groups.push_back(std::move(group));
  }
  return all;
}

std::string to_json_text(const CommandDescription& command) {
  Json j = json_document(command.name);
  j["program"] = command.program;
  j["summary"] = command.summary;
  j["details"] = command.details;
  j["followed_by"] = command.followed_by;
  j["positionals"] = to_json(command.positionals);
  j["groups"] = Json::array();
  for (const GroupDescription& each : command.groups)
    j["groups"].push_back({{"title", each.title}, {"options", to_json(each.options)}});
  return json_text(j);
}

Result<CommandDescription> parse_description(std::string_view json) {
  try {
    const Json j = Json::parse(json);
    CommandDescription command{.program = j.at("program"),
                               .name = j.at("command"),
                               .summary = j.at("summary"),
                               .details = j.at("details"),
                               .followed_by = j.at("followed_by")};
    for (const Json& each : j.at("positionals")) command.positionals.push_back(option_of(each));
    for (const Json& each : j.at("groups")) {
      GroupDescription group{.title = each.at("title"), .options = {}};
      for (const Json& option : each.at("options")) group.options.push_back(option_of(option));
      command.groups.push_back(std::move(group));
    }
    return command;
  } catch (const Json::exception& fault) {
    return Error{Errc::internal, std::string("a command describes itself wrongly: ") + fault.what(), "", ""};
  }
}

Result<CommandDescription> describe_command(const std::string& program, const std::string& name) {
  const std::optional<std::string> text = output_of(program, {name, "--help=json"});
  if (!text) return Error{Errc::unavailable, "'" + name + "' does not answer", program, ""};
  return parse_description(*text);
}

Result<std::vector<CommandDescription>> describe_commands(const std::string& program) {
  std::vector<CommandDescription> all;
  for (const KnownCommand& known : known_commands()) {
    Result<CommandDescription> command = describe_command(program, std::string(known.name));
    if (!command && command.error().code == Errc::unavailable) continue;
    if (!command) return command.error();
    command->summary = known.summary;
    all.push_back(std::move(*command));
  }
  if (all.empty())
    return Error{Errc::unavailable, "no command answers", program, "run the program as it was installed"};
  return all;
}

std::string own_path() {
  std::error_code fault;
  return std::filesystem::read_symlink("/proc/self/exe", fault).string();
}

}  // namespace shard::cli
