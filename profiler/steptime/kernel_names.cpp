// NVIDIA's demangler writes "(int)4", "[lambda(int) (instance 1)]" and "<unnamed>" where others have "4",
// "{lambda(int)#1}" and "(anonymous namespace)".
#include "profiler/steptime/kernel_names.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

namespace shard::steptime {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

/// Without the arguments at the end, where there are some.
std::string_view without_arguments(std::string_view name) {
  if (const std::size_t clone = name.find(" [clone"); clone != std::string_view::npos) name = name.substr(0, clone);
  if (!name.ends_with(')')) return name;
  int depth = 0;
  for (std::size_t i = name.size(); i-- > 0;) {
    if (name[i] == ')') ++depth;
    if (name[i] == '(' && --depth == 0) return i == 0 ? name : name.substr(0, i);
  }
  return name;
}

/// "(int)4" is 4, "4ul" is 4, "f(int)::" is "f()::". `text` has no spaces.
std::string without_details(std::string_view text) {
  std::string made;
  std::vector<std::size_t> open;  // parentheses, in `made`
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(') open.push_back(made.size());
    if (c == ')' && !open.empty()) {
      const std::size_t from = open.back();
      open.pop_back();
      const std::string_view next = text.substr(i + 1);
      const bool is_function = next.starts_with("::") && from > 0;
      const std::string_view inside = std::string_view(made).substr(from + 1);
      const bool is_cast = !next.empty() && (is_digit(next[0]) || next[0] == '-') && !inside.empty() &&
                           std::ranges::all_of(inside, [](char each) { return is_word(each) || each == ':'; });
      if (is_function || is_cast) made.resize(from);
      if (is_cast) continue;
      if (is_function) made += '(';
    }
    const bool ends_number = (c == 'u' || c == 'l' || c == 'U' || c == 'L') && !made.empty() && is_digit(made.back());
    if (ends_number) {
      std::size_t end = i;
      while (end < text.size() && (text[end] == 'u' || text[end] == 'l' || text[end] == 'U' || text[end] == 'L')) ++end;
      std::size_t begin = made.size();
      while (begin > 0 && is_digit(made[begin - 1])) --begin;
      if ((end == text.size() || !is_word(text[end])) && (begin == 0 || !is_word(made[begin - 1]))) {
        i = end - 1;
        continue;
      }
    }
    made += c;
  }
  return made;
}

void one_form_of_truth(std::string& text, std::string_view word, std::string_view number) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool alone = at > 0 && (text[at - 1] == '<' || text[at - 1] == ',') && end < text.size() &&
                       (text[end] == '>' || text[end] == ',');
    if (alone) text.replace(at, word.size(), number);
  }
}

}  // namespace

std::string readable(std::string_view name) {
  std::string given(name);
  if (!name.starts_with("_Z")) return given;
  int status = 0;
  char* const text = abi::__cxa_demangle(given.c_str(), nullptr, nullptr, &status);
  std::string made = status == 0 && text != nullptr ? text : std::move(given);
  std::free(text);
  return made;
}

std::string bare_name(std::string_view name) {
  const std::string whole = readable(name);
  std::string_view rest = without_arguments(whole);
  constexpr std::string_view kNoResult = "void ";
  if (rest.starts_with(kNoResult)) rest.remove_prefix(kNoResult.size());
  std::string text(rest);
  replace_all(text, "(anonymous namespace)", "{anonymous}");
  replace_all(text, "<unnamed>", "{anonymous}");
  std::erase(text, ' ');
  replace_all(text, "[lambda", "{lambda");
  replace_all(text, "(instance", "#");
  for (std::size_t at = text.find(")]"); at != std::string::npos; at = text.find(")]", at + 1)) {
    std::size_t number = at;
    while (number > 0 && is_digit(text[number - 1])) --number;
    if (number > 0 && text[number - 1] == '#') text.replace(at, 2, "}");
  }
  text = without_details(text);
  one_form_of_truth(text, "true", "1");
  one_form_of_truth(text, "false", "0");
  return text;
}

std::string_view without_template(std::string_view bare) {
  return bare.substr(0, bare.find('<'));
}

}  // namespace shard::steptime
