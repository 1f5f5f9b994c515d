// The options of other frameworks' programs: one row each, from which the command line declares them. Who has an option
// is the frameworks' rows to tell (framework.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/like/simulate_eager.h"

namespace shard::like {

/// One of several words.
struct ChoicePlace {
  struct Choice {
    std::string_view name;
    std::string_view help;
  };
  std::vector<Choice> choices;
  std::size_t (*of)(const EagerOptions&);  ///< which of them is in force
  void (*set)(EagerOptions&, std::size_t);
};
/// Said or not.
struct FlagPlace {
  bool EagerOptions::*member;
};
struct NumberPlace {
  std::int64_t* (*in)(EagerOptions&);
  double least;
  double most;
};

/// A release of a library, one that is_known().
struct VersionPlace {
  eager::Library library;
  eager::Version EagerOptions::*member;
};

struct OptionField {
  std::string_view option;
  std::string_view value_name{};  ///< of a number or a version
  std::string_view help;
  std::variant<ChoicePlace, FlagPlace, NumberPlace, VersionPlace> place;
  std::int32_t stage = 0;  ///< that it is of alone; 0: of all
};

[[nodiscard]] std::span<const OptionField> option_fields();
/// OptionField::stage; 0 for what is no option of the table.
[[nodiscard]] std::int32_t only_stage_of(std::string_view option);

}  // namespace shard::like
