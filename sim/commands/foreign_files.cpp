// Reads configurations of other tools into a command's options, and prints what became of them.
#include "sim/commands/foreign_files.h"

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <regex>

#include "sim/cli/table.h"
#include "sim/commands/foreign_settings.h"
#include "sim/foreign/tools.h"
#include "sim/model/read_model.h"

namespace shard::commands {
namespace {

using Json = nlohmann::ordered_json;

/// Reasons that an answer names beside the count.
constexpr std::size_t kReasonsNamed = 3;

foreign::Given given_to(const cli::Command& command) {
  foreign::Given given;
  given.option = [&command](std::string_view option) {
    return command.has(option) ? command.typed(option) : std::optional<std::string>{};
  };
  given.framework_answers = [&command] { return framework_may_answer(command); };
  given.hidden_size = [&command]() -> std::optional<std::int64_t> {
    const std::optional<std::string> name = command.has("model") ? command.typed("model") : std::nullopt;
    if (!name) return std::nullopt;
    const Result<model::Model> model = model::read_model(*name);
    if (!model || model->hidden < 1) return std::nullopt;
    return model->hidden;
  };
  return given;
}

/// What the file says becomes options of the command.
Result<void> take(cli::Command& command, ForeignFiles& files, const foreign::Tool& tool, const foreign::Text& text) {
  Result<foreign::ForeignConfig> config = foreign::read_as(tool, text, given_to(command));
  if (!config) return config.error();
  keep_what_makes_sense(command, *config);
  std::vector<foreign::Setting> doubled;
  for (const foreign::Setting& each : config->settings) {
    if (command.given(each.option)) {
      doubled.push_back(each);
      continue;
    }
    if (!each.file.empty()) command.reads_also(text.file + " (it names " + each.file + ")", each.file);
    const std::string line = (each.file.empty() ? text.file : each.file) + ":" + std::to_string(each.line);
    const cli::Origin origin{cli::Source::file, each.certainty == foreign::Certainty::assumed ? "assumed" : line};
    if (const Result<void> ok = command.offer(each.option, each.value, origin); !ok)
      return Error{.code = Errc::contradiction,
                   .what = each.pointer + ": " + ok.error().what,
                   .where = line + " (--" + each.option + ")",
                   .help = ok.error().help};
  }
  for (const foreign::Setting& each : doubled) {
    std::erase(config->settings, each);
    std::erase(config->understood, each.pointer);
    config->left_out.push_back({each.pointer, command.describe(each.option) + " counts"});
  }
  files.read.push_back({text.file, std::move(*config)});
  return {};
}

/// Lines of our own form of a file of options.
bool has_option_lines(const std::string& content) {
  static const std::regex kLine("(^|\\n)[ \\t]*(--)?[a-z][a-z0-9-]*[ \\t]*=");
  return std::regex_search(content.substr(0, 4096), kLine);
}

/// Returns whether --config names a file of another tool.
Result<bool> read_files(cli::Command& command, ForeignFiles& files) {
  if (files.print_config) command.require_nothing();
  for (const foreign::Tool& tool : foreign::tools()) {
    const auto path = files.paths.find(tool.option);
    if (path == files.paths.end() || path->second.empty()) continue;
    const Result<foreign::Text> text = foreign::read_text(path->second);
    if (!text) return text.error();
    if (Result<void> ok = take(command, files, tool, *text); !ok) return ok.error();
  }
  if (command.config_file().empty()) return false;
  const Result<foreign::Text> text = foreign::read_text(command.config_file());
  if (!text) return text.error();
  const foreign::Tool* const tool = foreign::recognise(*text);
  if (tool == nullptr) {
    if (!text->is_json && (!text->tree || has_option_lines(text->content))) return false;
    return Error{.code = Errc::contradiction,
                 .what = "neither 'name = value' lines nor a configuration that Shardscope knows",
                 .where = text->file,
                 .help = "--ds-config " + text->file + " if it is DeepSpeed's"};
  }
  if (tool->read == nullptr) return foreign::belongs_to(*tool, *text);
  if (Result<void> ok = take(command, files, *tool, *text); !ok) return ok.error();
  return true;
}

/// Every option with a value: its name, the value, where that came from, and the key of a foreign file.
struct Shown {
  std::string name, value, origin, key;
};

std::vector<Shown> shown_options(const cli::Command& command, const ForeignFiles& files) {
  constexpr std::string_view kOfPrinting[] = {"json", "format", "print-config"};
  std::vector<Shown> all;
  const std::vector<cli::Effective> effective = command.effective();
  const auto number = [&](std::string_view name) -> std::int64_t {
    const auto at = std::ranges::find(effective, name, &cli::Effective::name);
    std::int64_t value = 1;
    if (at == effective.end() || !cli::read_value(at->value, "", {}, value)) return 1;
    return std::max<std::int64_t>(1, value);
  };
  for (const cli::Effective& each : effective) {
    if (std::ranges::find(kOfPrinting, each.name) != std::end(kOfPrinting)) continue;
    Shown shown{each.name, each.value, each.origin.where, ""};
    for (const ForeignFiles::Read& read : files.read)
      if (each.origin.source == cli::Source::file)
        for (const foreign::Setting& setting : read.config.settings)
          if (setting.option == each.name) shown.key = setting.pointer;
    if (each.name == "global-batch" && each.origin.source == cli::Source::fallback) {
      const std::int64_t ranks = std::max<std::int64_t>(1, number("world-size") / number("tensor-parallel"));
      if (number("micro-batch") <= INT64_MAX / ranks) shown.value = std::to_string(number("micro-batch") * ranks);
      shown.origin = "derived";
    }
    all.push_back(std::move(shown));
  }
  return all;
}

Json left_out_json(const foreign::ForeignConfig& config) {
  Json list = Json::array();
  for (const foreign::LeftOut& each : config.left_out) list.push_back({{"key", each.key}, {"reason", each.reason}});
  return list;
}

cli::Table options_table(const std::vector<Shown>& options) {
  cli::Table table{.columns = {{.key = "name", .title = "option", .align = cli::Align::left},
                               {.key = "value", .title = "value", .align = cli::Align::left},
                               {.key = "origin", .title = "from", .align = cli::Align::left},
                               {.key = "key", .title = "key", .align = cli::Align::left}},
                   .rows = {}};
  for (const Shown& each : options) table.rows.push_back({each.name, each.value, each.origin, each.key});
  return table;
}

cli::Table left_out_table(const foreign::ForeignConfig& config) {
  cli::Table table{.columns = {{.key = "key", .title = "left out", .align = cli::Align::left},
                               {.key = "reason", .title = "because", .align = cli::Align::left}},
                   .rows = {}};
  for (const foreign::LeftOut& each : config.left_out) table.rows.push_back({each.key, each.reason});
  return table;
}

std::string keys(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " key" : " keys");
}

}  // namespace

