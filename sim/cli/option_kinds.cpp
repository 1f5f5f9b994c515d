// Options whose values are read in other ways than their variable's type says: names, lists, anything else.
#include <algorithm>

#include "sim/cli/closest.h"
#include "sim/cli/command_line.h"

namespace shard::cli {

std::string Group::joined(std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

Option Group::add_words(std::string name, std::span<const Named> words, std::function<std::size_t()> current,
                        std::function<void(std::size_t)> chosen, std::string help) {
  std::vector<std::string> names;
  std::string value_name;
  for (const Named& each : words) {
    names.push_back(each.name);
    value_name.append(value_name.empty() ? "" : "|").append(each.name);
    if (!each.help.empty()) help += "\n" + each.name + ": " + each.help;
  }
  OptionState& state = declare(std::move(name), std::move(value_name), std::move(help));
  state.value = [current = std::move(current), names] {
    const std::size_t index = current();
    return index < names.size() ? names[index] : std::string();
  };
  state.default_text = state.value();
  state.words = names;
  state.read = [chosen = std::move(chosen), names = std::move(names)](std::string_view text, std::string_view where,
                                                                      const Range&) -> Result<void> {
    if (const auto at = std::ranges::find(names, text); at != names.end()) {
      chosen(static_cast<std::size_t>(at - names.begin()));
      return {};
    }
    return Error{Errc::usage, "'" + std::string(text) + "' is not a value of this option", std::string(where),
                 closest(text, names) ? suggest(text, names) + " (" + joined(names) + ")" : "one of " + joined(names)};
  };
  return Option(state);
}

Option Group::add_list(std::string name, std::vector<std::string>* target, std::string value_name, std::string help) {
  OptionState& state = declare(std::move(name), std::move(value_name), std::move(help));
  state.default_text = show_value(*target);
  state.several = true;
  state.between = ';';
  state.value = [target] { return show_value(*target); };
  state.clear = [target] { target->clear(); };
  state.read = [target](std::string_view text, std::string_view where, const Range&) -> Result<void> {
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t comma = std::min(text.find(',', at), text.size());
      if (comma == at)
        return Error{Errc::usage, "'" + std::string(text) + "' has an empty entry", std::string(where),
                     "one comma between two entries"};
      target->emplace_back(text.substr(at, comma - at));
      at = comma + 1;
    }
    return {};
  };
  return Option(state);
}

Option Group::add_custom(std::string name, std::string value_name, std::string help, Reader read) {
  OptionState& state = declare(std::move(name), std::move(value_name), std::move(help));
  state.read = std::move(read);
  return Option(state);
}

}  // namespace shard::cli
