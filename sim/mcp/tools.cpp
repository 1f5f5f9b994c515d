// Schemas, command lines and answers of tools.
#include "sim/mcp/tools.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "sim/cli/output.h"

namespace shard::mcp {
namespace {

constexpr std::array<std::string_view, 7> kOffered{"simulate", "dryrun",   "inspect", "search",
                                                   "sweep",    "validate", "compare"};
/// What an argument called "help" may be, of a tool that has more options than its schema tells.
constexpr const char* kAll = "all";
/// So many names are told of an option that has other values, too.
constexpr std::size_t kMostExamples = 8;
/// The server says which form the answer has.
constexpr std::array<std::string_view, 3> kOwn{"json", "format", "help"};

bool is_own(std::string_view name) {
  return std::ranges::find(kOwn, name) != kOwn.end();
}

const cli::OptionDescription* find_option(const cli::CommandDescription& command, std::string_view name) {
  for (const cli::GroupDescription& group : command.groups)
    for (const cli::OptionDescription& each : group.options)
      if (each.name == name || std::ranges::find(each.aliases, name) != each.aliases.end()) return &each;
  return nullptr;
}

/// The argument that stands for one without a name: "FILE" is "file", where no option is called so.
std::string argument_name(const cli::CommandDescription& command, std::string_view placeholder) {
  std::string name;
  for (const char c : placeholder) name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return find_option(command, name) == nullptr ? name : name + "-argument";
}

/// The argument that stands for what is behind the options.
std::string behind_name(const cli::CommandDescription& command) {
  return argument_name(command, "command");
}

/// May the value be one of these words and nothing else?
bool is_closed(const cli::OptionDescription& option) {
  std::string_view rest = option.value_name;
  if (option.values.empty() || option.kind != "text" || option.is_file || rest.empty()) return false;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find('|'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    if (part.find('[') != std::string_view::npos || cli::words_of(part).empty()) return false;
  }
  return true;
}

Json number(double value) {
  if (value == std::floor(value) && std::abs(value) < 9e15) return static_cast<std::int64_t>(value);
  return value;
}

Json value_schema(const cli::OptionDescription& option) {
  if (option.kind == "flag") return {{"type", "boolean"}};
  if (!option.list_separator.empty()) return {{"type", "string"}};
  Json schema{{"type", option.kind == "text" ? "string" : option.kind}};
  if (option.least) schema["minimum"] = number(*option.least);
  if (option.most) schema["maximum"] = number(*option.most);
  if (is_closed(option)) {
    schema["enum"] = option.values;
  } else if (!option.values.empty() && option.kind == "text") {
    const std::size_t count = std::min(option.values.size(), kMostExamples);
    schema["examples"] = std::vector<std::string>(option.values.begin(), option.values.begin() + std::ptrdiff_t(count));
  }
  return schema;
}

Json property_of(const cli::OptionDescription& option) {
  std::string help = option.help;
  // The shell's word for it is the value's form: "ELEMS|search|none".
  if (option.kind == "text" && !is_closed(option)) help += " [" + option.value_name + "]";
  if (!option.list_separator.empty() && option.kind != "flag")
    help += "; a list of values, separated by '" + option.list_separator + "', asks for all of them";
  if (!option.default_text.empty()) help += " (default: " + option.default_text + ")";
  if (option.is_required) help += " (required)";
  Json schema = value_schema(option);
  if (option.several) schema = {{"type", "array"}, {"items", std::move(schema)}};
  schema["description"] = std::move(help);
  return schema;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.front() != '-' && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  });
}

/// A scalar as it is typed.
std::optional<std::string> text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean() || value.is_number()) return value.dump();
  return std::nullopt;
}

Result<std::vector<std::string>> texts_of(const std::string& name, const Json& value) {
  std::vector<std::string> texts;
  for (const Json& each : value.is_array() ? value : Json::array({value})) {
    std::optional<std::string> text = text_of(each);
    if (!text || text->find('\0') != std::string::npos)
      return Error{Errc::usage, "'" + name + "' has no value that a command line can have", "",
                   "text, a number, true or false, or a list of these"};
    texts.push_back(std::move(*text));
  }
  return texts;
}

Result<void> add_option(const cli::OptionDescription* option, std::string name, const Json& value,
                        std::vector<std::string>& words) {
  const bool is_flag = option != nullptr && option->kind == "flag";
  if (is_flag && (value == "true" || value == "false"))
    return add_option(option, std::move(name), Json(value == "true"), words);
  if (value.is_boolean() && (is_flag || option == nullptr)) {
    if (value.get<bool>())
      words.push_back("--" + name);
    else if (option == nullptr || option->negatable)
      words.push_back("--no-" + name);
    return {};
  }
  Result<std::vector<std::string>> texts = texts_of(name, value);
  if (!texts) return texts.error();
  if (option != nullptr && !option->list_separator.empty() && texts->size() > 1) {
    std::string list;
    for (const std::string& each : *texts) list.append(list.empty() ? "" : option->list_separator).append(each);
    *texts = {std::move(list)};
  }
  for (const std::string& each : *texts) words.push_back("--" + name + "=" + each);
  return {};
}

