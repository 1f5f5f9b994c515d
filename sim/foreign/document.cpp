// Looks into a document and lists what is in it.
#include "sim/foreign/document.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace shard::foreign {
namespace {

/// Of one value in a message.
constexpr std::size_t kLongestShown = 60;

constexpr std::size_t kMostPointerBytes = std::size_t{4} << 20;

std::size_t pointer_bytes(const Value& value, std::size_t above) {
  std::size_t sum = above;
  for (const Member& member : value.members) {
    sum += pointer_bytes(member.value, above + member.key.size() + 1);
    if (sum > kMostPointerBytes) break;
  }
  return sum;
}

std::string unescaped(std::string_view part) {
  std::string key;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (part[i] == '~' && i + 1 < part.size())
      key += part[++i] == '1' ? '/' : '~';
    else
      key += part[i];
  }
  return key;
}

void add_leaves(const Value& value, const std::string& at, std::vector<Leaf>& all) {
  if (!value.is_table() || value.members.empty()) {
    all.push_back({at, &value});
    return;
  }
  for (const Member& member : value.members) add_leaves(member.value, at + pointer_part(member.key), all);
}

std::string real_text(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.15g", value);
  return buffer;
}

void show(const Value& value, std::string& text) {
  if (text.size() > kLongestShown) return;
  switch (value.kind) {
    case Kind::null: text += "null"; break;
    case Kind::boolean: text += value.boolean ? "true" : "false"; break;
    case Kind::integer: text += std::to_string(value.integer); break;
    case Kind::real: text += real_text(value.real); break;
    case Kind::text: text += '"' + value.text + '"'; break;
    case Kind::list:
      text += '[';
      for (const Value& item : value.items) {
        if (&item != value.items.data()) text += ", ";
        show(item, text);
      }
      text += ']';
      break;
    case Kind::table:
      text += '{';
      for (const Member& member : value.members) {
        if (&member != value.members.data()) text += ", ";
        text += '"' + member.key + "\": ";
        show(member.value, text);
      }
      text += '}';
      break;
  }
}

}  // namespace

const Value* Value::find(std::string_view key) const {
  const auto at = std::ranges::find(members, key, &Member::key);
  return at == members.end() ? nullptr : &at->value;
}

const Value* Value::at(std::string_view pointer) const {
  const Value* value = this;
  while (!pointer.empty() && value != nullptr) {
    const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
    value = value->find(unescaped(pointer.substr(1, end - 1)));
    pointer.remove_prefix(end);
  }
  return value;
}

Value text_value(std::string text, int line) {
  return {.kind = Kind::text, .line = line, .text = std::move(text)};
}
Value integer_value(std::int64_t integer, int line) {
  return {.kind = Kind::integer, .line = line, .integer = integer, .real = static_cast<double>(integer)};
}
Value real_value(double real, int line) {
  return {.kind = Kind::real, .line = line, .real = real};
}
Value boolean_value(bool boolean, int line) {
  return {.kind = Kind::boolean, .line = line, .boolean = boolean};
}

std::vector<Leaf> leaves(const Value& value) {
  std::vector<Leaf> all;
  add_leaves(value, "", all);
  return all;
}

bool has_pointers_in_bounds(const Value& value) {
  return pointer_bytes(value, 0) <= kMostPointerBytes;
}

std::string pointer_part(std::string_view key) {
  std::string part = "/";
  for (const char c : key) {
    if (c == '~')
      part += "~0";
    else if (c == '/')
      part += "~1";
    else
      part += c;
  }
  return part;
}

std::string shown(const Value& value) {
  std::string text;
  show(value, text);
  if (text.size() > kLongestShown) text = text.substr(0, kLongestShown) + "...";
  return text;
}

}  // namespace shard::foreign
