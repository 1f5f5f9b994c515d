// The walker over a document's leaves, and what tables have in common.
#include "sim/foreign/reading.h"

#include <algorithm>
#include <cassert>
#include <cctype>
#include <charconv>
#include <cmath>

#include "sim/model/closest_name.h"

namespace shard::foreign {
namespace {

/// Of unknown keys for which the closest is looked for: nobody misspells longer or more of them.
constexpr std::size_t kLongestMisspelt = 200;
constexpr int kMostSuggestions = 50;

/// One key of a pointer, and what follows it.
std::string_view next_key(std::string_view& pointer) {
  const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
  const std::string_view key = pointer.substr(0, end);
  pointer.remove_prefix(end);
  return key;
}

/// "/*" is any key, "/log-*" one that begins so.
bool fits_key(std::string_view wanted, std::string_view key) {
  if (wanted.ends_with('*')) return key.starts_with(wanted.substr(0, wanted.size() - 1));
  return wanted == key;
}

bool fits(std::string_view row, std::string_view pointer) {
  while (!row.empty() && !pointer.empty()) {
    const std::string_view wanted = next_key(row);
    if (wanted == "/**" && row.empty()) return true;
    const std::string_view key = next_key(pointer);
    if (!fits_key(wanted, key)) return false;
  }
  return (row.empty() || row == "/**") && pointer.empty();
}

/// Rows know keys within what this leaf should have been.
bool is_table_in(std::span<const Row> rows, const Leaf& leaf) {
  return std::ranges::any_of(rows, [&](const Row& row) {
    if (!row.key.starts_with(leaf.pointer)) return false;
    const std::string_view below = row.key.substr(leaf.pointer.size());
    return below.starts_with('/') && below != "/**";
  });
}

std::string_view name_of(std::string_view pointer) {
  return pointer.empty() ? pointer : pointer.substr(pointer.rfind('/') + 1);
}

/// The known key that the unknown part of a pointer was most likely meant to be; empty for none.
std::string closest_key(std::span<const Row> rows, std::string_view pointer) {
  std::string_view rest = pointer;
  std::string known;
  while (!rest.empty()) {
    const std::string_view key = next_key(rest);
    std::vector<std::string_view> candidates;
    bool exists = false;
    for (const Row& row : rows) {
      std::string_view below = row.key;
      if (!below.starts_with(known)) continue;
      below.remove_prefix(known.size());
      if (!below.starts_with('/')) continue;
      const std::string_view candidate = next_key(below).substr(1);
      exists = exists || candidate == key.substr(1);
      if (!candidate.ends_with('*')) candidates.push_back(candidate);
    }
    if (!exists) return std::string(model::closest_name(key.substr(1), candidates).value_or(""));
    known += key;
  }
  return "";
}

std::string without_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

}  // namespace

void Reading::open_up([[maybe_unused]] Value& root, bool (*is_open)(const Leaf& leaf), std::string_view reason) {
  assert(&root == &root_);
  for (const Leaf& leaf : leaves(root_)) {
    if (!is_open(leaf)) continue;
    leave(leaf.pointer, std::string(reason));
    // The leaf is of `root`, which the caller may change.
    Value& value = const_cast<Value&>(*leaf.value);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    value = {.kind = Kind::null, .line = value.line};
  }
}

Result<void> Reading::walk(std::span<const Row> rows) {
  for (const Leaf& leaf : leaves(root_)) {
    if (leaf.value->is_table()) {
      if (!leaf.pointer.empty()) leave(leaf.pointer, "empty");
      continue;
    }
    if (leaf.value->kind != Kind::null && is_table_in(rows, leaf) &&
        std::ranges::find(rows, leaf.pointer, &Row::key) == rows.end())
      return wrong_kind(leaf, "a table");
    const auto row = std::ranges::find_if(rows, [&](const Row& each) { return fits(each.key, leaf.pointer); });
    if (row != rows.end()) {
      if (row->take == nullptr)
        leave(leaf.pointer, std::string(row->says));
      else if (Result<void> ok = row->take(*this, leaf, *row); !ok)
        return ok;
      continue;
    }
    if (leaf.value->kind == Kind::null) {
      leave(leaf.pointer, "not set");
      continue;
    }
    std::string reason = "not a key of " + tool() + " that Shardscope knows";
    const bool suggests = leaf.pointer.size() <= kLongestMisspelt && suggestions_++ < kMostSuggestions;
    if (const std::string close = suggests ? closest_key(rows, leaf.pointer) : ""; !close.empty())
      reason += "; did you mean '" + close + "'?";
    leave(leaf.pointer, std::move(reason));
  }
  return {};
}

void Reading::set(const Leaf& leaf, std::string_view option, std::string value, Certainty certainty) {
  drop(option, std::string(name_of(leaf.pointer)) + " says it as well, and counts");
  understand(leaf.pointer);
  config_.settings.push_back({.option = std::string(option),
                              .value = std::move(value),
                              .pointer = leaf.pointer,
                              .line = leaf.value->line,
                              .certainty = certainty});
}

void Reading::assume(const Leaf& leaf, std::string_view option, std::string value) {
  config_.settings.push_back({.option = std::string(option),
                              .value = std::move(value),
                              .pointer = leaf.pointer,
                              .line = leaf.value->line,
                              .certainty = Certainty::assumed});
}

void Reading::add(ForeignConfig other, const std::string& pointer, const std::string& file) {
  for (const std::string& key : other.understood) understand(pointer + key);
  for (LeftOut& each : other.left_out) leave(pointer + each.key, std::move(each.reason));
  for (NotPredicted& each : other.not_predicted)
    config_.not_predicted.push_back({pointer + each.key, each.line, std::move(each.reason)});
  for (Setting& each : other.settings) {
    if (each.certainty == Certainty::assumed && setting(each.option) != nullptr) continue;
    drop(each.option, file + " says it as well, and counts");
    each.pointer = pointer + each.pointer;
    each.file = file;
    config_.settings.push_back(std::move(each));
  }
}

void Reading::understand(std::string_view pointer) {
  fates_.insert_or_assign(std::string(pointer), std::nullopt);
}

void Reading::leave(std::string_view pointer, std::string reason) {
  std::optional<std::string>& fate = fates_[std::string(pointer)];
  if (!fate) fate = std::move(reason);
}

void Reading::leave_unpredicted(const Leaf& leaf, std::string reason) {
  leave(leaf.pointer, reason);
  config_.not_predicted.push_back({leaf.pointer, leaf.value->line, std::move(reason)});
}

std::optional<std::string> Reading::in_force(std::string_view option) const {
  if (std::optional<std::string> text = given_.option(option)) return text;
  const Setting* const set = setting(option);
  return set == nullptr ? std::nullopt : std::optional(set->value);
}

const Setting* Reading::setting(std::string_view option) const {
  const auto at = std::ranges::find(config_.settings, option, &Setting::option);
  return at == config_.settings.end() ? nullptr : &*at;
}

void Reading::drop(std::string_view option, std::string reason) {
  const auto at = std::ranges::find(config_.settings, option, &Setting::option);
  if (at == config_.settings.end()) return;
  const std::string pointer = at->pointer;
  config_.settings.erase(at);
  // A key may stand behind several options; with the last of them it goes.
  if (std::ranges::find(config_.settings, pointer, &Setting::pointer) == config_.settings.end())
    leave(pointer, std::move(reason));
}

Error Reading::wrong_kind(const Leaf& leaf, std::string_view wanted) const {
  return {.code = Errc::malformed,
          .what = leaf.pointer + " is " + shown(*leaf.value) + ", not " + std::string(wanted),
          .where = file_ + ":" + std::to_string(leaf.value->line),
          .help = std::string(name_of(leaf.pointer)) + " with " + std::string(wanted)};
}

Error Reading::refused(const Leaf& leaf, std::string why, std::string help) const {
  return {.code = Errc::contradiction,
          .what = leaf.pointer + " is " + shown(*leaf.value) + ": " + std::move(why),
          .where = file_ + ":" + std::to_string(leaf.value->line),
          .help = std::move(help)};
}

ForeignConfig Reading::finish() {
  const std::vector<Setting> settings = config_.settings;
  for (const Setting& each : settings) {
    const std::optional<std::string> text = given_.option(each.option);
    if (!text) continue;
    if (*text == each.value || each.certainty == Certainty::assumed)  // which of the two says it changes nothing
      std::erase_if(config_.settings, [&](const Setting& one) { return one.option == each.option; });
    else
      drop(each.option, "overridden by --" + each.option + " " + *text);
  }
  const auto tell = [&](const std::string& key, const std::optional<std::string>& fate) {
    if (fate)
      config_.left_out.push_back({key, *fate});
    else
      config_.understood.push_back(key);
  };
  for (const Leaf& leaf : leaves(root_)) {
    if (leaf.pointer.empty()) continue;  // nothing in the file
    const auto at = fates_.find(leaf.pointer);
    bool told = at != fates_.end();
    for (std::string_view above = leaf.pointer; !told && !above.empty();) {
      above.remove_suffix(above.size() - above.rfind('/'));
      told = fates_.contains(above);
    }
    if (!told) tell(leaf.pointer, "says nothing beside the other keys");
    if (at == fates_.end()) continue;
    tell(leaf.pointer, at->second);
    fates_.erase(at);
  }
  // Tables, and keys of other files.
  for (const auto& [key, fate] : fates_) tell(key, fate);
  return std::move(config_);
}

bool is_auto(const Value& value) {
  return value.kind == Kind::text && lower(value.text) == "auto";
}

std::optional<double> number_in(const Value& value) {
  if (value.kind == Kind::integer || value.kind == Kind::real) return value.real;
  if (value.kind != Kind::text) return std::nullopt;
  std::string text = without_blanks(value.text);
  if (text.starts_with('+')) text.erase(0, 1);
  double number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || fault != std::errc{} || end != text.data() + text.size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

std::optional<std::int64_t> whole_in(const Value& value) {
  if (value.kind == Kind::integer) return value.integer;
  const std::optional<double> number = number_in(value);
  if (!number || *number != std::floor(*number) || std::abs(*number) > 9e15) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

std::optional<bool> flag_in(const Value& value) {
  if (value.kind == Kind::boolean) return value.boolean;
  if (value.kind == Kind::integer && (value.integer == 0 || value.integer == 1)) return value.integer == 1;
  if (value.kind != Kind::text) return std::nullopt;
  const std::string text = lower(without_blanks(value.text));
  if (text == "true" || text == "yes" || text == "on" || text == "1") return true;
  if (text == "false" || text == "no" || text == "off" || text == "0") return false;
  return std::nullopt;
}

bool is_placeholder(const Value& value) {
  if (value.kind != Kind::text) return false;
  const std::string& text = value.text;
  if (text.find("${") != std::string::npos || text.find("{{") != std::string::npos || text.starts_with('$'))
    return true;
  return text.size() > 2 && text.front() == '<' && text.back() == '>';
}

std::string number_text(double value) {
  char buffer[64];
  const auto [end, fault] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return fault == std::errc{} ? std::string(buffer, end) : std::string();
}

Result<std::int64_t> ways_in(const Reading& reading, const Leaf& leaf) {
  const Value& value = *leaf.value;
  const Value& first = value.kind == Kind::list && !value.items.empty() ? value.items.front() : value;
  const std::optional<std::int64_t> size = whole_in(first);
  if (!size) return reading.wrong_kind(leaf, "a whole number");
  if (*size < 0) return reading.refused(leaf, "it is at least 1", "1");
  return *size;
}

Result<void> just_one(Reading& reading, const Leaf& leaf, const Row& row) {
  if (leaf.value->kind == Kind::null) return reading.leave(leaf.pointer, "not set"), Result<void>();
  const Result<std::int64_t> size = ways_in(reading, leaf);
  if (!size) return size.error();
  if (*size <= 1)
    reading.understand(leaf.pointer);
  else
    reading.leave_unpredicted(leaf, std::string(row.says));
  return {};
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

Result<void> later(Reading& /*reading*/, const Leaf& /*leaf*/, const Row& /*row*/) {
  return {};
}

Result<void> take_flag(Reading& reading, const Leaf& leaf, const Row& row) {
  if (leaf.value->kind == Kind::null) return reading.leave(leaf.pointer, "not set"), Result<void>();
  const std::optional<bool> flag = flag_in(*leaf.value);
  if (!flag) return reading.wrong_kind(leaf, "true or false");
  reading.set(leaf, row.option, *flag ? "true" : "false");
  return {};
}

Result<void> take_count(Reading& reading, const Leaf& leaf, const Row& row) {
  if (leaf.value->kind == Kind::null) return reading.leave(leaf.pointer, "not set"), Result<void>();
  if (is_auto(*leaf.value)) return reading.leave(leaf.pointer, "left to the framework"), Result<void>();
  const std::optional<std::int64_t> count = whole_in(*leaf.value);
  if (!count) return reading.wrong_kind(leaf, "a whole number");
  if (*count < 1) return reading.refused(leaf, "it is at least 1", "1");
  reading.set(leaf, row.option, std::to_string(*count));
  return {};
}

Result<void> take_number(Reading& reading, const Leaf& leaf, const Row& row) {
  if (leaf.value->kind == Kind::null) return reading.leave(leaf.pointer, "not set"), Result<void>();
  const std::optional<double> number = number_in(*leaf.value);
  if (!number) return reading.wrong_kind(leaf, "a number");
  if (*number < 0) return reading.refused(leaf, "it is at least 0", "0");
  reading.set(leaf, row.option, number_text(*number));
  return {};
}

}  // namespace shard::foreign
