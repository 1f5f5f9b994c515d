// Reads JSON into a document, by nlohmann's parser; lines are counted as it takes the characters.
#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "sim/foreign/document.h"

namespace shard::foreign {
namespace {

/// The line of the character taken last.
struct LineCount {
  int line = 1;
  bool next = false;
};

/// Walks over the content and counts.
class Counted {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Counted(const char* at, LineCount* count) : at_(at), count_(count) {}
  const char& operator*() const { return *at_; }
  Counted& operator++() {
    if (count_->next) ++count_->line;
    count_->next = *at_++ == '\n';
    return *this;
  }
  Counted operator++(int) {
    const Counted before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const Counted& a, const Counted& b) { return a.at_ == b.at_; }

 private:
  const char* at_;
  LineCount* count_;
};

/// Builds the tree from the parser's calls.
class Builder {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  explicit Builder(const LineCount& count) : count_(count) {}

  bool null() { return put({}); }
  bool boolean(bool value) { return put(boolean_value(value, 0)); }
  bool number_integer(number_integer_t value) { return put(integer_value(value, 0)); }
  bool number_unsigned(number_unsigned_t value) {
    if (value > INT64_MAX) return put(real_value(static_cast<double>(value), 0));
    return put(integer_value(static_cast<std::int64_t>(value), 0));
  }
  bool number_float(number_float_t value, const string_t& /*text*/) { return put(real_value(value, 0)); }
  bool string(string_t& value) { return put(text_value(std::move(value), 0)); }
  bool binary(binary_t& /*value*/) { return false; }
  bool start_object(std::size_t /*size*/) { return open(Kind::table); }
  bool start_array(std::size_t /*size*/) { return open(Kind::list); }
  bool end_object() { return open_.pop_back(), true; }
  bool end_array() { return open_.pop_back(), true; }
  bool key(string_t& value) {
    Value& table = *open_.back();
    if (table.members.size() >= kMostKeys) return refuse("a table has more keys than any configuration");
    if (table.find(value) != nullptr) return refuse("the key '" + value + "' stands twice in one table");
    table.members.push_back({std::move(value), {}});
    return true;
  }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/, const nlohmann::json::exception& fault) {
    if (const auto text = std::string(fault.what()); fault_.empty()) {
      // "[json.exception...] parse error at line 3, column 7: WHAT"
      const std::size_t colon = text.find(": ");
      fault_ = colon == std::string::npos ? text : text.substr(colon + 2);
    }
    return false;
  }

  [[nodiscard]] Value& root() { return root_; }
  [[nodiscard]] const std::string& fault() const { return fault_; }

 private:
  bool refuse(std::string why) { return fault_ = std::move(why), false; }
  Value* place() {
    if (open_.empty()) return &root_;
    Value& parent = *open_.back();
    if (parent.kind == Kind::list) return &parent.items.emplace_back();
    return &parent.members.back().value;
  }
  bool put(Value value) {
    if (++made_ > kMostValues) return refuse("more values than any configuration has");
    value.line = count_.line;
    *place() = std::move(value);
    return true;
  }
  bool open(Kind kind) {
    if (open_.size() >= kDeepest) return refuse("tables and lists are nested too deeply");
    if (++made_ > kMostValues) return refuse("more values than any configuration has");
    Value* const value = place();
    value->kind = kind;
    value->line = count_.line;
    open_.push_back(value);
    return true;
  }

  const LineCount& count_;
  Value root_;
  std::vector<Value*> open_;  ///< what is in the last of them may move, what encloses it does not
  std::size_t made_ = 0;
  std::string fault_;
};

/// What a template that a script fills in has where a value belongs: "GBSIZE".
std::string placeholder_in(std::string_view content, int line) {
  for (int at = 1; at < line; ++at) content.remove_prefix(std::min(content.find('\n') + 1, content.size()));
  content = content.substr(0, content.find('\n'));
  const std::size_t colon = content.find(':');
  if (colon == std::string_view::npos) return "";
  std::size_t begin = colon + 1;
  while (begin < content.size() && content[begin] == ' ') ++begin;
  std::size_t end = begin;
  const auto part = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$'; };
  while (end < content.size() && part(content[end])) ++end;
  if (end < begin + 2 || (content[begin] >= '0' && content[begin] <= '9')) return "";
  return std::string(content.substr(begin, end - begin));
}

Error placeholder_fault(const std::string& name, const std::string& at) {
  return {.code = Errc::malformed,
          .what = "'" + name + "' is a placeholder that a script fills in, not a value",
          .where = at,
          .help = "the file that the script makes of this one"};
}

/// `line`: where the parser was at the end.
Result<Value> parse(std::string_view content, const std::string& where, int& line) {
  LineCount count;
  Builder builder(count);
  const char* const end = content.data() + content.size();
  const bool done = nlohmann::json::sax_parse(Counted(content.data(), &count), Counted(end, &count), &builder) &&
                    builder.fault().empty();
  line = count.line;
  if (done && has_pointers_in_bounds(builder.root())) return std::move(builder.root());
  const std::string at = where + ":" + std::to_string(line);
  if (const std::string name = placeholder_in(content, line); !name.empty()) return placeholder_fault(name, at);
  const std::string what = done ? "names are longer than any configuration has them" : builder.fault();
  return Error{.code = Errc::malformed, .what = what, .where = at, .help = "JSON, without comments"};
}

}  // namespace

Result<Value> read_json(std::string_view content, const std::string& where) {
  int line = 0;
  return parse(content, where, line);
}

Result<Value> read_deepspeed_json(std::string_view content, const std::string& where) {
  int line = 0;
  Result<Value> root = parse(content, where, line);
  const bool blank = content.find_first_not_of(" \t\r\n") == std::string_view::npos;  // to Hjson an empty table
  if (root || blank || !placeholder_in(content, line).empty()) return root;
  return read_hjson(content, where);
}

}  // namespace shard::foreign
