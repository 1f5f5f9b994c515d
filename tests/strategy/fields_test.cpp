// Is every member of a strategy in the table, and does all that comes from the table know each of them?
#include "sim/strategy/fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "sim/commands/strategy_options.h"
#include "sim/engine/report.h"
#include "sim/strategy/checks.h"

namespace shard::plan {
namespace {

/// Converts to anything: as many of these as initialise an aggregate are its members.
struct Anything {
  template <class T>
  operator T() const;  // NOLINT: implicit, it stands in for every type
};
template <class T, class... Members>
constexpr std::size_t member_count() {
  if constexpr (requires { T{Members{}..., Anything{}}; })
    return member_count<T, Members..., Anything>();
  else
    return sizeof...(Members);
}

TEST(Fields, EveryMemberHasARow) {
  // A placement's members have rows of their own.
  EXPECT_EQ(fields().size(), member_count<Strategy>() - 1 + member_count<Placement>())
      << "a member of Strategy or Placement without a row in sim/strategy/fields.cpp, or a row without one";
  for (std::size_t i = 0; i < fields().size(); ++i) EXPECT_EQ(static_cast<std::size_t>(fields()[i].id), i);
  std::set<std::string_view> keys;
  for (const Field& f : fields()) {
    EXPECT_TRUE(keys.insert(f.key).second) << f.key;
    EXPECT_EQ(f.option.empty(), f.given_by == GivenBy::none) << f.key;
  }
}

template <class... Fs>
struct On : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
On(Fs...) -> On<Fs...>;

/// Another value than the field has.
void change(const Field& field, Strategy& s) {
  std::visit(
      On{[&](const Member<bool>& m) { m.in(s) = !m.of(s); }, [&](const Member<std::int32_t>& m) { m.in(s) += 1; },
         [&](const Member<std::int64_t>& m) { m.in(s) += 1; },
         [&](const Member<float>& m) { m.in(s) = m.of(s) * 0.5F + 0.1F; },
         [&](const Member<double>& m) { m.in(s) = m.of(s) * 0.5 + 0.1; },
         [&](const Member<Elems>& m) { m.in(s) = m.of(s) + Elems{64}; },
         [&](const Member<Bytes>& m) { m.in(s) = m.of(s) + Bytes{4096}; },
         [&](const Member<std::optional<Bytes>>& m) { m.in(s) = Bytes{512}; },
         [&](const Member<std::vector<std::string>>& m) {
           m.in(s) = {"*.bias", "wte"};
         },
         [&](const Member<std::vector<std::int32_t>>& m) {
           m.in(s) = {0, 3};
         },
         [&](const WordMember& m) { m.set(s, static_cast<std::uint8_t>(m.of(s) == 0 ? 1 : 0)); },
         [&](const ShareMember& m) { m.member.in(s) = Share{.on_device = 0.25}; }},
      field.place);
}

/// A strategy beside which the field says something.
Strategy beside(FieldId id) {
  Strategy s;
  if (id == FieldId::chunk_elems || id == FieldId::chunk_per_tensor || id == FieldId::chunk_starts) {
    s.unit = UnitKind::chunk;
    s.chunk_elems = Elems{128};
  }
  if (id == FieldId::tensor_layout) s.tensor_parallel = 2;
  if (id == FieldId::margin_ratio || id == FieldId::non_model_peak || id == FieldId::device_capacity) {
    s.placement.policy = PlacementPolicy::automatic;
    s.placement.device_capacity = Bytes{1 << 20};
  }
  return s;
}

TEST(Fields, EachChangesTheTextAndTheJson) {
  for (const Field& field : fields()) {
    SCOPED_TRACE(field.key);
    const Strategy before = beside(field.id);
    Strategy after = before;
    change(field, after);
    EXPECT_FALSE(after == before);
    EXPECT_NE(to_string(after), to_string(before));
    const nlohmann::json old_json = engine::to_json(before);
    const nlohmann::json new_json = engine::to_json(after);
    ASSERT_EQ(old_json.size(), fields().size());
    for (const auto& [key, value] : new_json.items()) EXPECT_EQ(value == old_json.at(key), key != field.key) << key;
  }
}

/// The strategy that a command line means.
Strategy parsed(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream in(line);
  for (std::string word; in >> word;) words.push_back(word);
  commands::StrategyOptions options;
  cli::Command command("shardscope", "test", "summary", "");
  commands::add_strategy_options(command, options, false);
  const Result<cli::Outcome> outcome = command.parse(words);
  EXPECT_TRUE(outcome) << line << ": " << to_string(outcome.error());
  return options.chosen;
}

TEST(Fields, OptionsAndValuesAreReadBack) {
  const Strategy fallback = parsed("");
  for (const Field& field : fields()) {
    if (field.given_by != GivenBy::value) continue;
    SCOPED_TRACE(field.option);
    Strategy changed = fallback;
    change(field, changed);
    const std::string option = option_text(field, changed);
    const Strategy read = parsed(option);
    EXPECT_TRUE(read == changed) << option;
    EXPECT_EQ(option_text(field, read), option);
    // And what it is without: a default can be said.
    if (value_text(field, fallback).empty() || (field.least && *field.least > 0 && value_text(field, fallback) == "0"))
      continue;
    EXPECT_TRUE(parsed(option_text(field, fallback)) == fallback) << option_text(field, fallback);
  }
}

TEST(Fields, ChunksAreGivenByOneOption) {
  const Field& size = field(FieldId::chunk_elems);
  Strategy s = beside(FieldId::chunk_elems);
  EXPECT_EQ(option_text(size, s), "--chunk-size 128");
  s.chunk_starts = {0, 3};
  EXPECT_EQ(option_text(size, s), "--chunk-size variable:128");
  s = beside(FieldId::chunk_elems);
  s.chunk_per_tensor = true;
  EXPECT_EQ(option_text(size, s), "--chunk-size none");
}

TEST(Fields, EveryOptionIsDeclared) {
  commands::StrategyOptions options;
  cli::Command command("shardscope", "test", "summary", "");
  commands::add_strategy_options(command, options, false);
  for (const Field& field : fields()) {
    EXPECT_TRUE(field.given_by == GivenBy::none || command.has(field.option)) << field.option;
  }
}

TEST(Fields, OutOfRangeIsRefusedByName) {
  for (const Field& each : fields()) {
    for (const bool above : {false, true}) {
      const std::optional<double> bound = above ? each.most : each.least;
      if (!bound) continue;
      const auto outside = [&](auto step) { return *bound + (above ? step : -step); };
      Strategy s;
      const bool set = std::visit(
          On{[&](const Member<std::int32_t>& m) { return m.in(s) = static_cast<std::int32_t>(outside(1)), true; },
             [&](const Member<std::int64_t>& m) { return m.in(s) = static_cast<std::int64_t>(outside(1)), true; },
             [&](const Member<float>& m) { return m.in(s) = static_cast<float>(outside(1.0)), true; },
             [&](const Member<double>& m) { return m.in(s) = outside(1.0), true; }, [](const auto&) { return false; }},
          each.place);
      ASSERT_TRUE(set) << each.key << " has a range and is no number";
      const Result<void> checked = check(model::Model{}, s);
      ASSERT_FALSE(checked) << each.key;
      EXPECT_EQ(checked.error().code, Errc::contradiction);
      ASSERT_FALSE(checked.error().mentions.empty()) << each.key;
      EXPECT_EQ(checked.error().mentions.front().option, each.option);
    }
  }
}

}  // namespace
}  // namespace shard::plan
