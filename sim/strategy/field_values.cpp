// Values of fields as text, as options and for JSON.
#include <charconv>
#include <type_traits>

#include "sim/strategy/fields.h"
#include "traces/base/numbers.h"

namespace shard::plan {
namespace {

template <class... Fs>
struct On : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
On(Fs...) -> On<Fs...>;

template <class List, class Show>
std::string joined(const List& list, Show show) {
  std::string text;
  for (const auto& each : list) text += (text.empty() ? "" : ",") + show(each);
  return text;
}

/// The number that a reader means: 0.1, not the float next to it.
double as_double(float number) {
  const std::string digits = shortest(number);
  double value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

}  // namespace

std::string value_text(const Field& field, const Strategy& s) {
  return std::visit(
      On{[&](const Member<bool>& m) -> std::string { return m.of(s) ? "true" : "false"; },
         [&](const Member<std::int32_t>& m) { return std::to_string(m.of(s)); },
         [&](const Member<std::int64_t>& m) { return std::to_string(m.of(s)); },
         [&](const Member<float>& m) { return shortest(m.of(s)); },
         [&](const Member<double>& m) { return shortest(m.of(s)); },
         [&](const Member<Elems>& m) { return std::to_string(m.of(s).count()); },
         [&](const Member<Bytes>& m) { return std::to_string(m.of(s).count()); },
         [&](const Member<std::optional<Bytes>>& m) { return m.of(s) ? std::to_string(m.of(s)->count()) : ""; },
         [&](const Member<std::vector<std::string>>& m) {
           return joined(m.of(s), [](const std::string& text) { return text; });
         },
         [&](const Member<std::vector<std::int32_t>>& m) {
           return joined(m.of(s), [](std::int32_t number) { return std::to_string(number); });
         },
         [&](const WordMember& m) -> std::string { return m.words().at(m.of(s)).text; },
         [&](const ShareMember& m) { return m.member.of(s) ? to_string(*m.member.of(s)) : ""; }},
      field.place);
}

std::string option_text(const Field& f, const Strategy& s) {
  const std::string option = "--" + std::string(f.option);
  switch (f.given_by) {
    case GivenBy::none: return "";
    case GivenBy::asked: return option + ' ' + std::string(f.value_name);
    case GivenBy::chunks:
      if (s.has_variable_chunks()) return option + " variable:" + std::to_string(s.chunk_elems.count());
      return option + ' ' + (s.chunk_per_tensor ? "none" : std::to_string(s.chunk_elems.count()));
    case GivenBy::value: break;
  }
  if (const auto* flag = std::get_if<Member<bool>>(&f.place))
    return flag->of(s) ? option : "--no-" + std::string(f.option);
  return option + ' ' + value_text(f, s);
}

Piece option_piece(const Field& field, const Strategy& s) {
  return {field.option, option_text(field, s)};
}

JsonValue json_value(const Field& field, const Strategy& s) {
  return std::visit(On{[&](const Member<bool>& m) -> JsonValue { return m.of(s); },
                       [&](const Member<std::int32_t>& m) -> JsonValue { return std::int64_t{m.of(s)}; },
                       [&](const Member<std::int64_t>& m) -> JsonValue { return m.of(s); },
                       [&](const Member<float>& m) -> JsonValue { return as_double(m.of(s)); },
                       [&](const Member<double>& m) -> JsonValue { return m.of(s); },
                       [&](const Member<Elems>& m) -> JsonValue { return m.of(s).count(); },
                       [&](const Member<Bytes>& m) -> JsonValue {
                         return m.of(s) > Bytes{0} ? JsonValue(m.of(s).count()) : JsonValue(nullptr);
                       },
                       [&](const Member<std::optional<Bytes>>& m) -> JsonValue {
                         return m.of(s) ? JsonValue(m.of(s)->count()) : JsonValue(nullptr);
                       },
                       [&](const Member<std::vector<std::string>>& m) -> JsonValue { return m.of(s); },
                       [&](const Member<std::vector<std::int32_t>>& m) -> JsonValue {
                         return std::vector<std::int64_t>(m.of(s).begin(), m.of(s).end());
                       },
                       [&](const WordMember&) -> JsonValue { return value_text(field, s); },
                       [&](const ShareMember& m) -> JsonValue {
                         return m.member.of(s) ? JsonValue(to_string(*m.member.of(s))) : JsonValue(nullptr);
                       }},
                    field.place);
}

}  // namespace shard::plan
