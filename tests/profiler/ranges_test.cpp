// Which ranges are steps, which are wanted, and what is left of a recording by them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "profiler/ranges/wanted_ranges.h"
#include "profiler/record/keep_ranges.h"

namespace shard::profiler {
namespace {

/// Numbers of those that are wanted, in order.
std::vector<std::int32_t> chosen(const WantedRanges& wanted, const std::vector<std::string>& names) {
  RangeChooser chooser(wanted);
  std::vector<std::int32_t> steps;
  for (const std::string& name : names)
    if (const auto found = chooser.begins(name)) steps.push_back(found->step);
  return steps;
}

WantedRanges steps(std::int32_t first, std::int32_t last, std::string name = {}) {
  return {.name = {}, .steps = WantedSteps{first, last}, .step_name = std::move(name)};
}

TEST(RangeChooser, TakesANumberFromANamesEnd) {
  EXPECT_EQ(chosen(steps(20, 21), {"ProfilerStep#19", "ProfilerStep#20", "aten::mm", "ProfilerStep#21"}),
            (std::vector<std::int32_t>{20, 21}));
  EXPECT_EQ(chosen(steps(1, 99), {"Step 7", "Step: 8", "epoch 9"}), (std::vector<std::int32_t>{7, 8}));
}

TEST(RangeChooser, CountsWhereNamesHaveNoNumber) {
  EXPECT_EQ(chosen(steps(2, 3), {"step", "forward", "step", "step", "step"}), (std::vector<std::int32_t>{2, 3}));
}

TEST(RangeChooser, KeepsToTheFirstNameThatLooksLikeAStep) {
  EXPECT_EQ(chosen(steps(1, 9), {"iteration", "step", "step", "iteration"}), (std::vector<std::int32_t>{1, 2}));
}

TEST(RangeChooser, TakesTheNameThatItIsGiven) {
  EXPECT_EQ(chosen(steps(2, 2, "batch"), {"step", "batch", "batch", "batch"}), (std::vector<std::int32_t>{2}));
  EXPECT_EQ(chosen({.name = "validation", .steps = {}, .step_name = {}}, {"validation", "validation 2"}),
            (std::vector<std::int32_t>{0}));
}

TEST(RangeChooser, TakesAnyName) {
  EXPECT_TRUE(chosen(steps(1, 2), {"", "12", "#", "step99999999999999999999", " "}).size() <= 1);
  EXPECT_EQ(parts_of("12").stem, "");
  EXPECT_EQ(parts_of("step # 12").stem, "step");
  EXPECT_EQ(parts_of("step # 12").number, 12);
}

/// Ranges of ten, one after the other, a call in each and the work of it behind all.
SpoolContent three_ranges(const std::string& name, bool told) {
  SpoolContent content;
  content.names[1] = name;
  for (std::uint32_t i = 1; i <= 3; ++i) {
    const std::int64_t begin = 10 * i;
    content.events.push_back({.kind = EventKind::call, .begin_ns = begin + 2, .end_ns = begin + 3, .correlation = i});
    content.events.push_back({.kind = EventKind::kernel, .begin_ns = 100 + i, .end_ns = 101 + i, .correlation = i});
    if (!told || i == 2)
      content.events.push_back(
          {.kind = EventKind::range, .name = 1, .begin_ns = begin, .end_ns = begin + 5, .extra = told ? 2u : 0u});
  }
  content.events.push_back({.kind = EventKind::acquired, .begin_ns = 1, .bytes = 64});
  content.events.push_back({.kind = EventKind::call, .begin_ns = 27, .end_ns = 28, .correlation = 4});
  return content;
}

std::vector<std::uint32_t> kernels_of(const SpoolContent& content) {
  std::vector<std::uint32_t> found;
  for (const Event& event : content.events)
    if (event.kind == EventKind::kernel) found.push_back(event.correlation);
  return found;
}

TEST(KeepRanges, KeepsWorkWhoseCallLiesInside) {
  for (const bool told : {false, true}) {
    SpoolContent content = three_ranges("step", told);
    keep_ranges(content, steps(2, 2));
    EXPECT_EQ(kernels_of(content), (std::vector<std::uint32_t>{2})) << told;
    // Its call, itself, its range and the allocation before all.
    EXPECT_EQ(content.events.size(), 4u) << told;
  }
}

TEST(KeepRanges, KeepsAllRangesOfAName) {
  SpoolContent content = three_ranges("forward", false);
  keep_ranges(content, {.name = "forward", .steps = {}, .step_name = {}});
  EXPECT_EQ(kernels_of(content), (std::vector<std::uint32_t>{1, 2, 3}));
  keep_ranges(content, {.name = "backward", .steps = {}, .step_name = {}});
  EXPECT_TRUE(kernels_of(content).empty());
}

}  // namespace
}  // namespace shard::profiler
