// The arguments of a launch script's command as a document.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "sim/foreign/script_document.h"
#include "sim/foreign/shell_script.h"

namespace shard::foreign {
namespace {

/// Commands whose arguments are none of a training's.
constexpr std::string_view kPlainCommands[] = {"echo", "printf", "mkdir", "sed", "awk",  "grep", "pip",   "pip3",  "cd",
                                               "cat",  "rm",     "cp",    "mv",  "wget", "curl", "conda", "module"};

/// "--name", "-n": dashes alone, as in a heading, name nothing.
bool is_flag(const std::string& word) {
  if (word.size() < 2 || word[0] != '-') return false;
  const std::size_t name = word.find_first_not_of('-');
  if (name == std::string::npos || word[name] == '=') return false;
  return name > 1 || std::isalpha(static_cast<unsigned char>(word[1])) != 0;
}

bool is_program(const std::string& word) {
  return word.ends_with(".py") && !is_flag(word);
}
bool is_script(const std::string& word) {
  return word.ends_with(".sh") || word.ends_with(".bash") || word.ends_with(".slurm");
}

/// "--name=value" and "--name" alike.
std::string flag_name(const std::string& word) {
  const std::size_t first = word.find_first_not_of('-');
  return word.substr(first, std::min(word.find('='), word.size()) - first);
}

/// As argparse's types would read it: a number where it is one.
Value typed(const std::string& text, int line) {
  const char* end = text.data() + text.size();
  std::int64_t integer = 0;
  if (const auto [stop, code] = std::from_chars(text.data(), end, integer); code == std::errc{} && stop == end)
    return integer_value(integer, line);
  double real = 0;
  const std::size_t first = text.find_first_of("0123456789");
  if (first != std::string::npos && first < 3)
    if (const auto [stop, code] = std::from_chars(text.data(), end, real);
        code == std::errc{} && stop == end && std::isfinite(real))
      return real_value(real, line);
  return text_value(text, line);
}

class LaunchDocument {
 public:
  LaunchDocument(const ShellScript& script, std::span<const std::string_view> flags) : script_(script), flags_(flags) {}

  std::optional<ScriptDocument> run(std::span<const std::string_view> known) {
    document_.root = {.kind = Kind::table, .line = 1};
    const ShellCommand* command = chosen(known);
    if (command == nullptr) return handed_on();
    for (const ShellWord& word : command->words) document_.names.push_back(word.text);
    arguments(*command);
    add_sbatch();
    return std::move(document_);
  }
  /// Of the first argument beyond kMostKeys; 0 for none.
  [[nodiscard]] int overfull_line() const { return overfull_line_; }

 private:
  [[nodiscard]] static int score(const ShellCommand& command, std::span<const std::string_view> known) {
    const std::string& name = command.words[0].text;
    if (std::find(std::begin(kPlainCommands), std::end(kPlainCommands), name) != std::end(kPlainCommands)) return 0;
    int count = 0;
    bool program = false;
    for (const ShellWord& word : command.words) {
      program = program || is_program(word.text);
      if (is_flag(word.text) && std::find(known.begin(), known.end(), flag_name(word.text)) != known.end()) ++count;
    }
    return program ? count + 1 : count >= 3 ? count : 0;
  }

  [[nodiscard]] const ShellCommand* chosen(std::span<const std::string_view> known) const {
    const ShellCommand* best = nullptr;
    int most = 0;
    for (const ShellCommand& command : script_.commands)
      if (const int count = score(command, known); count > most) {
        most = count;
        best = &command;
      }
    return best;
  }

  /// "BATCH_SIZE=16 bash ./run.sh": what it sets, and that the other script would have to be read.
  std::optional<ScriptDocument> handed_on() {
    for (const ShellCommand& command : script_.commands) {
      const auto script = std::find_if(command.words.begin(), command.words.end(),
                                       [](const ShellWord& word) { return is_script(word.text); });
      if (script == command.words.end()) continue;
      for (const auto& [name, value] : command.environment) add(name, {&value}, value.line);
      document_.unread.push_back(
          {pointer_part(script->text), "the command that starts training is in this file: give it instead"});
      document_.names.push_back(script->text);
      return std::move(document_);
    }
    return std::nullopt;
  }

