// Gives an option the text that a command line, a file or another tool's configuration has for it.
#include "sim/cli/command_line.h"
#include "sim/cli/foreign_options.h"
#include "sim/cli/lists.h"

namespace shard::cli {
namespace {

std::string where_of(const OptionState& state, const Origin& origin) {
  const std::string option = spelled(state);
  return origin.source == Source::file ? origin.where + " (" + option + ")" : option;
}

/// In our own words.
std::string own_text(const OptionState& state, const std::string& given) {
  return state.words.empty() ? given : own_word(given, state.words);
}

Result<void> check_not_empty(const OptionState& state, const std::string& given, const Origin& origin) {
  if (!given.empty() || state.takes_empty) return {};
  const std::string value = state.value_name.empty() ? "true or false" : state.value_name;
  return Error{Errc::usage, "the value is empty", where_of(state, origin),
               state.is_required ? value : value + ", or leave " + spelled(state) + " out"};
}

}  // namespace

std::string spelled(const OptionState& state) {
  return (state.is_positional ? "" : "--") + state.name;
}

Result<void> Command::set(OptionState& state, const std::string& given, const Origin& origin) {
  if (!takes_list(state)) return store(state, given, origin);
  const std::vector<std::string> values = values_in(given, state.between);
  if (values.size() == 1) return store(state, values.front(), origin);
  // A wrong value is wrong whichever is chosen. Those that add to what is there are plain text.
  for (const std::string& value : values) {
    if (auto done = check_not_empty(state, value, origin); !done) return done;
    if (state.several) continue;
    if (auto done = state.read(own_text(state, value), where_of(state, origin), state.range); !done) return done;
  }
  return store(state, values[choose_(state.name, values)], origin);
}

Result<void> Command::store(OptionState& state, const std::string& given, const Origin& origin) {
  if (auto done = check_not_empty(state, given, origin); !done) return done;
  const std::string text = own_text(state, given);
  if (state.origin.source == origin.source && !state.texts.empty() && !state.several) {
    return Error{Errc::usage, spelled(state) + " is given twice ('" + state.texts.back() + "', '" + text + "')",
                 origin.source == Source::file ? origin.where : "", "leave one of them out"};
  }
  if (state.several && state.texts.empty() && state.clear) state.clear();
  auto done = state.read(text, where_of(state, origin), state.range);
  if (!done) return done;
  state.texts.push_back(text);
  state.origin = origin;
  return {};
}

}  // namespace shard::cli