ConfiguredFramework configured_framework(const ForeignFiles& files) {
  ConfiguredFramework found;
  for (const ForeignFiles::Read& read : files.read)
    if (!read.config.framework.empty()) found = {.name = read.config.framework, .file = read.file};
  return found;
}

void add_foreign_files(cli::Command& command, ForeignFiles& files) {
  cli::Group group = command.group("Files of other tools");
  for (const foreign::Tool& tool : foreign::tools())
    if (tool.read != nullptr)
      group.add(std::string(tool.option), &files.paths[std::string(tool.option)], "FILE", std::string(tool.help))
          .reads_file()
          .may_differ("what it says of options is compared");
  group
      .add_flag("print-config", &files.print_config,
                "print every option with its value and where that came from, and what each key of a file became; "
                "nothing else is done")
      .once();
  command.before_config([&command, &files] { return read_files(command, files); });
}

Result<void> check_predictable(const ForeignFiles& files) {
  for (const ForeignFiles::Read& read : files.read)
    for (const foreign::NotPredicted& each : read.config.not_predicted)
      return Error{.code = Errc::contradiction,
                   .what = each.key + ": " + each.reason + ", so this run of " + read.config.tool + " is not predicted",
                   .where = read.file + ":" + std::to_string(each.line),
                   .help = "1 there; --print-config says what became of every other key"};
  return {};
}

