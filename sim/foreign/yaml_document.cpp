// Reads YAML into a document: yaml-cpp tells what there is, in order, and here it becomes the tree.
#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <sstream>

#include "sim/foreign/document.h"

namespace shard::foreign {
namespace {

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

template <class T>
std::optional<T> whole(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  T value{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || fault != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// A scalar without quotes, by the rules of YAML 1.1; "1e-5" is a number too.
Value plain_value(const std::string& text, int line) {
  if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) return {.kind = Kind::null, .line = line};
  if (is_one_of(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"}))
    return boolean_value(true, line);
  if (is_one_of(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"}))
    return boolean_value(false, line);
  std::string digits = text;
  if (text.find_first_not_of("0123456789_+-") == std::string::npos && text.front() != '_') std::erase(digits, '_');
  if (const auto integer = whole<std::int64_t>(digits)) return integer_value(*integer, line);
  // "inf", "nan" and hexadecimal digits are words here.
  if (text.find_first_not_of("0123456789.eE+-") == std::string::npos)
    if (const auto real = whole<double>(text)) return real_value(*real, line);
  return text_value(text, line);
}

std::size_t count_values(const Value& value) {
  std::size_t count = 1;
  for (const Value& item : value.items) count += count_values(item);
  for (const Member& member : value.members) count += count_values(member.value);
  return count;
}

class Handler : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    put({.kind = Kind::null, .line = mark.line + 1}, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto at = anchors_.find(anchor);
    if (at == anchors_.end()) return refuse("an alias stands within what it repeats", mark);
    made_ += at->second.count;
    if (made_ > kMostValues) return refuse("aliases make more values than any configuration has", mark);
    put(at->second.value, 0);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    // "?" says plain, "!" quoted.
    const bool plain = tag == "?" || tag.empty();
    const int line = mark.line + 1;
    const bool is_text = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (!plain && !is_text && (!tag.starts_with("tag:yaml.org,2002:") || tag.find("python") != std::string::npos))
      return refuse("the tag '" + tag + "' makes something that is no value", mark);
    if (expects_key()) return put(text_value(text, line), anchor);
    put(is_text ? text_value(text, line) : plain_value(text, line), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    begin(Kind::list, mark, anchor);
  }
  void OnSequenceEnd() override { finish(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    begin(Kind::table, mark, anchor);
  }
  void OnMapEnd() override { finish(); }

  [[nodiscard]] Value& root() { return root_; }
  [[nodiscard]] const std::string& fault() const { return fault_; }
  [[nodiscard]] int fault_line() const { return fault_line_; }

 private:
  /// A list or table that is being read.
  struct Open {
    Value value;
    YAML::anchor_t anchor;
    std::optional<std::string> key{};  ///< of the member whose value comes next
    std::vector<Value> merged{};       ///< what "<<" brings
  };
  struct Anchored {
    Value value;
    std::size_t count;
  };

  [[nodiscard]] bool expects_key() const {
    return !open_.empty() && open_.back().value.is_table() && !open_.back().key;
  }
  void refuse(std::string why, const YAML::Mark& mark) {
    if (!fault_.empty()) return;
    fault_ = std::move(why);
    fault_line_ = mark.line + 1;
  }
  void begin(Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (expects_key()) refuse("a key is a list or a table", mark);
    if (open_.size() >= kDeepest) refuse("tables and lists are nested too deeply", mark);
    if (!fault_.empty()) return;
    open_.push_back({.value = {.kind = kind, .line = mark.line + 1}, .anchor = anchor});
  }
  void finish() {
    if (!fault_.empty() || open_.empty()) return;
    Open done = std::move(open_.back());
    open_.pop_back();
    for (Value& merged : done.merged)
      for (Member& member : merged.members)
        if (done.value.find(member.key) == nullptr) done.value.members.push_back(std::move(member));
    put(std::move(done.value), done.anchor);
  }
  void put(Value value, YAML::anchor_t anchor) {
    if (!fault_.empty()) return;
    if (++made_ > kMostValues) {
      fault_ = "more values than any configuration has";
      fault_line_ = value.line;
      return;
    }
    if (anchor != 0) anchors_[anchor] = {value, count_values(value)};
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    Open& parent = open_.back();
    if (!parent.value.is_table()) {
      parent.value.items.push_back(std::move(value));
    } else if (!parent.key) {
      put_key(value);
    } else if (*parent.key == "<<" && value.kind == Kind::list) {
      for (Value& item : value.items) parent.merged.push_back(std::move(item));
      parent.key.reset();
    } else if (*parent.key == "<<" && value.is_table()) {
      parent.merged.push_back(std::move(value));
      parent.key.reset();
    } else {
      put_member(std::move(*parent.key), std::move(value));
      parent.key.reset();
    }
  }
  void put_key(const Value& value) {
    if (value.kind == Kind::list || value.is_table()) {
      fault_ = "a key is a list or a table";
      fault_line_ = value.line;
    }
    if (open_.back().value.members.size() >= kMostKeys) {
      fault_ = "a table has more keys than any configuration";
      fault_line_ = value.line;
    }
    open_.back().key = value.text;
  }
  /// The last of equal keys counts, as it does for PyYAML.
  void put_member(std::string key, Value value) {
    std::vector<Member>& members = open_.back().value.members;
    const auto at = std::ranges::find(members, key, &Member::key);
    if (at != members.end())
      at->value = std::move(value);
    else
      members.push_back({std::move(key), std::move(value)});
  }

  Value root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  std::size_t made_ = 0;
  std::string fault_;
  int fault_line_ = 0;
};

/// yaml-cpp reads brackets within brackets by recursion.
bool is_nested_too_deeply(std::string_view content) {
  std::size_t depth = 0;
  for (const char c : content) {
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (depth > 4 * kDeepest) return true;
  }
  return false;
}

Error malformed(std::string what, const std::string& where, int line) {
  return {.code = Errc::malformed,
          .what = std::move(what),
          .where = line > 0 ? where + ":" + std::to_string(line) : where,
          .help = "YAML: 'key: value', indented by blanks"};
}

}  // namespace

Result<Value> read_yaml(std::string_view content, const std::string& where) {
  if (content.find('\0') != std::string_view::npos) return malformed("a zero byte is no text", where, 0);
  if (is_nested_too_deeply(content)) return malformed("tables and lists are nested too deeply", where, 0);
  Handler handler;
  try {
    std::istringstream in{std::string(content)};
    YAML::Parser parser(in);
    parser.HandleNextDocument(handler);
  } catch (const YAML::Exception& fault) {
    if (handler.fault().empty()) return malformed(fault.msg, where, fault.mark.line + 1);
  }
  if (!handler.fault().empty()) return malformed(handler.fault(), where, handler.fault_line());
  if (!has_pointers_in_bounds(handler.root()))
    return malformed("names are longer than any configuration has them", where, 0);
  return std::move(handler.root());
}

}  // namespace shard::foreign
