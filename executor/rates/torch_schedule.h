// Learning-rate schedulers as torch.optim.lr_scheduler names them and Python writes them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/result.h"

namespace shard::rates {

/// One call of a constructor, the optimizer left out: "CosineAnnealingLR(T_max=1000, eta_min=1e-5)". Immutable.
class TorchSchedule {
 public:
  enum class Class : std::uint8_t {
    constant,
    linear,
    exponential,
    step,
    multi_step,
    polynomial,
    cosine_annealing,
    cosine_annealing_warm_restarts,
    one_cycle,
    sequential,
  };

  /// Arguments by position or by keyword, with torch's own defaults; SequentialLR takes a list of the others,
  /// OneCycleLR excepted. What torch refuses is refused. OneCycleLR is to say cycle_momentum=False, since betas do not
  /// move here. `where` names the text in errors. Errors: usage (a class, a parameter or a value that there is not),
  /// malformed (no such expression of Python).
  [[nodiscard]] static Result<TorchSchedule> read(std::string_view text, std::string_view where);

  /// Of the step that follows `step` others, when scheduler.step() stands behind each; `rate`: the optimizer's lr,
  /// which OneCycleLR alone does not look at. Equal to torch's up to rounding: torch multiplies step by step where
  /// there is a closed form. Behind OneCycleLR's total_steps, where torch stops, the rate stays.
  [[nodiscard]] double at(double rate, std::int64_t step) const;

  /// As read() takes it, with every parameter that matters.
  [[nodiscard]] std::string text() const;
  /// Names of the classes, for help.
  [[nodiscard]] static std::string classes();

 private:
  static constexpr std::size_t kMostNumbers = 8;
  friend class TorchScheduleReader;

  Class class_ = Class::constant;
  std::array<double, kMostNumbers> numbers_{};  ///< in the order of the class's parameters
  std::vector<std::int64_t> milestones_{};      ///< rising
  std::vector<TorchSchedule> parts_{};          ///< of sequential
};

}  // namespace shard::rates
