// For tests of readers: a file's content in, its settings and what became of its keys out, as words.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "sim/foreign/document.h"
#include "sim/foreign/foreign_config.h"
#include "sim/foreign/tools.h"

namespace shard::foreign {

using Options = std::map<std::string, std::string, std::less<>>;

/// What a command line gives.
inline Given given_by(Options options) {
  Given given;
  given.option = [options = std::move(options)](std::string_view name) -> std::optional<std::string> {
    const auto at = options.find(name);
    return at == options.end() ? std::nullopt : std::optional(at->second);
  };
  return given;
}

inline Result<ForeignConfig> read_with(std::string_view option, std::string content, const Options& options = {}) {
  return read_as(*tool_of_option(option), text_of("file", std::move(content)), given_by(options));
}

/// "global-batch=32 micro-batch=4 stage=3", by name; what was assumed with a '?' behind it.
inline std::string settings_of(const Result<ForeignConfig>& config) {
  if (!config) return to_string(config.error());
  Options sorted;
  for (const Setting& each : config->settings)
    sorted[each.option] = each.value + (each.certainty == Certainty::assumed ? "?" : "");
  std::string text;
  for (const auto& [name, value] : sorted) text += (text.empty() ? "" : " ") + name + "=" + value;
  return text;
}

/// Why a key was left out; "understood", or "neither".
inline std::string fate_of(const Result<ForeignConfig>& config, std::string_view key) {
  if (!config) return to_string(config.error());
  for (const LeftOut& each : config->left_out)
    if (each.key == key) return each.reason;
  return std::ranges::find(config->understood, key) != config->understood.end() ? "understood" : "neither";
}

}  // namespace shard::foreign
