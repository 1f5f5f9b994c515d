// Do the pictures show the values, and never lose a peak?
#include "sim/cli/chart.h"

#include <gtest/gtest.h>

#include <set>

#include "traces/base/ids.h"

namespace shard::cli {
namespace {

TEST(Chart, BarFillsItsFraction) {
  EXPECT_EQ(bar(0.5, 4, {}), "[##--]");
  EXPECT_EQ(bar(-1, 4, {}), "[----]");
  EXPECT_EQ(bar(7, 2, {.unicode = true}), "[██]");
}

TEST(Chart, SparklineKeepsAPeakThatIsOneValueWide) {
  EXPECT_EQ(sparkline(std::vector<double>{0, 1, 8, 4}, 10, {.unicode = true}), " ▁█▄");
  std::vector<double> values(1000, 1.0);
  values[777] = 100;
  const std::string line = sparkline(values, 10, {});
  EXPECT_EQ(line, ".......#..");
}

std::string show(double value) {
  return std::to_string(static_cast<int>(value));
}

TEST(Chart, StackedAreaStacksInOrderAndListsThePeak) {
  const std::vector<Layer> layers{
      {"parameter", 'P', {1, 1, 1, 1}}, {"idle", 'I', {0, 0, 0, 0}}, {"gathered", 'G', {0, 1, 3, 0}}};
  const AreaOptions options{.width = 8, .height = 4, .show = show, .marks = {{0.0, "fwd"}, {0.5, "bwd"}}};
  EXPECT_EQ(stacked_area(layers, options, {}),
            "4 |    GG\n"
            "  |    GG\n"
            "2 |  GGGG\n"
            "  |PPPPPPPP\n"
            "0 +--------\n"
            "   fwd bwd\n"
            "   at the peak, 4:\n"
            "   G gathered: 3\n"
            "   P parameter: 1\n");
}

TEST(Chart, StackedAreaKeepsAPeakThatIsOneMomentWide) {
  Layer layer{"activation", 'A', std::vector<double>(997, 1.0)};
  layer.values[500] = 10;
  const std::string picture =
      stacked_area(std::vector<Layer>{layer}, {.width = 20, .height = 5, .show = show}, {}).str();
  EXPECT_TRUE(picture.starts_with("10 |          A\n")) << picture;
}

TEST(Chart, ALetterIsTheLayersOwnWhateverElseIsDrawn) {
  for (const double gathered : {0.0, 1.0}) {
    const std::vector<Layer> layers{{"gathered", 'F', {gathered}}, {"gradient", 'G', {1}}};
    const std::string picture = stacked_area(layers, {.width = 1, .height = 2, .show = show}, {}).str();
    EXPECT_NE(picture.find("G gradient"), std::string::npos) << picture;
  }
}

TEST(Chart, EveryCategoryOfMemoryHasAColourOfItsOwn) {
  std::vector<Layer> layers;
  for (char letter = 'A'; letter < 'A' + kCategoryCount; ++letter) layers.push_back({{letter}, letter, {1}});
  const std::string picture = stacked_area(layers, {.width = 1, .height = 9, .show = show}, {.color = true}).str();
  std::set<std::string> colors;
  for (std::size_t at = picture.find("38;5;"); at != std::string::npos; at = picture.find("38;5;", at + 1))
    colors.insert(picture.substr(at, picture.find('m', at) - at));
  EXPECT_EQ(colors.size(), layers.size());
}

TEST(Chart, NothingToDrawIsEmpty) {
  EXPECT_EQ(stacked_area(std::vector<Layer>{{"none", 'N', {0, 0}}}, {}, {}), "");
  EXPECT_EQ(sparkline({}, 10, {}), "");
}

}  // namespace
}  // namespace shard::cli
