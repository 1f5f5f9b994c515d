// Do columns tile a view, does moving about keep what it should, and do ticks read well?
#include <gtest/gtest.h>

#include "tests/viewer_index/random_trace.h"
#include "viewer/index/ticks.h"
#include "viewer/index/viewport.h"

namespace shard::view {
namespace {

using testing::pick;
using testing::Random;

TEST(PixelRange, ColumnsTileTheView) {
  Random random(1);
  for (int n = 0; n < 3000; ++n) {
    const std::int64_t begin = pick(random, -(std::int64_t{1} << 61), std::int64_t{1} << 60);
    const std::int64_t length = pick(random, 1, n % 2 == 0 ? 5000 : std::int64_t{1} << 61);
    const PixelRange view{{begin, begin + length}, static_cast<std::int32_t>(pick(random, 1, 2000))};
    EXPECT_EQ(view.begin(0), begin);
    EXPECT_EQ(view.end(view.width - 1), begin + length);
    const auto c = static_cast<std::int32_t>(pick(random, 0, view.width - 1));
    EXPECT_LT(view.begin(c), view.end(c));
    if (view.width <= length && c > 0) {
      EXPECT_EQ(view.begin(c), view.end(c - 1));
    }
    const std::int64_t time = begin + pick(random, 0, length - 1);
    const std::int32_t column = view.column_of(time);
    EXPECT_LE(view.begin(column), time);
    EXPECT_GT(view.end(column), time);
    if (column > 0) {
      EXPECT_LE(view.end(column - 1), time);
    }
  }
}

TEST(Camera, ZoomKeepsTheTimeUnderTheCursorAndComesBack) {
  Random random(2);
  for (int n = 0; n < 300; ++n) {
    const std::int64_t origin = pick(random, 0, std::int64_t{1} << 60);
    const Camera start = fit(origin, {origin, origin + pick(random, 1, std::int64_t{3'600'000'000'000})});
    const double x = static_cast<double>(pick(random, 0, 1600));
    const std::int64_t under = time_at(start, x, 1600);
    Camera camera = start;
    for (int clicks = 0; clicks < 20; ++clicks) camera = zoom(camera, 0.8, x, 1600);
    EXPECT_NEAR(static_cast<double>(time_at(camera, x, 1600) - under), 0, 1);
    if (camera.length_ns <= kShortestViewNs) continue;
    for (int clicks = 0; clicks < 20; ++clicks) camera = zoom(camera, 1 / 0.8, x, 1600);
    EXPECT_NEAR(camera.begin_ns, start.begin_ns, 0.25);
    EXPECT_NEAR(camera.length_ns, start.length_ns, 0.25);
  }
}

TEST(Camera, FitShowsAllAndPanMovesByPixels) {
  const Camera camera = fit(1000, {1000, 2000}, 0.1);
  EXPECT_EQ(visible(camera), (TimeRange{900, 2100}));
  EXPECT_DOUBLE_EQ(x_of(camera, 1500, 1200), 600);
  EXPECT_EQ(visible(pan(camera, 120, 1200)), (TimeRange{780, 1980}));
  EXPECT_EQ(visible(center(camera, 5000)), (TimeRange{4400, 5600}));
  EXPECT_EQ(visible(fit(0, {70, 70})), (TimeRange{-430, 570}));
  EXPECT_EQ(visible(keep_near(pan(camera, -1e6, 1200), {1000, 2000})), (TimeRange{1400, 2600}));
}

TEST(Ticks, TimeLabelsAreRoundAndDiffer) {
  const std::vector<Tick> ticks = time_ticks(Camera{0, 0, 10e6}, 0, 1000, 100);
  ASSERT_EQ(ticks.size(), 11u);
  EXPECT_EQ(ticks[0], (Tick{0, "0"}));
  EXPECT_EQ(ticks[5], (Tick{500, "5 ms"}));
  Random random(3);
  for (int n = 0; n < 500; ++n) {
    const Camera camera{0, static_cast<double>(pick(random, 0, std::int64_t{1} << 45)),
                        static_cast<double>(pick(random, 16, std::int64_t{1} << (n % 44 + 5)))};
    const std::vector<Tick> some = time_ticks(camera, 0, 1600, 90);
    EXPECT_LE(some.size(), 19u);
    if (camera.length_ns > 100) {
      EXPECT_GE(some.size(), 5u);
    }
    for (std::size_t i = 1; i < some.size(); ++i) {
      EXPECT_NE(some[i].label, some[i - 1].label);
      EXPECT_GE(some[i].position - some[i - 1].position, 89.9);
    }
  }
}

TEST(Ticks, BytesAreBinary) {
  const std::vector<Tick> ticks = byte_ticks(0, std::int64_t{4} << 30, 200, 40);
  std::vector<std::string> labels;
  for (const Tick& tick : ticks) labels.push_back(tick.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"0", "1 GiB", "2 GiB", "3 GiB", "4 GiB"}));
  EXPECT_TRUE(byte_ticks(0, 0, 200).empty());
  EXPECT_EQ(byte_ticks(-100, 100, 100, 50).front().label, "-100 B");
}

TEST(Ticks, Texts) {
  EXPECT_EQ(duration_text(37), "37 ns");
  EXPECT_EQ(duration_text(1234), "1.234 us");
  EXPECT_EQ(duration_text(-12'500'000), "-12.50 ms");
  EXPECT_EQ(exact_time_text(1'234'567'890), "1.234 567 890 s");
  EXPECT_EQ(exact_time_text(-5), "-0.000 000 005 s");
  EXPECT_EQ(size_text(1536), "1.50 KiB");
  EXPECT_EQ(size_text(-3 << 20), "-3.00 MiB");
  EXPECT_EQ(size_text(12), "12 B");
}

}  // namespace
}  // namespace shard::view
