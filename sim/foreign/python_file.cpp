// Statements: assignments and what stands around them.
#include "sim/foreign/python_file.h"

#include <algorithm>
#include <array>
#include <utility>

#include "sim/foreign/python_tokens.h"

namespace shard::foreign {
namespace {

using PyKind = PythonValue::Kind;
using PyToken = PythonTokenKind;

/// How what a block assigns counts.
enum class Mode : std::uint8_t {
  certain,      ///< it runs when the file is loaded
  conditional,  ///< it may run
  local,        ///< inside of a function or a class
};

/// Names of a file, keys of a table.
constexpr std::size_t kMaxNames = 10'000;
/// Values that assignments to parts of others have moved.
constexpr std::size_t kMaxChanged = 400'000;
/// a = b = c = ...
constexpr std::size_t kMaxChain = 16;

constexpr auto kAugmented =
    std::to_array<std::string_view>({"+=", "-=", "*=", "/=", "//=", "%=", "**=", "&=", "|=", "^=", ">>=", "<<=", "@="});

bool is_augmented(const PythonToken& token) {
  return token.kind == PyToken::op && std::find(kAugmented.begin(), kAugmented.end(), token.text) != kAugmented.end();
}

class PythonReader {
 public:
  PythonReader(std::string_view source, std::string_view file, const std::vector<PythonToken>& tokens)
      : at_(source, file, tokens, names_, file_.calls) {}

  Result<PythonFile> run() {
    while (at_.now().kind != PyToken::end && !at_.error()) statement(Mode::certain);
    if (at_.error()) return *at_.error();
    file_.root = python_table();
    file_.root.line = 1;
    for (const std::string& name : order_)
      if (const auto known = names_.scopes[0].find(name); known != names_.scopes[0].end())
        file_.root.entries.emplace_back(name, known->second);
    return std::move(file_);
  }

 private:
  using Path = std::vector<std::string>;

  void statement(Mode mode) {
    static constexpr auto kCompound = std::to_array<std::pair<std::string_view, void (PythonReader::*)(Mode)>>(
        {{"if", &PythonReader::if_statement},
         {"def", &PythonReader::function},
         {"class", &PythonReader::class_statement},
         {"for", &PythonReader::for_statement},
         {"while", &PythonReader::while_statement},
         {"with", &PythonReader::with_statement},
         {"try", &PythonReader::try_statement}});
    const PythonToken& token = at_.now();
    if (token.kind == PyToken::newline || token.kind == PyToken::dedent) return at_.advance();
    if (token.kind == PyToken::indent)
      return at_.fail("unexpected indent", "begin the line as those around it", token.line);
    if (at_.is_op("@")) {
      at_.advance();
      static_cast<void>(at_.expression());
      return end_of_line();
    }
    if (at_.is_word("async")) at_.advance();
    for (const auto& [word, handle] : kCompound)
      if (at_.is_word(word)) {
        at_.advance();
        return (this->*handle)(mode);
      }
    simple_line(mode);
  }

  void end_of_line() {
    if (at_.now().kind == PyToken::newline) return at_.advance();
    if (at_.now().kind == PyToken::end || at_.error()) return;
    at_.fail("'" + at_.now().text + "' stands where the line should end", "a ',' or a line end before it",
             at_.now().line);
  }

  void simple_line(Mode mode) {
    simple(mode);
    while (at_.take(";"))
      if (at_.now().kind != PyToken::newline) simple(mode);
    end_of_line();
  }

  void simple(Mode mode) {
    for (const char* word : {"pass", "break", "continue"})
      if (at_.is_word(word)) return at_.advance();
    if (at_.is_word("import")) return import_statement();
    if (at_.is_word("from")) return from_statement();
    if (at_.is_word("global") || at_.is_word("nonlocal") || at_.is_word("del")) return skip_names();
    for (const char* word : {"return", "assert", "raise"})
      if (at_.is_word(word)) {
        at_.advance();
        if (at_.now().kind != PyToken::newline && !at_.is_op(";")) static_cast<void>(at_.expressions());
        if (at_.is_word("from")) {
          at_.advance();
          static_cast<void>(at_.expression());
        }
        return;
      }
    assignment(mode);
  }

