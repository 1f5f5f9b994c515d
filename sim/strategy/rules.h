// What of a strategy's fields and options contradicts what, or says nothing beside it: one table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/strategy/strategy.h"
#include "traces/base/result.h"

namespace shard::plan {

/// The words of a list such as "sgd|adam".
[[nodiscard]] std::vector<std::string_view> words_in(std::string_view list);

/// Values of an option, as they are typed: those of the list, or else all but those.
struct Values {
  bool listed = false;
  std::string_view list{};
  [[nodiscard]] bool hold(std::string_view value) const;
};
[[nodiscard]] constexpr Values one_of(std::string_view list) {
  return {true, list};
}
[[nodiscard]] constexpr Values other_than(std::string_view list) {
  return {false, list};
}

/// When a rule is broken.
enum class Broken : std::uint8_t {
  by_values,   ///< whenever the fields have these values: no plan can be made of them
  if_given,    ///< when the first option is given: it says nothing beside the other, given or by default
  both_given,  ///< when both are given
};

/// Options are without dashes; those of rules that values break are options of fields.
struct Rule {
  std::string_view options;  ///< each of the list
  Values values;
  std::string_view other;
  Values others;
  Broken broken = Broken::both_given;
  std::string_view why;                     ///< between the two; {} is the other
  std::string_view help;                    ///< {} is the option
  std::string_view unless{};                ///< one of these is given: then the two make sense beside each other
  bool (*also)(const Strategy&) = nullptr;  ///< by_values: broken only where this holds too
  std::string (*mend)(Strategy) = nullptr;  ///< by_values: the help, where it depends on the strategy
};

[[nodiscard]] std::span<const Rule> rules();

/// The first rule that the values of a strategy break, as a contradiction that mentions both options.
[[nodiscard]] Result<void> check_rules(const Strategy& strategy);

}  // namespace shard::plan
