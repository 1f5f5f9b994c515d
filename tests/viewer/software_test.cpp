// The rasteriser: which pixels does a shape cover, and in which colour?
#include "viewer/sink/software.h"

#include <gtest/gtest.h>
#include <imgui.h>

#include <memory>
#include <random>

namespace shard::view {
namespace {

/// Draws what `paint` puts into one draw list over black.
template <class Paint>
Picture painted(int width, int height, Paint paint) {
  // Lives as long as the list.
  const std::unique_ptr<ImGuiContext, decltype(&ImGui::DestroyContext)> context(ImGui::CreateContext(),
                                                                                ImGui::DestroyContext);
  Texture white{1, 1, {0xFFFFFFFFU}};
  ImDrawList list(ImGui::GetDrawListSharedData());
  list._ResetForNewFrame();
  list.PushTextureID(&white);
  list.PushClipRect(ImVec2(0, 0), ImVec2(static_cast<float>(width), static_cast<float>(height)));
  paint(list);
  ImDrawList* lists[] = {&list};
  ImDrawData data;
  data.Valid = true;
  data.CmdLists = lists;
  data.CmdListsCount = 1;
  data.DisplaySize = ImVec2(static_cast<float>(width), static_cast<float>(height));
  Picture picture(width, height);
  for (std::size_t i = 0; i < picture.rgba.size(); ++i) picture.rgba[i] = i % 4 == 3 ? 255 : 0;
  draw_in_software(data, picture);
  return picture;
}

int red(const Picture& picture, int x, int y) {
  return picture
      .rgba[(static_cast<std::size_t>(y) * static_cast<std::size_t>(picture.width) + static_cast<std::size_t>(x)) * 4];
}

void quad(ImDrawList& list, ImVec2 a, ImVec2 c, ImU32 color) {
  list.PrimReserve(6, 4);
  list.PrimRect(a, c, color);
}

TEST(Software, APixelBelongsToTheRectangleThatHoldsItsCentre) {
  const Picture picture =
      painted(8, 4, [](ImDrawList& list) { quad(list, ImVec2(1.4F, 1), ImVec2(4.6F, 3), IM_COL32(200, 0, 0, 255)); });
  std::string row;
  for (int x = 0; x < 8; ++x) row += red(picture, x, 1) != 0 ? '#' : '.';
  EXPECT_EQ(row, ".####...");
  EXPECT_EQ(red(picture, 2, 0), 0);
  EXPECT_EQ(red(picture, 2, 3), 0);
}

TEST(Software, ColoursAreBlendedByTheirAlpha) {
  const Picture picture = painted(2, 1, [](ImDrawList& list) {
    quad(list, ImVec2(0, 0), ImVec2(2, 1), IM_COL32(100, 0, 0, 255));
    quad(list, ImVec2(0, 0), ImVec2(1, 1), IM_COL32(200, 0, 0, 51));
  });
  EXPECT_EQ(red(picture, 0, 0), 120);  // 200 * 0.2 + 100 * 0.8
  EXPECT_EQ(red(picture, 1, 0), 100);
}

TEST(Software, NothingOutsideTheClipIsTouched) {
  const Picture picture = painted(8, 8, [](ImDrawList& list) {
    list.PushClipRect(ImVec2(2, 2), ImVec2(5, 5));
    quad(list, ImVec2(0, 0), ImVec2(8, 8), IM_COL32(255, 0, 0, 255));
    list.PopClipRect();
  });
  for (int y = 0; y < 8; ++y) {
    for (int x = 0; x < 8; ++x) EXPECT_EQ(red(picture, x, y) != 0, x >= 2 && x < 5 && y >= 2 && y < 5);
  }
}

/// Two triangles of any quadrilateral share an edge: each pixel must be covered once, which a translucent colour tells.
TEST(Software, TrianglesThatShareAnEdgeNeitherOverlapNorLeaveGaps) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> jitter(-3, 3);
  for (int round = 0; round < 200; ++round) {
    const ImVec2 a(4 + jitter(random), 4 + jitter(random)), b(28 + jitter(random), 4 + jitter(random));
    const ImVec2 c(28 + jitter(random), 28 + jitter(random)), d(4 + jitter(random), 28 + jitter(random));
    const Picture picture = painted(32, 32, [&](ImDrawList& list) {
      list.PrimReserve(6, 4);
      list.PrimQuadUV(a, b, c, d, ImVec2(0, 0), ImVec2(0, 0), ImVec2(0, 0), ImVec2(0, 0), IM_COL32(255, 0, 0, 128));
    });
    // Inside, away from the four outer edges.
    for (int y = 8; y < 24; ++y) {
      for (int x = 8; x < 24; ++x) ASSERT_EQ(red(picture, x, y), 128) << x << ' ' << y << " round " << round;
    }
  }
}

TEST(Software, TheShortWayOfRectanglesCoversWhatTwoTrianglesDo) {
  std::mt19937 random(11);
  std::uniform_int_distribution<int> place(0, 32 * 16);
  for (int round = 0; round < 300; ++round) {
    // Sixteenths of pixels, which both ways represent exactly; off the centres, where edges decide by rule.
    const auto at = [&] { return (static_cast<float>(place(random)) + 0.5F) / 16; };
    const ImVec2 a(at(), at());
    const ImVec2 c(a.x + at() / 2, a.y + at() / 2);
    const ImU32 color = IM_COL32(255, 0, 0, 128);
    const Picture fast = painted(48, 48, [&](ImDrawList& list) { quad(list, a, c, color); });
    const Picture slow = painted(48, 48, [&](ImDrawList& list) {
      const ImVec2 b(c.x, a.y), d(a.x, c.y);
      list.PrimReserve(6, 6);
      for (const ImVec2& corner : {a, b, c, c, d, a}) list.PrimVtx(corner, ImVec2(0, 0), color);
    });
    ASSERT_EQ(fast.rgba, slow.rgba) << "round " << round;
  }
}

}  // namespace
}  // namespace shard::view