  void skip_names() {
    const bool removes = at_.is_word("del");
    at_.advance();
    while (at_.now().kind != PyToken::newline && at_.now().kind != PyToken::end && !at_.is_op(";")) {
      const bool whole = at_.is_op(",", 1) || at_.now(1).kind == PyToken::newline;
      if (removes && whole && at_.now().kind == PyToken::name) names_.scopes.back().erase(at_.now().text);
      at_.advance();
    }
  }

  std::string dotted() {
    std::string name;
    while (at_.take(".") || at_.take("...")) name += '.';
    while (at_.now().kind == PyToken::name && !at_.is_word("import")) {
      name += at_.now().text;
      at_.advance();
      if (!at_.take(".")) break;
      name += '.';
    }
    return name;
  }

  void import_statement() {
    at_.advance();
    do {
      const std::string module = dotted();
      if (module.empty()) return at_.fail("'import' of nothing", "name a module", at_.now().line);
      file_.modules.push_back(module);
      std::string bound = module.substr(0, module.find('.'));
      if (at_.is_word("as")) {
        at_.advance();
        bound = at_.now().text;
        at_.advance();
      }
      know(bound, bound);
    } while (at_.take(","));
  }

  void from_statement() {
    at_.advance();
    file_.modules.push_back(dotted());
    if (!at_.is_word("import"))
      return at_.fail("'import' is missing behind 'from'", "from MODULE import NAME", at_.now().line);
    at_.advance();
    if (at_.take("*")) {
      names_.star_import = true;
      return;
    }
    const bool enclosed = at_.take("(");
    do {
      if (at_.now().kind != PyToken::name) break;
      std::string name = at_.now().text;
      const std::string imported = name;
      at_.advance();
      if (at_.is_word("as")) {
        at_.advance();
        name = at_.now().text;
        at_.advance();
      }
      know(name, imported);
    } while (at_.take(","));
    if (enclosed) at_.expect(")");
  }

  /// The '=' of an assignment further on in this statement.
  [[nodiscard]] bool assigns() const {
    std::size_t depth = 0;
    for (std::size_t i = 0;; ++i) {
      const PythonToken& token = at_.now(i);
      if (token.kind == PyToken::newline || token.kind == PyToken::end) return false;
      if (token.kind != PyToken::op) continue;
      if (token.text == "(" || token.text == "[" || token.text == "{") ++depth;
      if ((token.text == ")" || token.text == "]" || token.text == "}") && depth > 0) --depth;
      if (depth > 0) continue;
      if (token.text == ";") return false;
      if (token.text == "=" || is_augmented(token)) return true;
    }
  }

  /// NAME, NAME.name, NAME["key"] and so on; empty for what we do not follow.
  Path target() {
    Path path;
    if (at_.now().kind != PyToken::name) {
      static_cast<void>(at_.expression());
      return {};
    }
    path.push_back(at_.now().text);
    at_.advance();
    bool followed = true;
    while (!at_.error()) {
      if (at_.take(".")) {
        path.push_back(at_.now().text);
        at_.advance();
      } else if (at_.take("[")) {
        const PythonValue key = at_.expressions();
        followed = followed && key.kind == PyKind::text;
        if (!at_.is_op("]")) at_.skip_to_closing();
        at_.expect("]");
        path.push_back(key.text);
      } else if (at_.is_op("(")) {
        at_.advance();
        at_.skip_to_closing();
        at_.expect(")");
        followed = false;
      } else {
        break;
      }
    }
    return followed ? path : Path{};
  }

  void assignment(Mode mode) {
    if (!assigns()) {
      if (at_.now().kind == PyToken::name && at_.is_op(":", 1)) {  // an annotation alone
        at_.advance();
        at_.advance();
      }
      static_cast<void>(at_.expressions());
      return;
    }
    std::vector<std::vector<Path>> chain;
    std::string augmented;
    PythonValue value;
    while (!at_.error()) {
      const std::size_t here = at_.position();
      if (!augmented.empty() || (!chain.empty() && !assigns())) {
        at_.go_to(here);
        value = at_.expressions();
        break;
      }
      chain.emplace_back();
      if (chain.size() > kMaxChain) return at_.too_much();
      do {
        if (at_.is_op("=")) break;  // a, = ...
        at_.take("*");
        chain.back().push_back(target());
      } while (at_.take(","));
      if (at_.take(":")) static_cast<void>(at_.expression());
      if (is_augmented(at_.now())) {
        augmented = at_.now().text;
        augmented.pop_back();
        at_.advance();
      } else {
        at_.expect("=");
      }
    }
    for (const std::vector<Path>& targets : chain) distribute(targets, value, augmented, mode);
  }

