// The list of named parameters is summed up as one SHA-256, by which it can be compared with other programs' lists.
#include "sim/commands/inspect_model.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/cli/sizes.h"
#include "sim/commands/printing.h"
#include "sim/model/read_model.h"
#include "traces/base/read_file.h"
#include "traces/base/sha256.h"

namespace shard::commands {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kLargestConfig{16 << 20};

/// "name AxB" of each, in order, joined by newlines.
std::string listed(const ParameterList& parameters) {
  std::string text;
  for (const Parameter& parameter : parameters) {
    if (!text.empty()) text += '\n';
    text += parameter.name + ' ';
    for (std::size_t i = 0; i < parameter.shape.size(); ++i)
      text += (i == 0 ? "" : "x") + std::to_string(parameter.shape[i]);
  }
  return text;
}

nlohmann::ordered_json unsupported(const std::optional<Error>& why) {
  if (!why) return nullptr;
  return why->where + " " + why->what;
}

}  // namespace

bool is_model(const std::string& path) {
  std::error_code fault;
  if (fs::is_directory(path, fault)) return fs::exists(fs::path(path) / "config.json", fault);
  if (!fs::exists(path, fault)) return model::is_model_name(path);
  if (fs::file_size(path, fault) > static_cast<std::uintmax_t>(kLargestConfig.count()) || fault) return false;
  const Result<std::string> text = read_file(path, "file", kLargestConfig);
  if (!text) return false;
  const std::size_t begin = text->find_first_not_of(" \t\r\n");
  if (begin == std::string::npos || (*text)[begin] != '{') return false;
  const auto has = [&](std::string_view key) { return text->find(key) != std::string::npos; };
  return (has("\"model_type\"") || has("\"architectures\"")) && !has("\"traceEvents\"");
}

int inspect_model(const std::string& path, cli::Format format) {
  const Result<model::ConfiguredModel> read = model::read_configured_model(path);
  if (!read) return failed(read.error());
  const model::Model& model = read->model;
  print_notes(model.notes);
  const std::string list = listed(model.parameters);
  const std::int64_t elements = model.parameter_elements();
  if (format == cli::Format::json) {
    nlohmann::ordered_json j = cli::json_document("inspect");
    j["file"] = path;
    j["model"] = model.name;
    j["class"] = model.class_name;
    j["parameter_count"] = elements;
    j["tensor_count"] = model.parameters.size();
    j["parameters_sha256"] = sha256_hex(list);
    j["not_simulated"] = unsupported(model.not_simulated);
    j["not_trained"] = unsupported(model.not_trained);
    j["values"] = nlohmann::ordered_json::array();
    for (const model::ConfigValue& value : read->values)
      j["values"].push_back({{"key", value.key}, {"value", value.value}, {"origin", to_string(value.source)}});
    std::cout << cli::json_text(j);
    return 0;
  }
  std::string text = "model      " + model.name + (model.class_name.empty() ? "" : ", " + model.class_name) + "\n";
  text += "parameters " + cli::elements_and_mib(Elems{elements}, 4) + " in " + std::to_string(model.parameters.size()) +
          " tensors\n";
  text += "sha256     " + sha256_hex(list) + " of the lines \"name AxB\"\n";
  if (model.not_simulated) text += "simulate   no: " + model.not_simulated->what + "\n";
  if (model.not_trained) text += "train      no: " + model.not_trained->what + "\n";
  cli::print(std::cout, text);
  return 0;
}

}  // namespace shard::commands
