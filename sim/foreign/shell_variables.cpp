// Expansion of words.
#include "sim/foreign/shell_variables.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "sim/foreign/shell_tokens.h"

namespace shard::foreign {
namespace {

/// Letters that expansions may make: a script's variables are some thousand.
constexpr std::size_t kMaxExpanded = 4'000'000;
constexpr int kMaxExpansionDepth = 32;
constexpr std::size_t kMaxMissing = 1000;

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
bool is_name_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

ShellText part(const ShellText& text, std::size_t begin, std::size_t end) {
  begin = std::min(begin, text.size());
  end = std::clamp(end, begin, text.size());
  return {text.begin() + static_cast<std::ptrdiff_t>(begin), text.begin() + static_cast<std::ptrdiff_t>(end)};
}

}  // namespace

/// Words in the making.
struct ShellVariables::Expansion {
  bool splits = false;
  std::vector<ShellText> done{};
  ShellText current{};
  bool quoted = false;  ///< there were quotes: the word is one even where it is empty

  void finish() {
    ShellText word;
    for (const ShellChar& c : current) {
      if (!splits || !c.splits || c.missing != 0 || !is_blank(c.letter)) {
        word.push_back(c);
      } else if (!word.empty()) {
        done.push_back(std::exchange(word, {}));
      }
    }
    if (!word.empty() || quoted || !splits) done.push_back(std::move(word));
    current.clear();
    quoted = false;
  }
};

void ShellVariables::append(const std::string& name, const ShellText& value) {
  std::vector<ShellText>& all = values_[name];
  if (all.empty()) all.emplace_back();
  all[0].insert(all[0].end(), value.begin(), value.end());
}

void ShellVariables::append_list(const std::string& name, const std::vector<ShellText>& values) {
  std::vector<ShellText>& all = values_[name];
  all.insert(all.end(), values.begin(), values.end());
}

const std::vector<ShellText>* ShellVariables::find(const std::string& name) const {
  const auto at = values_.find(name);
  return at == values_.end() ? nullptr : &at->second;
}

ShellWord ShellVariables::word(const ShellText& text) const {
  ShellWord result{.text = letters(text)};
  for (const ShellChar& c : text) {
    if (result.line == 0) result.line = c.line;
    if (c.missing != 0 &&
        std::find(result.missing.begin(), result.missing.end(), c.missing - 1) == result.missing.end())
      result.missing.push_back(c.missing - 1);
  }
  return result;
}

std::optional<std::string> ShellVariables::known(const ShellText& text) const {
  std::string result;
  for (const ShellChar& c : text) {
    if (c.missing == 0)
      result += c.letter;
    else if (!missing_[static_cast<std::size_t>(c.missing) - 1].unset)
      return std::nullopt;
  }
  return result;
}

Result<ShellText> ShellVariables::expand(const ShellText& raw) {
  Expansion to;
  if (Result<void> ok = text(raw, false, to, 0); !ok) return ok.error();
  ShellText result = std::move(to.current);
  for (ShellChar& c : result) c.splits = false;
  return result;
}

Result<std::vector<ShellText>> ShellVariables::split(const ShellText& raw) {
  Expansion to{.splits = true};
  if (Result<void> ok = text(raw, false, to, 0); !ok) return ok.error();
  to.finish();
  for (ShellText& word : to.done)
    for (ShellChar& c : word) c.splits = false;
  return std::move(to.done);
}

Result<void> ShellVariables::text(const ShellText& raw, bool quoted, Expansion& to, int depth) {
  if (depth > kMaxExpansionDepth || made_ > kMaxExpanded)
    return Error{.code = Errc::malformed,
                 .what = "variables grow beyond what a launch script has",
                 .where = file_ + ":" + std::to_string(raw.empty() ? 1 : raw[0].line),
                 .help = "write the arguments out"};
  for (std::size_t at = 0; at < raw.size();)
    if (Result<void> ok = piece(raw, at, quoted, to, depth); !ok) return ok;
  return {};
}

Result<void> ShellVariables::piece(const ShellText& raw, std::size_t& at, bool quoted, Expansion& to, int depth) {
  const char c = raw[at].letter;
  if (c != '$' && c != '`' && c != '\\' && (quoted || (c != '"' && c != '\''))) {
    put({raw[at]}, true, to);
    ++at;
    return {};
  }
  const Result<std::size_t> end = shell_piece_end(raw, at, file_);
  if (!end) return end.error();
  const ShellText whole = part(raw, at, *end);
  at = *end;
  if (c == '\\') {
    // Within double quotes a backslash stays before letters that mean nothing to the shell.
    const bool kept =
        quoted && whole.size() > 1 && std::string_view("$`\"\\\n").find(whole[1].letter) == std::string_view::npos;
    if (whole.size() > 1 && whole[1].letter != '\n') put(part(whole, kept ? 0 : 1, 2), true, to);
    return {};
  }
  if (c == '\'') {
    to.quoted = true;
    put(part(whole, 1, whole.size() - 1), true, to);
    return {};
  }
  if (c == '"') {
    to.quoted = true;
    return text(part(whole, 1, whole.size() - 1), true, to, depth + 1);
  }
  if (c == '`') return command(part(whole, 1, whole.size() - 1), whole, quoted, to, depth + 1);
  return dollar(whole, quoted, to, depth + 1);
}

void ShellVariables::put(const ShellText& value, bool quoted, Expansion& to) {
  made_ += value.size();
  if (made_ > kMaxExpanded) return;
  for (ShellChar c : value) {
    c.splits = !quoted;
    to.current.push_back(c);
  }
}

void ShellVariables::not_known(const ShellText& piece, bool unset, Expansion& to) {
  std::string written = letters(piece);
  std::replace(written.begin(), written.end(), '\n', ' ');
  const auto at = std::find_if(missing_.begin(), missing_.end(),
                               [&](const ShellMissing& each) { return each.what == written && each.unset == unset; });
  std::size_t index = static_cast<std::size_t>(at - missing_.begin());
  if (at == missing_.end()) {
    if (missing_.size() < kMaxMissing) missing_.push_back({std::move(written), unset});
    index = missing_.size() - 1;
  }
  ShellText marked = piece;
  for (ShellChar& c : marked) {
    c.missing = static_cast<std::int32_t>(index) + 1;
    if (c.letter == '\n') c.letter = ' ';
  }
  put(marked, true, to);
}

Result<void> ShellVariables::dollar(const ShellText& piece, bool quoted, Expansion& to, int depth) {
  const std::string written = letters(piece);
  if (written.size() == 1) return put(piece, true, to), Result<void>();
  if (written.starts_with("$'")) {
    to.quoted = true;
    return put(part(piece, 2, piece.size() - 1), true, to), Result<void>();
  }
  if (written.starts_with("$((") && written.ends_with("))")) {
    const Result<ShellText> value = arithmetic(part(piece, 3, piece.size() - 2), written);
    if (!value) return value.error();
    return put(*value, quoted, to), Result<void>();
  }
  if (written.starts_with("$(")) return command(part(piece, 2, piece.size() - 1), piece, quoted, to, depth);
  if (written.starts_with("${")) return braces(part(piece, 2, piece.size() - 1), piece, quoted, to, depth);
  return variable(written.substr(1), "", piece, quoted, to), Result<void>();
}

void ShellVariables::variable(const std::string& name, std::string_view index, const ShellText& piece, bool quoted,
                              Expansion& to) {
  const int line = piece.empty() ? 0 : piece[0].line;
  const bool all = index == "@" || index == "*" || name == "@" || name == "*";
  std::vector<ShellText> values;
  if (name == "@" || name == "*") {
    values = positional;
  } else if (name == "#") {
    values = {shell_text(std::to_string(positional.size()), line)};
  } else if (name == "?") {
    values = {shell_text("0", line)};
  } else if (std::isdigit(static_cast<unsigned char>(name[0])) != 0) {
    std::size_t at = 0;
    std::from_chars(name.data(), name.data() + name.size(), at);
    if (at == 0) return not_known(piece, false, to);
    if (at > positional.size()) return not_known(piece, true, to);
    values = {positional[at - 1]};
  } else if (const std::vector<ShellText>* known = find(name)) {
    values = *known;
    std::size_t at = 0;
    if (!all) {
      if (!index.empty()) std::from_chars(index.data(), index.data() + index.size(), at);
      if (at >= values.size() && !values.empty()) return not_known(piece, true, to);
      if (!values.empty()) values = {values[at]};
    }
  } else {
    return not_known(piece, true, to);
  }
  for (std::size_t i = 0; i < values.size() && made_ <= kMaxExpanded; ++i) {
    if (i > 0 && quoted && to.splits && index != "*" && name != "*") {
      to.quoted = true;
      to.finish();
    } else if (i > 0) {
      put(shell_text(" ", line), quoted, to);
    }
    put(values[i], quoted, to);
  }
}

/// ${...}
Result<void> ShellVariables::braces(const ShellText& inside, const ShellText& piece, bool quoted, Expansion& to,
                                    int depth) {
  std::size_t at = 0;
  while (at < inside.size() && is_name_letter(inside[at].letter)) ++at;
  if (at == 0 && !inside.empty() && (inside[0].letter == '@' || inside[0].letter == '*')) at = 1;
  const std::string name = letters(part(inside, 0, at));
  if (name.empty()) return not_known(piece, false, to), Result<void>();
  std::string index;
  if (at < inside.size() && inside[at].letter == '[') {
    std::size_t end = at;
    while (end < inside.size() && inside[end].letter != ']') ++end;
    index = letters(part(inside, at + 1, end));
    at = std::min(end + 1, inside.size());
  }
  std::string op;
  for (; at < inside.size() && op.size() < 2 &&
         std::string_view(":-+=?").find(inside[at].letter) != std::string_view::npos;
       ++at) {
    op += inside[at].letter;
    if (inside[at].letter != ':') {
      ++at;
      break;
    }
  }
  const bool transformed = op == ":" || (op.empty() && at < inside.size());
  if (transformed) return not_known(piece, false, to), Result<void>();
  if (op.empty()) return variable(name, index, piece, quoted, to), Result<void>();

  Expansion value{.splits = false};
  variable(name, index, piece, true, value);
  const std::optional<std::string> text_of = known(value.current);
  const bool is_set = std::none_of(value.current.begin(), value.current.end(), [this](const ShellChar& c) {
    return c.missing != 0 && missing_[static_cast<std::size_t>(c.missing) - 1].unset;
  });
  const bool counts = is_set && (op[0] != ':' || !text_of || !text_of->empty());
  const char kind = op.back();
  if (kind == '+') return counts ? text(part(inside, at, inside.size()), quoted, to, depth + 1) : Result<void>();
  if (counts) return put(value.current, quoted, to), Result<void>();
  if (kind == '?') return not_known(piece, true, to), Result<void>();
  if (kind == '=') {
    const Result<ShellText> otherwise = expand(part(inside, at, inside.size()));
    if (!otherwise) return otherwise.error();
    set(name, *otherwise);
    return put(*otherwise, quoted, to), Result<void>();
  }
  Expansion otherwise{.splits = false};
  if (Result<void> ok = text(part(inside, at, inside.size()), quoted, otherwise, depth + 1); !ok) return ok;
  to.quoted = to.quoted || otherwise.quoted;
  return put(otherwise.current, quoted, to), Result<void>();
}

/// $(...) and `...`: of `echo` what it prints, of all others nothing is known.
Result<void> ShellVariables::command(const ShellText& inside, const ShellText& piece, bool quoted, Expansion& to,
                                     int depth) {
  const std::string written = letters(inside);
  if (written.starts_with("echo ") && written.find_first_of("|;&<>") == std::string::npos) {
    Expansion printed{.splits = true};
    if (Result<void> ok = text(part(inside, 5, inside.size()), false, printed, depth + 1); !ok) return ok;
    // What is no expansion is split at blanks here, too.
    for (ShellChar& c : printed.current) c.splits = true;
    put(printed.current, quoted, to);
    return {};
  }
  not_known(piece, false, to);
  return {};
}

Result<ShellText> ShellVariables::arithmetic(const ShellText& expression, std::string_view written) {
  const int line = expression.empty() ? 1 : expression[0].line;
  Result<ShellText> expanded = expand(expression);
  if (!expanded) return expanded;
  std::string plain;
  bool certain = true;
  const ShellText& text_of = *expanded;
  for (std::size_t i = 0; i < text_of.size() && certain;) {
    certain = text_of[i].missing == 0;
    const char c = text_of[i].letter;
    const bool in_number = !plain.empty() && is_name_letter(plain.back());
    if (!is_name_letter(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || in_number) {
      plain += c;
      ++i;
      continue;
    }
    std::string name;
    for (; i < text_of.size() && is_name_letter(text_of[i].letter); ++i) name += text_of[i].letter;
    const std::vector<ShellText>* value = find(name);
    const std::optional<std::string> number = value == nullptr || value->empty() ? std::nullopt : known((*value)[0]);
    certain = certain && number && !number->empty();
    if (certain) plain += "(" + *number + ")";
  }
  const std::optional<std::int64_t> result = certain ? shell_arithmetic(plain) : std::nullopt;
  if (result) return shell_text(std::to_string(*result), line);
  Expansion unknown;
  not_known(shell_text(written, line), false, unknown);
  return std::move(unknown.current);
}

}  // namespace shard::foreign
