// Resolves the argument and reads one file of bounded size.
#include "sim/model/read_model.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "sim/model/closest_name.h"
#include "sim/model/examples.h"

namespace shard::model {
namespace {

namespace fs = std::filesystem;

/// A config.json is a few kilobytes; far more means that the argument is something else, such as the weights.
constexpr std::size_t kLargestConfig = std::size_t{16} << 20;

Error unreadable(const fs::path& path, const std::string& why, std::string help = {}) {
  return Error{Errc::no_input, "cannot read the model description: " + why, path.string(), std::move(help)};
}

Result<std::string> read_text(const fs::path& path) {
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return unreadable(path, std::strerror(errno));
  std::string text;
  std::array<char, 65536> block{};
  while (stream && text.size() <= kLargestConfig) {
    stream.read(block.data(), block.size());
    text.append(block.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (stream.bad()) return unreadable(path, std::strerror(errno));
  if (text.size() > kLargestConfig) {
    return Error{Errc::malformed, "is larger than 16 MiB, so it is not a config.json", path.string(),
                 "give the config.json beside the weights"};
  }
  return text;
}

/// A readable name for the model in a file: the directory's for config.json, else the file's own.
std::string name_of(const fs::path& file) {
  if (file.filename() != "config.json") return file.stem().string();
  std::error_code ignored;
  const std::string parent = fs::weakly_canonical(file, ignored).parent_path().filename().string();
  return parent.empty() ? "model" : parent;
}

Error unknown_name(std::string_view argument) {
  std::vector<std::string_view> names;
  std::string list;
  for (const ExampleModel& example : example_models()) {
    names.push_back(example.name);
    if (!list.empty()) list += ", ";
    list += example.name;
  }
  std::string help = did_you_mean(argument, names);
  if (!help.empty()) help += ' ';
  help += "known: " + list + "; or give the path of a config.json";
  std::string what = "'";
  what += argument;
  what += "' is neither a known model nor a file or directory";
  return Error{Errc::usage, std::move(what), "--model", std::move(help)};
}

}  // namespace

Result<ConfiguredModel> read_configured_model(std::string_view argument) {
  if (const auto example = find_example_model(argument)) {
    return parse_config(example->config_json, example->name, example->name);
  }
  fs::path path{argument};
  std::error_code fault;
  const fs::file_status status = fs::status(path, fault);
  if (!fs::exists(status)) {
    const bool looks_like_path = argument.find('/') != std::string_view::npos || argument.ends_with(".json");
    if (looks_like_path || (fault && fault != std::errc::no_such_file_or_directory)) {
      return unreadable(path, fault ? fault.message() : "No such file or directory");
    }
    return unknown_name(argument);
  }
  if (fs::is_directory(status)) {
    path /= "config.json";
    if (!fs::exists(path, fault)) return unreadable(path, "the directory has no config.json");
  }
  if (!fs::is_regular_file(path, fault) && fs::is_directory(path, fault)) {
    return unreadable(path, "it is a directory");
  }
  Result<std::string> text = read_text(path);
  if (!text) return text.error();
  return parse_config(*text, name_of(path), path.string());
}

Result<Model> read_model(std::string_view argument) {
  Result<ConfiguredModel> configured = read_configured_model(argument);
  if (!configured) return configured.error();
  return std::move(configured->model);
}

}  // namespace shard::model