  void distribute(const std::vector<Path>& targets, const PythonValue& value, const std::string& augmented, Mode mode) {
    if (targets.size() == 1) return assign(targets[0], value, augmented, mode);
    const bool fits = value.kind == PyKind::list && value.items.size() == targets.size();
    for (std::size_t i = 0; i < targets.size(); ++i)
      assign(targets[i], fits ? value.items[i] : python_opaque("worked out when it runs"), augmented, mode);
  }

  void assign(const Path& path, PythonValue value, const std::string& augmented, Mode mode) {
    if (at_.error()) return;
    if (mode == Mode::certain)
      if (const PythonFault fault = find_fault(value); fault.value != nullptr) return stop_at(path, fault);
    if (path.empty()) return;
    std::map<std::string, PythonValue, std::less<>>& scope = names_.scopes.back();
    if (mode == Mode::conditional) {
      const int line = value.line;
      std::string text = std::move(value.text);
      value = python_opaque("decided when it runs");
      value.text = std::move(text);
      value.line = line;
    }
    if (path.size() == 1 && augmented.empty()) return bind(path[0], std::move(value));
    const auto known = scope.find(path[0]);
    if (known == scope.end()) return;
    PythonValue* place_of = &known->second;
    for (std::size_t i = 1; i < path.size(); ++i) {
      if (place_of->kind != PyKind::table) return;
      if (place_of->entries.size() > kMaxNames) return at_.too_much();
      place_of = &place(*place_of, path[i]);
    }
    if ((changed_ += python_size(value) + python_size(*place_of)) > kMaxChanged) return at_.too_much();
    *place_of = augmented.empty() ? std::move(value) : python_binary(augmented, *place_of, value);
  }

  void stop_at(const Path& path, const PythonFault& fault) {
    std::string key;
    for (const std::string& part : path) key += "/" + part;
    key += fault.pointer;
    at_.fail((key.empty() ? "" : "key '" + key + "': ") + fault.value->why,
             fault.value->undefined ? "write its value, or import it before" : "write the value out",
             fault.value->line);
  }

  /// A name of the file's own.
  void bind(const std::string& name, PythonValue value) {
    if (names_.scopes.size() == 1) remember(name);
    if (value.line == 0) value.line = at_.now().line;
    names_.scopes.back()[name] = std::move(value);
  }

  /// A name that stands for something from elsewhere.
  void know(const std::string& name, const std::string& symbol) { names_.scopes.back()[name] = python_symbol(symbol); }

  void remember(const std::string& name) {
    if (std::find(order_.begin(), order_.end(), name) == order_.end()) order_.push_back(name);
    if (order_.size() > kMaxNames) at_.too_much();
  }

  /// Behind ':': one line, or an indented block.
  void block(Mode mode) {
    at_.expect(":");
    if (at_.now().kind != PyToken::newline) return simple_line(mode);
    at_.advance();
    if (at_.now().kind != PyToken::indent)
      return at_.fail("an indented block is missing behind ':'", "indent the next line", at_.now().line);
    at_.advance();
    while (at_.now().kind != PyToken::dedent && at_.now().kind != PyToken::end && !at_.error()) statement(mode);
    if (at_.now().kind == PyToken::dedent) at_.advance();
  }

  void skip_block() {
    at_.expect(":");
    std::size_t depth = 0;
    for (; at_.now().kind != PyToken::end; at_.advance()) {
      if (at_.now().kind == PyToken::newline && depth == 0 && at_.now(1).kind != PyToken::indent) break;
      if (at_.now().kind == PyToken::indent) ++depth;
      if (at_.now().kind == PyToken::dedent && --depth == 0) break;
    }
    at_.advance();
  }

  void if_statement(Mode mode) {
    bool taken = false;      // a branch before this one runs
    bool undecided = false;  // one may have
    do {
      const std::optional<bool> known = truth(at_.expression());
      if (taken || (known && !*known)) {
        skip_block();
      } else {
        block(known && !undecided ? mode : mode == Mode::certain ? Mode::conditional : mode);
        taken = known && *known && !undecided;
        undecided = undecided || !known;
      }
    } while (take_word("elif") && !at_.error());
    if (!take_word("else")) return;
    if (taken)
      skip_block();
    else
      block(undecided && mode == Mode::certain ? Mode::conditional : mode);
  }