/// What a command said that ended without an object of its own: by a signal, or before it knew that JSON was asked for.
Json error_in(const Finished& finished) {
  std::string_view text = finished.err;
  while (text.ends_with('\n')) text.remove_suffix(1);
  return {{"error", {{"exit_code", finished.exit_code}, {"what", std::string(text)}}}};
}

Json text_block(std::string text) {
  return {{"type", "text"}, {"text", std::move(text)}};
}

}  // namespace

std::span<const std::string_view> offered_commands() {
  return kOffered;
}

Json tool_of(const cli::CommandDescription& command) {
  Json properties = Json::object();
  for (const cli::OptionDescription& each : command.positionals)
    properties[argument_name(command, each.name)] = property_of(each);
  bool has_more = false;
  for (const cli::GroupDescription& group : command.groups) {
    for (const cli::OptionDescription& each : group.options) {
      if (is_own(each.name)) continue;
      has_more = has_more || !each.is_common;
      if (each.is_common) properties[each.name] = property_of(each);
    }
  }
  if (!command.followed_by.empty())
    properties[behind_name(command)] = {{"type", "array"},
                                        {"items", {{"type", "string"}}},
                                        {"description", "the program and its arguments: " + command.followed_by}};
  properties["help"] = {{"type", "string"}, {"enum", {kAll}}, {"description", "answers with the command's whole help"}};
  std::string about = command.summary + "\n\n" + command.details;
  if (has_more)
    about +=
        "\nIt has more options than are told here, which are given in the same way, by their names without dashes: "
        "{\"help\": \"all\"} says which.\n";
  // Nothing is "required": help, and flags that list what is known, are asked for by themselves.
  return {{"name", command.name},
          {"description", std::move(about)},
          {"inputSchema", {{"type", "object"}, {"properties", std::move(properties)}}}};
}

Result<std::vector<std::string>> words_of(const cli::CommandDescription& command, const Json& arguments) {
  std::vector<std::string> words{command.name, "--json"};
  std::vector<std::string> behind;
  std::vector<std::string> taken;
  const auto take = [&](const std::string& name, bool is_file) -> Result<void> {
    const auto value = arguments.find(name);
    if (value == arguments.end() || value->is_null()) return {};
    Result<std::vector<std::string>> texts = texts_of(name, *value);
    if (!texts) return texts.error();
    for (std::string& each : *texts) behind.push_back(is_file && each.starts_with('-') ? "./" + each : each);
    return taken.push_back(name), Result<void>();
  };
  for (const cli::OptionDescription& each : command.positionals)
    if (const Result<void> done = take(argument_name(command, each.name), true); !done) return done.error();
  if (!command.followed_by.empty()) {
    behind.emplace_back("--");
    if (const Result<void> done = take(behind_name(command), false); !done) return done.error();
    if (behind.back() == "--") behind.pop_back();
  }
  for (const auto& [given, value] : arguments.items()) {
    if (value.is_null() || std::ranges::find(taken, given) != taken.end()) continue;
    std::string name = given;
    std::ranges::replace(name, '_', '-');
    if (!is_name(name)) return Error{Errc::usage, "'" + given + "' is no option's name", "", "small letters and '-'"};
    if (name == "help") {
      words.emplace_back(value == kAll || value == true ? "--help=all" : "--help");
    } else if (is_own(name)) {
      if (value != true && value != "json")
        return Error{Errc::usage, "'" + given + "' is always JSON here", "", "leave it out"};
    } else if (const Result<void> added = add_option(find_option(command, name), name, value, words); !added) {
      return added.error();
    }
  }
  words.insert(words.end(), behind.begin(), behind.end());
  return words;
}

Json answer_of(const Finished& finished) {
  const Json json = Json::parse(finished.out, nullptr, false);
  const bool answers = json.is_object() ? finished.exit_code == 0 || finished.exit_code == 1 || finished.exit_code == 3
                                        : finished.exit_code == 0;
  Json content = Json::array();
  if (!finished.out.empty()) content.push_back(text_block(finished.out));
  if (!finished.err.empty() || finished.out.empty()) content.push_back(text_block(finished.err));
  Json result{{"content", std::move(content)}};
  if (json.is_object())
    result["structuredContent"] = json;
  else if (!answers)
    result["structuredContent"] = error_in(finished);
  result["isError"] = !answers;
  return result;
}

Json answer_of(const Error& error) {
  return {
      {"content", {text_block(to_string(error))}}, {"structuredContent", cli::error_json(error)}, {"isError", true}};
}

}  // namespace shard::mcp
