// Draws ImGui's draw lists into a picture, without a display and without a graphics library.
#pragma once

#include <cstdint>
#include <vector>

#include "viewer/sink/picture.h"

struct ImDrawData;

namespace shard::view {

/// What an ImTextureID of a software frame points to.
struct Texture {
  int width = 0;
  int height = 0;
  std::vector<std::uint32_t> rgba;  ///< IM_COL32 order: red in the low byte
};

/// Draws over `picture`, which has the size of the draw data's display (frame-buffer scale 1).
///
/// A pixel belongs to a triangle when its centre does (top-left rule), so neighbours neither overlap nor leave gaps;
/// colours are blended in 8 bits as OpenGL does. Axis-parallel rectangles, which are nearly all of a frame, take a
/// shorter way. Textures are read bilinearly. The same data gives the same picture on every machine.
void draw_in_software(const ImDrawData& data, Picture& picture);

}  // namespace shard::view