  bool take_word(std::string_view word) {
    if (!at_.is_word(word)) return false;
    at_.advance();
    return true;
  }

  void function(Mode) {
    const std::string name = at_.now().text;
    at_.advance();
    if (names_.scopes.size() == 1) std::erase(order_, name);
    know(name, name);
    std::map<std::string, PythonValue, std::less<>> parameters;
    at_.expect("(");
    while (!at_.is_op(")") && !at_.error()) {
      while (at_.take("*") || at_.take("**") || at_.take("/")) continue;
      PythonValue value = python_opaque("an argument");
      const std::string parameter = at_.now().text;
      if (at_.now().kind == PyToken::name) at_.advance();
      if (at_.take(":")) static_cast<void>(at_.expression());
      if (at_.take("=")) value = at_.expression();
      parameters[parameter] = std::move(value);
      if (!at_.is_op(")")) at_.expect(",");
    }
    at_.expect(")");
    if (at_.take("->")) static_cast<void>(at_.expression());
    names_.scopes.push_back(std::move(parameters));
    block(Mode::local);
    names_.scopes.pop_back();
  }

  void class_statement(Mode) {
    const std::string name = at_.now().text;
    at_.advance();
    if (names_.scopes.size() == 1) std::erase(order_, name);
    know(name, name);
    if (at_.take("(")) {
      at_.skip_to_closing();
      at_.expect(")");
    }
    names_.scopes.emplace_back();
    block(Mode::local);
    names_.scopes.pop_back();
  }

  /// What a loop or `with` assigns to is known only when it runs.
  void forget(const std::vector<Path>& targets) {
    for (const Path& path : targets)
      if (path.size() == 1) names_.scopes.back()[path[0]] = python_opaque("changes while it runs");
  }

  void for_statement(Mode mode) {
    std::vector<Path> targets;
    const bool enclosed = at_.take("(");
    do {
      if (at_.is_word("in")) break;
      targets.push_back(target());
    } while (at_.take(","));
    if (enclosed) at_.expect(")");
    if (!take_word("in")) return at_.fail("'in' is missing behind 'for'", "for NAME in VALUES:", at_.now().line);
    static_cast<void>(at_.expressions());
    forget(targets);
    loop(mode);
  }

  void while_statement(Mode mode) {
    static_cast<void>(at_.expression());
    loop(mode);
  }

  void loop(Mode mode) {
    const Mode inside = mode == Mode::certain ? Mode::conditional : mode;
    block(inside);
    if (take_word("else")) block(inside);
  }

  void with_statement(Mode mode) {
    const bool enclosed = at_.is_op("(") && with_list();
    if (enclosed) at_.advance();
    do {
      if (at_.is_op(")")) break;
      static_cast<void>(at_.expression());
      if (take_word("as")) forget({target()});
    } while (at_.take(","));
    if (enclosed) at_.expect(")");
    block(mode);
  }

  /// with (a as b, c as d): the bracket closes right before ':', and is none of an expression's.
  [[nodiscard]] bool with_list() const {
    std::size_t depth = 0;
    for (std::size_t i = 0; at_.now(i).kind != PyToken::newline && at_.now(i).kind != PyToken::end; ++i) {
      if (at_.is_op("(", i) || at_.is_op("[", i) || at_.is_op("{", i)) ++depth;
      if ((at_.is_op(")", i) || at_.is_op("]", i) || at_.is_op("}", i)) && --depth == 0) return at_.is_op(":", i + 1);
    }
    return false;
  }

  void try_statement(Mode mode) {
    block(mode);
    while (take_word("except")) {
      at_.take("*");
      if (!at_.is_op(":")) static_cast<void>(at_.expressions());
      if (take_word("as")) forget({target()});
      block(mode == Mode::certain ? Mode::conditional : mode);
    }
    if (take_word("else")) block(mode);
    if (take_word("finally")) block(mode);
  }

  PythonFile file_{};
  PythonNames names_{};
  std::vector<std::string> order_{};
  std::size_t changed_ = 0;
  PythonExpressions at_;
};

}  // namespace

Result<PythonFile> read_python(std::string_view source, std::string_view file) {
  const Result<std::vector<PythonToken>> tokens = python_tokens(source, file);
  if (!tokens) return tokens.error();
  return PythonReader(source, file, *tokens).run();
}

}  // namespace shard::foreign
