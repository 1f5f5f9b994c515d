// Resolves the argument and reads one file of bounded size.
#include "sim/model/read_model.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/model/closest_name.h"
#include "sim/model/examples.h"
#include "sim/model/known_models.h"
#include "traces/base/read_file.h"

namespace shard::model {
namespace {

namespace fs = std::filesystem;

/// A config.json is a few kilobytes; far more means that the argument is something else, such as the weights.
constexpr Bytes kLargestConfig{16 << 20};
constexpr std::string_view kWhat = "model description";

Error unreadable(const fs::path& path, const std::string& why) {
  return Error{Errc::no_input, "cannot read the " + std::string(kWhat) + ": " + why, path.string(), ""};
}

/// A readable name for the model in a file: the directory's for config.json, else the file's own.
std::string name_of(const fs::path& file) {
  if (file.filename() != "config.json") return file.stem().string();
  std::error_code ignored;
  const std::string parent = fs::weakly_canonical(file, ignored).parent_path().filename().string();
  return parent.empty() ? "model" : parent;
}

/// A description itself, not the name of one.
bool is_description(std::string_view argument) {
  return argument.starts_with('{');
}

constexpr std::string_view kLayers = "#layers=";

/// An argument without what stands behind it.
struct Asked {
  std::string_view base;
  std::optional<std::int64_t> layers{};
};

Asked split(std::string_view argument) {
  const std::size_t at = argument.rfind(kLayers);
  if (at == std::string_view::npos) return {argument};
  const std::string_view number = argument.substr(at + kLayers.size());
  std::int64_t layers = 0;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), layers);
  if (parsed.ec != std::errc{} || parsed.ptr != number.data() + number.size()) return {argument};
  return {argument.substr(0, at), layers};
}

Error unknown_name(std::string_view argument) {
  const std::vector<std::string> all = model_names();
  std::string list;
  for (const std::string& name : all) (list += list.empty() ? "" : ", ") += name;
  const std::vector<std::string_view> names(all.begin(), all.end());
  std::string help = did_you_mean(argument, names);
  if (!help.empty()) help += ' ';
  help += "known: " + list + "; or give the path of a config.json";
  std::string what = "'";
  what += argument;
  what += "' is neither a known model nor a file or directory";
  return Error{Errc::usage, std::move(what), "--model", std::move(help)};
}

/// The known model that a hub's name means: "llama-3.1-8b" for "meta-llama/Llama-3.1-8B-Instruct"; empty for none.
std::string known_of_hub(std::string_view argument) {
  std::string name(argument.substr(argument.rfind('/') + 1));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string best;
  for (const std::string& known : model_names())
    if (name.starts_with(known) && known.size() > best.size()) best = known;
  return best;
}

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names = known_model_names();
  for (const ExampleModel& example : example_models()) names.emplace_back(example.name);
  std::sort(names.begin(), names.end());
  return names;
}

std::string with_layers(std::string_view argument, std::int64_t layers) {
  return std::string(split(argument).base) + std::string(kLayers) + std::to_string(layers);
}

bool is_model_name(std::string_view whole) {
  const std::string_view argument = split(whole).base;
  return find_example_model(argument).has_value() || known_model_config(argument).has_value();
}

std::optional<fs::path> model_file(std::string_view whole) {
  const std::string_view argument = split(whole).base;
  if (is_description(argument) || is_model_name(argument)) return std::nullopt;
  const fs::path path{argument};
  std::error_code fault;
  return fs::is_directory(path, fault) ? path / "config.json" : path;
}

Result<ConfiguredModel> read_configured_model(std::string_view whole) {
  const auto [argument, layers] = split(whole);
  const auto named = [more = whole.substr(argument.size())](std::string name) { return name.append(more); };
  if (is_description(argument)) return parse_config(argument, named("described"), "--model", layers);
  if (const auto example = find_example_model(argument))
    return parse_config(example->config_json, named(std::string(example->name)), example->name, layers);
  if (const auto known = known_model_config(argument))
    return parse_config(*known, named(std::string(argument)), argument, layers);
  const fs::path path = *model_file(argument);
  const bool in_directory = path != fs::path(argument);
  std::error_code fault;
  if (!fs::exists(path, fault)) {
    if (in_directory) return unreadable(path, "the directory has no config.json");
    const bool looks_like_path = argument.find('/') != std::string_view::npos || argument.ends_with(".json");
    if (looks_like_path || (fault && fault != std::errc::no_such_file_or_directory)) {
      Error error = unreadable(path, fault ? fault.message() : "No such file or directory");
      const std::size_t slash = argument.find('/');
      const bool is_of_hub = slash != 0 && slash == argument.rfind('/') && !argument.ends_with(".json") &&
                             !fs::exists(fs::path(argument).parent_path(), fault);
      if (const std::string known = known_of_hub(argument); !known.empty())
        error.help =
            "a hub's name? Nothing is downloaded: --model " + known + " is known here, or give its config.json";
      else if (is_of_hub)
        error.help = "a hub's name? Nothing is downloaded: give the config.json that lies there";
      return error;
    }
    return unknown_name(argument);
  }
  Result<std::string> text = read_file(path, kWhat, kLargestConfig, "give the config.json beside the weights");
  if (!text) return text.error();
  return parse_config(*text, named(name_of(path)), path.string(), layers);
}

Result<Model> read_model(std::string_view argument) {
  Result<ConfiguredModel> configured = read_configured_model(argument);
  if (!configured) return configured.error();
  return std::move(configured->model);
}

}  // namespace shard::model
