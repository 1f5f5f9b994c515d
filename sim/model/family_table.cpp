// Lines of words; a block ends at "end".
#include "sim/model/family_table.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

namespace shard::model {
namespace {

using Words = std::vector<std::string_view>;

Words words_of(std::string_view line) {
  Words words;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = line.find_first_not_of(' ', at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    at = end;
  }
  return words;
}

Words split(std::string_view text, char at) {
  Words parts;
  while (true) {
    const std::size_t cut = text.find(at);
    parts.push_back(text.substr(0, cut));
    if (cut == std::string_view::npos) return parts;
    text.remove_prefix(cut + 1);
  }
}

std::optional<FieldRow::Kind> field_kind(std::string_view word) {
  using Kind = FieldRow::Kind;
  if (word == "int") return Kind::integer;
  if (word == "count") return Kind::count;
  if (word == "flag") return Kind::flag;
  if (word == "real") return Kind::real;
  if (word == "text") return Kind::text;
  if (word == "list") return Kind::list;
  if (word == "let") return Kind::computed;
  if (word == "dropout") return Kind::dropout;
  return std::nullopt;
}

/// KIND SECTION.KEY|ALIAS [as NAME] [= DEFAULT] [null EXPRESSION] [is ROLE] [of WORD|WORD]
std::optional<FieldRow> field_row(const Words& words) {
  const std::optional<FieldRow::Kind> kind = field_kind(words.front());
  if (!kind || words.size() < 2 || words.size() % 2 != 0) return std::nullopt;
  FieldRow row;
  row.kind = *kind;
  std::string_view keys = words[1];
  if (const std::size_t dot = keys.find('.'); dot != std::string_view::npos) {
    row.section = keys.substr(0, dot);
    keys.remove_prefix(dot + 1);
  }
  row.keys = split(keys, '|');
  row.name = row.keys.front();
  for (std::size_t i = 2; i < words.size(); i += 2) {
    const std::string_view value = words[i + 1];
    if (words[i] == "as")
      row.name = value;
    else if (words[i] == "=")
      row.fallback = value;
    else if (words[i] == "null")
      row.if_null = value;
    else if (words[i] == "is")
      row.role = value;
    else if (words[i] == "of")
      row.words = split(value, '|');
    else
      return std::nullopt;
  }
  if (row.fallback.empty() && row.kind != FieldRow::Kind::list) return std::nullopt;
  return row;
}

bool opens_block(std::string_view word) {
  return word == "blocks" || word == "repeat" || word == "when" || word == "under";
}

TableRow table_row(const Words& words, std::size_t number) {
  TableRow row;
  row.word = words.front();
  row.number = number;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "residual")
      row.residual = true;
    else if (words[i] == "bias" && i + 1 < words.size())
      row.bias = words[++i];
    else if (words[i] == "if" && i + 1 < words.size())
      row.only = words[++i];
    else
      row.arguments.push_back(words[i]);
  }
  return row;
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view name) : name_(name), rest_(text) {}

  Result<FamilyTable> parse() {
    while (next()) {
      if (const Result<void> read = line(); !read) return read.error();
    }
    if (table_.model_type.empty() || table_.class_name.empty() || table_.parameters.empty())
      return fault("lacks a family, a class or parameters");
    return std::move(table_);
  }

 private:
  /// The next line that says something.
  bool next() {
    while (!rest_.empty()) {
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      words_ = words_of(rest_.substr(0, end));
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++line_;
      if (!words_.empty() && !words_.front().starts_with('#')) return true;
    }
    return false;
  }
  Error fault(std::string_view what) const {
    return {Errc::malformed, std::string(what), std::string(name_) + ":" + std::to_string(line_), ""};
  }
  /// What follows the first word.
  [[nodiscard]] std::string_view rest_of_line() const {
    const char* begin = words_[1].data();
    return {begin, static_cast<std::size_t>(words_.back().data() + words_.back().size() - begin)};
  }

  Result<void> line() {
    const std::string_view word = words_.front();
    if (word == "parameters") return rows(table_.parameters);
    if (word == "operators") return rows(table_.operators);
    if (word == "checks") return rows(table_.checks);
    if (words_.size() < 2) return fault("is a word alone");
    if (word == "family") {
      table_.model_type = words_[1];
    } else if (word == "class") {
      table_.class_name = words_[1];
      table_.class_prefixes.assign(words_.begin() + 2, words_.end());
    } else if (word == "kind") {
      table_.kind = words_[1];
    } else if (word == "rope") {
      table_.rope = words_[1];
      if (words_.size() > 2) table_.rope_part = words_[2];
    } else if (word == "simulated") {
      table_.simulated.assign(words_.begin() + 1, words_.end());
    } else if (word == "note") {
      table_.notes.push_back(rest_of_line());
    } else if (word == "trains" || word == "simulates") {
      table_.limits.push_back({words_[1], Words(words_.begin() + 2, words_.end()), word == "simulates"});
    } else if (word == "ignore") {
      table_.ignored.insert(table_.ignored.end(), words_.begin() + 1, words_.end());
    } else if (word == "untrained") {
      table_.untrained = rest_of_line();
    } else {
      std::optional<FieldRow> field = field_row(words_);
      if (!field) return fault("is no field");
      table_.fields.push_back(std::move(*field));
    }
    return {};
  }
  /// Up to the "end" of the section or block.
  Result<void> rows(std::vector<TableRow>& into) {
    while (next()) {
      if (words_.front() == "end") return {};
      TableRow row = table_row(words_, table_.rows++);
      row.per_layer = depends_on_layer(row);
      if (opens_block(row.word)) {
        if (const Result<void> inside = rows(row.rows); !inside) return inside;
      }
      into.push_back(std::move(row));
    }
    return fault("has no end");
  }
  [[nodiscard]] bool depends_on_layer(const TableRow& row) const {
    const auto mentions = [&](std::string_view text) {
      if (text.find("layer") != std::string_view::npos) return true;
      return std::any_of(table_.fields.begin(), table_.fields.end(), [&](const FieldRow& field) {
        return field.kind == FieldRow::Kind::list && text.find(field.name) != std::string_view::npos;
      });
    };
    return mentions(row.bias) || mentions(row.only) ||
           std::any_of(row.arguments.begin(), row.arguments.end(), mentions);
  }

  std::string_view name_;
  std::string_view rest_;
  std::size_t line_ = 0;
  Words words_;
  FamilyTable table_;
};

std::vector<FamilyTable> parsed_tables() {
  std::vector<FamilyTable> tables;
  for (const FamilyText& family : family_texts()) {
    Result<FamilyTable> table = parse_family_table(family.text, family.name);
    assert(table && "an embedded table is malformed");
    if (table) tables.push_back(std::move(*table));
  }
  std::sort(tables.begin(), tables.end(),
            [](const FamilyTable& a, const FamilyTable& b) { return a.model_type < b.model_type; });
  return tables;
}

}  // namespace

std::span<const FamilyTable> family_tables() {
  static const std::vector<FamilyTable> tables = parsed_tables();
  return tables;
}

Result<FamilyTable> parse_family_table(std::string_view text, std::string_view name) {
  return Parser(text, name).parse();
}

}  // namespace shard::model