bool holds_options(const std::string& path) {
  // A pipe with a name says what it says once: to who reads recordings. A shell's <(...) is a link.
  std::error_code fault;
  if (std::filesystem::is_fifo(std::filesystem::symlink_status(path, fault))) return false;
  const Result<foreign::Text> text = foreign::read_text(path);
  if (!text || text->content.find('\0') != std::string::npos) return false;
  return foreign::recognise(*text) != nullptr || (!text->is_json && has_option_lines(text->content));
}

bool takes_foreign_file(std::string_view option) {
  return foreign::tool_of_option(option) != nullptr;
}

std::optional<int> printed_config(const cli::Command& command, const ForeignFiles& files, cli::Format format) {
  if (!files.print_config) return std::nullopt;
  const std::vector<Shown> options = shown_options(command, files);
  if (format == cli::Format::json) {
    Json j = cli::json_document(command.name());
    j["options"] = Json::array();
    for (const Shown& each : options) {
      Json option{{"name", each.name}, {"value", each.value}, {"origin", each.origin}};
      if (!each.key.empty()) option["key"] = each.key;
      j["options"].push_back(std::move(option));
    }
    j["understood"] = Json::array();
    j["left_out"] = Json::array();
    for (const ForeignFiles::Read& read : files.read) {
      for (const std::string& key : read.config.understood) j["understood"].push_back(key);
      for (Json& each : left_out_json(read.config)) j["left_out"].push_back(std::move(each));
    }
    std::cout << cli::json_text(j);
    return 0;
  }
  std::cout << cli::render(options_table(options), format, cli::style_of(1));
  if (format == cli::Format::table)
    for (const ForeignFiles::Read& read : files.read) {
      cli::print(std::cout, "\n" + read.file + ", of " + read.config.tool + ": " + keys(read.config.understood.size()) +
                                " understood, " + keys(read.config.left_out.size()) + " left out\n");
      if (!read.config.left_out.empty())
        std::cout << '\n' << cli::render(left_out_table(read.config), format, cli::style_of(1));
    }
  return 0;
}

std::string foreign_lines(const ForeignFiles& files) {
  std::string text;
  for (const ForeignFiles::Read& read : files.read) {
    const std::vector<foreign::LeftOut>& left = read.config.left_out;
    text += "options   from " + read.file + ", of " + read.config.tool + ": " + keys(read.config.understood.size()) +
            " understood, " + std::to_string(left.size()) + " left out";
    if (!left.empty()) text += " (--print-config: why)";
    text += '\n';
    for (std::size_t i = 0; i < std::min(kReasonsNamed, left.size()); ++i)
      text += "          " + left[i].key + ": " + left[i].reason + '\n';
    if (left.size() > kReasonsNamed) text += "          and " + std::to_string(left.size() - kReasonsNamed) + " more\n";
  }
  return text;
}

void print_foreign_files(cli::Format format, const ForeignFiles& files) {
  if (format != cli::Format::json)
    cli::print(format == cli::Format::table ? std::cout : std::cerr, foreign_lines(files));
}

Json to_json(const ForeignFiles& files) {
  Json list = Json::array();
  for (const ForeignFiles::Read& read : files.read)
    list.push_back({{"file", read.file},
                    {"tool", read.config.tool},
                    {"understood", read.config.understood},
                    {"left_out", left_out_json(read.config)}});
  return list;
}

}  // namespace shard::commands
