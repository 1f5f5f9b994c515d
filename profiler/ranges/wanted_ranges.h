// Which named ranges of a program are to be recorded: those of one name, or those that are its steps A to B.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shard::profiler {

/// Of training, counted from 1, both ends included.
struct WantedSteps {
  std::int32_t first = 1;
  std::int32_t last = 1;

  friend bool operator==(const WantedSteps&, const WantedSteps&) = default;
};

struct WantedRanges {
  std::string name{};                  ///< ranges of exactly this name
  std::optional<WantedSteps> steps{};  ///< instead of a name
  std::string step_name{};             ///< what the program calls a step, without its number; empty: what is usual

  /// False: everything is recorded.
  [[nodiscard]] bool any() const { return !name.empty() || steps.has_value(); }
};

/// A range's name in two: "ProfilerStep#12" is a "ProfilerStep#" of number 12, "epoch" one without.
struct RangeName {
  std::string_view stem;                 ///< without what separates it from the number
  std::optional<std::int32_t> number{};  ///< that it ends in
};
[[nodiscard]] RangeName parts_of(std::string_view name);

/// Told of each range when it begins, in order. What marks a step: `step_name`, with a number behind it or without;
/// where nobody says, the first range that is called ProfilerStep, step, iteration, iter, train_step or training_step,
/// in capitals or not, settles that ranges called like it are steps. A step's number is the one that its name ends in,
/// else how many there were.
class RangeChooser {
 public:
  explicit RangeChooser(WantedRanges wanted) : wanted_(std::move(wanted)), stem_(parts_of(wanted_.step_name).stem) {}

  struct Chosen {
    std::int32_t step = 0;  ///< 0: it is wanted for its name
  };
  /// Whether this range is wanted.
  [[nodiscard]] std::optional<Chosen> begins(std::string_view name);

 private:
  WantedRanges wanted_;
  std::string stem_;
  std::int32_t count_ = 0;  ///< of steps
};

}  // namespace shard::profiler
