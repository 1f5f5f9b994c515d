// What ranks of one run must agree about: every option's value in force, but of those that say why they may differ.
#include "sim/cli/command_line.h"

namespace shard::cli {
namespace {

/// What nobody gave, as its user would type it.
std::string shown_default(const OptionState& state, const std::string& value) {
  if (state.value_name.empty()) {
    const bool on = value == "true";
    return (on ? "--" : state.negatable ? "--no-" : "no --") + state.name + " (default)";
  }
  const std::string& text = state.default_text.empty() ? value : state.default_text;
  return text.empty() ? "no --" + state.name : "--" + state.name + " " + text + " (default)";
}

std::string texts_of(const OptionState& state) {
  std::string all;
  for (const std::string& text : state.texts) all.append(all.empty() ? "" : " ").append(text);
  return all;
}

}  // namespace

std::vector<Settled> Command::settled() const {
  std::vector<Settled> all;
  for (const auto& each : groups_)
    for (const auto& state : each->options) {
      // What a file says of options is compared, wherever it lies.
      if (state->name == "help" || state->name == "config" || !state->may_differ.empty()) continue;
      Settled option{.name = state->name, .value = state->value ? state->value() : texts_of(*state), .shown = {}};
      option.shown = state->texts.empty() ? shown_default(*state, option.value) : describe(state->name);
      if (state->file_use == FileUse::written) {
        option.value = option.value.empty() ? "" : "given";
      } else if (state->file_use == FileUse::read && !option.value.empty()) {
        option.files = state->files ? state->files(option.value) : std::vector<std::filesystem::path>{option.value};
      }
      all.push_back(std::move(option));
    }
  return all;
}

}  // namespace shard::cli