  void arguments(const ShellCommand& command) {
    const std::vector<ShellWord>& words = command.words;
    for (std::size_t i = 0; i < words.size();) {
      if (!is_flag(words[i].text)) {
        ++i;
        continue;
      }
      const ShellWord flag = words[i++];
      const std::size_t equals = flag.text.find('=');
      if (equals != std::string::npos) {
        ShellWord value = flag;
        value.text = flag.text.substr(equals + 1);
        add(flag_name(flag.text), {&value}, flag.line);
        continue;
      }
      // `python -m module`: what follows is the program's.
      if (flag.text == "-m" && i < words.size()) {
        add("m", {&words[i]}, words[i].line);
        ++i;
        continue;
      }
      std::vector<const ShellWord*> values;
      while (i < words.size() && !is_flag(words[i].text) && !is_program(words[i].text)) values.push_back(&words[i++]);
      // Behind a flag a variable that nothing sets is no value: a shell leaves nothing of it.
      const std::string name = flag_name(flag.text);
      if (std::find(flags_.begin(), flags_.end(), name) != flags_.end())
        std::erase_if(values, [](const ShellWord* each) { return !each->missing.empty(); });
      add(name, values, flag.line);
    }
  }

  void add_sbatch() {
    if (script_.sbatch.empty()) return;
    Value table{.kind = Kind::table, .line = script_.sbatch[0].second.line};
    for (const auto& [name, value] : script_.sbatch)
      if (table.find(name) == nullptr) table.members.push_back({name, typed(value.text, value.line)});
    document_.root.members.push_back({"sbatch", std::move(table)});
  }

  void add(const std::string& name, const std::vector<const ShellWord*>& values, int line) {
    // The last of several counts, as argparse has it.
    std::erase_if(document_.root.members, [&](const Member& each) { return each.key == name; });
    const std::string pointer = pointer_part(name);
    std::erase_if(document_.unread, [&](const LeftOut& each) { return each.key == pointer; });
    // Each is compared with those before it.
    if (document_.root.members.size() + document_.unread.size() >= kMostKeys) {
      if (overfull_line_ == 0) overfull_line_ = line;
      return;
    }
    if (const std::string reason = missing_in(values); !reason.empty()) {
      document_.unread.push_back({pointer, reason});
      return;
    }
    Value value = boolean_value(true, line);
    if (values.size() == 1) value = typed(values[0]->text, values[0]->line);
    if (values.size() > 1) {
      value = {.kind = Kind::list, .line = values[0]->line};
      for (const ShellWord* each : values) value.items.push_back(typed(each->text, each->line));
    }
    document_.root.members.push_back({name, std::move(value)});
  }

  [[nodiscard]] std::string missing_in(const std::vector<const ShellWord*>& values) const {
    std::string list;
    bool unset = true;
    for (const ShellWord* word : values)
      for (const std::int32_t index : word->missing) {
        const ShellMissing& missing = script_.missing[static_cast<std::size_t>(index)];
        unset = unset && missing.unset;
        if (list.size() < 200 && list.find(missing.what) == std::string::npos)
          list += (list.empty() ? "" : ", ") + missing.what;
      }
    if (list.empty()) return "";
    return unset ? list + " is not set in the file" : list + " is known only when it runs";
  }

  const ShellScript& script_;
  std::span<const std::string_view> flags_;
  ScriptDocument document_{};
  int overfull_line_ = 0;
};

}  // namespace

Result<ScriptDocument> launch_document(std::string_view content, const std::string& where,
                                       std::span<const std::string_view> known,
                                       std::span<const std::string_view> flags) {
  const Result<ShellScript> script = read_shell(content, where);
  if (!script) return script.error();
  LaunchDocument reader(*script, flags);
  std::optional<ScriptDocument> document = reader.run(known);
  if (reader.overfull_line() > 0)
    return Error{.code = Errc::malformed,
                 .what = "a command has more than " + std::to_string(kMostKeys) + " different arguments",
                 .where = where + ":" + std::to_string(reader.overfull_line()),
                 .help = "a launch script; no training takes so many"};
  if (document) return std::move(*document);
  return Error{.code = Errc::malformed,
               .what = "no command that starts a training was found",
               .where = where,
               .help = "a script with torchrun, deepspeed, colossalai run or python, a .py file and its arguments"};
}

}  // namespace shard::foreign
