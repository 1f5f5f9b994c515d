// Whole-number expressions of the family tables: "num_attention_heads*head_dim", "layer>=first_k_dense_replace".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shard::model {

/// The values that a family's names have for one configuration. A name that is set again changes its value.
class Values {
 public:
  void set(std::string_view name, std::int64_t value);
  [[nodiscard]] const std::int64_t* find(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, std::int64_t>> values_;
};

/// What no size may reach: results beyond it stay at it, so no product overflows on the way to being refused.
inline constexpr std::int64_t kTooLarge = std::int64_t{1} << 60;

/// Names, whole numbers, true and false (1 and 0), parentheses and, from loose to tight: | and &, then one comparison
/// (== != < <= > >=), + and -, * / %, !. Without spaces. Something divided by 0 is 0. A fault of spelling or an unknown
/// name is a broken table and asserts; is_expression() finds it beforehand.
[[nodiscard]] std::int64_t evaluate(std::string_view expression, const Values& values);

/// Every name is in `values` and nothing is left over.
[[nodiscard]] bool is_expression(std::string_view expression, const Values& values);

/// The first name in it, empty if there is none: the field to point at when its value is at fault.
[[nodiscard]] std::string_view first_name(std::string_view expression);

}  // namespace shard::model
