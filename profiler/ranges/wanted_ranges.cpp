// Names are taken apart from their end.
#include "profiler/ranges/wanted_ranges.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace shard::profiler {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kSeparators = " #:=_-";

std::string in_small(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return small;
}

bool is_usual(std::string_view stem) {
  constexpr std::array<std::string_view, 6> kUsual{"profilerstep", "step",       "iteration",
                                                   "iter",         "train_step", "training_step"};
  return std::ranges::find(kUsual, in_small(stem)) != kUsual.end();
}

}  // namespace

RangeName parts_of(std::string_view name) {
  const std::size_t last = name.find_last_not_of(kDigits);
  const std::size_t digits = last == std::string_view::npos ? 0 : last + 1;
  RangeName parts{name.substr(0, digits), std::nullopt};
  std::int32_t number = 0;
  if (digits < name.size() &&
      std::from_chars(name.data() + digits, name.data() + name.size(), number).ec == std::errc())
    parts.number = number;
  const std::size_t end = parts.stem.find_last_not_of(kSeparators);
  parts.stem = parts.stem.substr(0, end == std::string_view::npos ? 0 : end + 1);
  return parts;
}

std::optional<RangeChooser::Chosen> RangeChooser::begins(std::string_view name) {
  if (!wanted_.steps) {
    if (name != wanted_.name) return std::nullopt;
    return Chosen{};
  }
  const RangeName parts = parts_of(name);
  if (stem_.empty() && is_usual(parts.stem)) stem_ = parts.stem;
  if (stem_.empty() || parts.stem != stem_) return std::nullopt;
  ++count_;
  const std::int32_t step = parts.number.value_or(count_);
  if (step < wanted_.steps->first || step > wanted_.steps->last) return std::nullopt;
  return Chosen{step};
}

}  // namespace shard::profiler
