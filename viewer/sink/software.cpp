// The rasteriser: rectangles by rows, triangles by edge functions in 1/256 pixel.
#include "viewer/sink/software.h"

#include <imgui.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <utility>

namespace shard::view {
namespace {

struct Target {
  std::uint32_t* pixels;
  int width;
  int x0, y0, x1, y1;  ///< what the command may touch; x1 and y1 are outside
  [[nodiscard]] std::uint32_t* row(int y) const {
    return pixels + static_cast<std::ptrdiff_t>(y) * static_cast<std::ptrdiff_t>(width);
  }
};

/// The first pixel whose centre is at or right of x.
int first_pixel(float x) {
  return static_cast<int>(std::ceil(x - 0.5F));
}

/// a * b / 255, rounded, for two channels of 8 bits in each half of a word.
std::uint32_t scale_pair(std::uint32_t pair, std::uint32_t factor) {
  const std::uint32_t product = pair * factor + 0x00800080U;
  return ((product + ((product >> 8U) & 0x00FF00FFU)) >> 8U) & 0x00FF00FFU;
}

std::uint32_t alpha_of(std::uint32_t color) {
  return color >> 24U;
}

/// `color` over `below`; what is below is opaque and stays so.
std::uint32_t over(std::uint32_t color, std::uint32_t below) {
  const std::uint32_t alpha = alpha_of(color);
  const std::uint32_t keep = 255 - alpha;
  const std::uint32_t red_blue = scale_pair(color & 0x00FF00FFU, alpha) + scale_pair(below & 0x00FF00FFU, keep);
  const std::uint32_t green = scale_pair((color >> 8U) & 0xFFU, alpha) + scale_pair((below >> 8U) & 0xFFU, keep);
  return red_blue | (green << 8U) | 0xFF000000U;
}

/// Channel by channel, a * b / 255.
std::uint32_t modulate(std::uint32_t a, std::uint32_t b) {
  std::uint32_t result = 0;
  for (unsigned shift = 0; shift < 32; shift += 8)
    result |= (((a >> shift) & 0xFFU) * ((b >> shift) & 0xFFU) + 127) / 255 << shift;
  return result;
}

void fill_row(std::uint32_t* row, int x0, int x1, std::uint32_t color) {
  const std::uint32_t alpha = alpha_of(color);
  if (alpha == 255) {
    std::fill(row + x0, row + x1, color);
  } else if (alpha != 0) {
    for (int x = x0; x < x1; ++x) row[x] = over(color, row[x]);
  }
}

struct Texel {
  float u, v;
};

/// Nearest four texels, weighted; coordinates in texels, beyond the edge the edge.
std::uint32_t sample(const Texture& texture, float u, float v) {
  const float fu = u - 0.5F;
  const float fv = v - 0.5F;
  const int x = static_cast<int>(std::floor(fu));
  const int y = static_cast<int>(std::floor(fv));
  const auto wx = static_cast<std::uint32_t>(std::lround((fu - static_cast<float>(x)) * 256.0F));
  const auto wy = static_cast<std::uint32_t>(std::lround((fv - static_cast<float>(y)) * 256.0F));
  const auto at = [&](int i, int j) {
    const int cx = std::clamp(i, 0, texture.width - 1);
    const int cy = std::clamp(j, 0, texture.height - 1);
    return texture
        .rgba[static_cast<std::size_t>(cy) * static_cast<std::size_t>(texture.width) + static_cast<std::size_t>(cx)];
  };
  const std::uint32_t p00 = at(x, y);
  if ((wx == 0 || wx == 256) && (wy == 0 || wy == 256)) return at(x + (wx == 256 ? 1 : 0), y + (wy == 256 ? 1 : 0));
  const std::uint32_t p10 = at(x + 1, y);
  const std::uint32_t p01 = at(x, y + 1);
  const std::uint32_t p11 = at(x + 1, y + 1);
  if (p00 == p10 && p00 == p01 && p00 == p11) return p00;
  std::uint32_t result = 0;
  for (unsigned shift = 0; shift < 32; shift += 8) {
    const std::uint32_t top = ((p00 >> shift) & 0xFFU) * (256 - wx) + ((p10 >> shift) & 0xFFU) * wx;
    const std::uint32_t bottom = ((p01 >> shift) & 0xFFU) * (256 - wx) + ((p11 >> shift) & 0xFFU) * wx;
    result |= ((top * (256 - wy) + bottom * wy + 32768) >> 16U) << shift;
  }
  return result;
}

/// One texel for all corners: a plain area.
bool plain(const ImDrawVert& a, const ImDrawVert& b, const ImDrawVert& c) {
  return a.uv.x == b.uv.x && a.uv.y == b.uv.y && a.uv.x == c.uv.x && a.uv.y == c.uv.y;
}

std::uint32_t texel_of(const Texture& texture, const ImVec2& uv) {
  return sample(texture, uv.x * static_cast<float>(texture.width), uv.y * static_cast<float>(texture.height));
}

/// A rectangle as ImDrawList writes it: a, right of a, c, below a; one colour.
bool is_rectangle(const ImDrawVert* v, const ImDrawIdx* index) {
  if (index[3] != index[0] || index[4] != index[2]) return false;
  const ImDrawVert &a = v[index[0]], &b = v[index[1]], &c = v[index[2]], &d = v[index[5]];
  return a.pos.y == b.pos.y && b.pos.x == c.pos.x && c.pos.y == d.pos.y && d.pos.x == a.pos.x && a.col == b.col &&
         a.col == c.col && a.col == d.col && a.uv.y == b.uv.y && b.uv.x == c.uv.x && c.uv.y == d.uv.y &&
         d.uv.x == a.uv.x;
}

void rectangle(const Target& target, const Texture& texture, const ImDrawVert& a, const ImDrawVert& c) {
  const ImVec2 low(std::min(a.pos.x, c.pos.x), std::min(a.pos.y, c.pos.y));
  const ImVec2 high(std::max(a.pos.x, c.pos.x), std::max(a.pos.y, c.pos.y));
  const int x0 = std::max(target.x0, first_pixel(low.x));
  const int y0 = std::max(target.y0, first_pixel(low.y));
  const int x1 = std::min(target.x1, first_pixel(high.x));
  const int y1 = std::min(target.y1, first_pixel(high.y));
  if (x0 >= x1 || y0 >= y1) return;
  if (a.uv.x == c.uv.x && a.uv.y == c.uv.y) {
    const std::uint32_t texel = texel_of(texture, a.uv);
    const std::uint32_t color = texel == 0xFFFFFFFFU ? a.col : modulate(a.col, texel);
    for (int y = y0; y < y1; ++y) fill_row(target.row(y), x0, x1, color);
    return;
  }
  const float du = (c.uv.x - a.uv.x) * static_cast<float>(texture.width) / (c.pos.x - a.pos.x);
  const float dv = (c.uv.y - a.uv.y) * static_cast<float>(texture.height) / (c.pos.y - a.pos.y);
  const float u0 = a.uv.x * static_cast<float>(texture.width) + (static_cast<float>(x0) + 0.5F - a.pos.x) * du;
  const float v0 = a.uv.y * static_cast<float>(texture.height) + (static_cast<float>(y0) + 0.5F - a.pos.y) * dv;
  for (int y = y0; y < y1; ++y) {
    std::uint32_t* row = target.row(y);
    const float v = v0 + static_cast<float>(y - y0) * dv;
    for (int x = x0; x < x1; ++x) {
      const std::uint32_t texel = sample(texture, u0 + static_cast<float>(x - x0) * du, v);
      if (alpha_of(texel) == 0) continue;
      const std::uint32_t color = modulate(a.col, texel);
      row[x] = alpha_of(color) == 255 ? color : over(color, row[x]);
    }
  }
}

/// 1/256 pixel.
struct Fixed {
  std::int64_t x, y;
};
Fixed fixed(const ImVec2& p) {
  return {static_cast<std::int64_t>(std::lround(p.x * 256.0F)), static_cast<std::int64_t>(std::lround(p.y * 256.0F))};
}
std::int64_t cross(Fixed a, Fixed b, Fixed p) {
  return (b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x);
}
/// Pixels whose centre is on an edge belong to the triangle only where the edge is a top or a left one.
std::int64_t edge_bias(Fixed a, Fixed b) {
  const bool top_left = (a.y == b.y && b.x > a.x) || b.y < a.y;
  return top_left ? 0 : -1;
}

/// The pixels of a row, `count` from its start, that the three edges leave.
std::pair<std::int64_t, std::int64_t> inside(const std::int64_t (&start)[3], const std::int64_t (&bias)[3],
                                             const std::int64_t (&step)[3], std::int64_t count) {
  std::int64_t begin = 0;
  std::int64_t end = count;
  for (int i = 0; i < 3; ++i) {
    const std::int64_t value = start[i] + bias[i];
    if (step[i] == 0) {
      if (value < 0) end = 0;
    } else if (step[i] > 0) {
      if (value < 0) begin = std::max(begin, (-value + step[i] - 1) / step[i]);
    } else {
      end = value < 0 ? 0 : std::min(end, value / -step[i] + 1);
    }
  }
  return {begin, end};
}

std::uint32_t mixed_color(const ImDrawVert* const (&corner)[3], const float (&weight)[3]) {
  std::uint32_t color = 0;
  for (unsigned shift = 0; shift < 32; shift += 8) {
    float channel = 0.5F;
    for (int i = 0; i < 3; ++i) channel += weight[i] * static_cast<float>((corner[i]->col >> shift) & 0xFFU);
    color |= static_cast<std::uint32_t>(std::clamp(channel, 0.0F, 255.0F)) << shift;
  }
  return color;
}

std::uint32_t mixed_texel(const Texture& texture, const ImDrawVert* const (&corner)[3], const float (&weight)[3]) {
  ImVec2 uv(0, 0);
  for (int i = 0; i < 3; ++i) {
    uv.x += weight[i] * corner[i]->uv.x;
    uv.y += weight[i] * corner[i]->uv.y;
  }
  return texel_of(texture, uv);
}

void triangle(const Target& target, const Texture& texture, const ImDrawVert& v0, const ImDrawVert& v1,
              const ImDrawVert& v2) {
  const ImDrawVert* corner[3] = {&v0, &v1, &v2};
  Fixed p[3] = {fixed(v0.pos), fixed(v1.pos), fixed(v2.pos)};
  std::int64_t area = cross(p[0], p[1], p[2]);
  if (area == 0) return;
  if (area < 0) {
    std::swap(p[1], p[2]);
    std::swap(corner[1], corner[2]);
    area = -area;
  }
  const auto [left, right] = std::minmax({p[0].x, p[1].x, p[2].x});
  const auto [top, bottom] = std::minmax({p[0].y, p[1].y, p[2].y});
  const int x0 = std::max(target.x0, static_cast<int>((left + 127) >> 8));
  const int x1 = std::min(target.x1, static_cast<int>((right + 128) >> 8) + 1);
  const int y0 = std::max(target.y0, static_cast<int>((top + 127) >> 8));
  const int y1 = std::min(target.y1, static_cast<int>((bottom + 128) >> 8) + 1);
  if (x0 >= x1 || y0 >= y1) return;
  const bool one_texel = plain(v0, v1, v2);
  const bool one_color = v0.col == v1.col && v0.col == v2.col;
  const std::uint32_t texel = one_texel ? texel_of(texture, v0.uv) : 0;
  const std::uint32_t flat = texel == 0xFFFFFFFFU ? v0.col : modulate(v0.col, texel);
  std::int64_t step_x[3], step_y[3], start[3], bias[3];
  const Fixed origin{(static_cast<std::int64_t>(x0) << 8) + 128, (static_cast<std::int64_t>(y0) << 8) + 128};
  for (int i = 0; i < 3; ++i) {
    const Fixed a = p[(i + 1) % 3];
    const Fixed b = p[(i + 2) % 3];
    bias[i] = edge_bias(a, b);
    start[i] = cross(a, b, origin);
    step_x[i] = -(b.y - a.y) * 256;
    step_y[i] = (b.x - a.x) * 256;
  }
  const float scale = 1.0F / static_cast<float>(area);
  for (int y = y0; y < y1; ++y) {
    std::uint32_t* row = target.row(y);
    const auto [begin, end] = inside(start, bias, step_x, x1 - x0);
    if (begin < end) {
      if (one_texel && one_color) {
        fill_row(row, x0 + static_cast<int>(begin), x0 + static_cast<int>(end), flat);
      } else {
        for (std::int64_t k = begin; k < end; ++k) {
          float weight[3];
          for (int i = 0; i < 3; ++i) weight[i] = static_cast<float>(start[i] + k * step_x[i]) * scale;
          std::uint32_t color = one_color ? v0.col : mixed_color(corner, weight);
          const std::uint32_t here = one_texel ? texel : mixed_texel(texture, corner, weight);
          if (here != 0xFFFFFFFFU) color = modulate(color, here);
          std::uint32_t& pixel = row[x0 + k];
          pixel = over(color, pixel);
        }
      }
    }
    for (int i = 0; i < 3; ++i) start[i] += step_y[i];
  }
}

void command(const ImDrawList& list, const ImDrawCmd& cmd, const Target& target) {
  const auto* texture = static_cast<const Texture*>(cmd.GetTexID());
  assert(texture != nullptr);
  const ImDrawVert* vertices = list.VtxBuffer.Data + cmd.VtxOffset;
  const ImDrawIdx* index = list.IdxBuffer.Data + cmd.IdxOffset;
  const ImDrawIdx* end = index + cmd.ElemCount;
  while (index < end) {
    if (end - index >= 6 && is_rectangle(vertices, index)) {
      rectangle(target, *texture, vertices[index[0]], vertices[index[2]]);
      index += 6;
    } else {
      triangle(target, *texture, vertices[index[0]], vertices[index[1]], vertices[index[2]]);
      index += 3;
    }
  }
}

}  // namespace

void draw_in_software(const ImDrawData& data, Picture& picture) {
  assert(picture.width == static_cast<int>(data.DisplaySize.x) &&
         picture.height == static_cast<int>(data.DisplaySize.y));
  // Pixels are words of IM_COL32's order, which is RGBA in memory on little-endian machines.
  std::vector<std::uint32_t> pixels(picture.rgba.size() / 4);
  std::memcpy(pixels.data(), picture.rgba.data(), picture.rgba.size());
  for (int i = 0; i < data.CmdListsCount; ++i) {
    const ImDrawList& list = *data.CmdLists[i];
    for (const ImDrawCmd& cmd : list.CmdBuffer) {
      if (cmd.UserCallback != nullptr || cmd.ElemCount == 0) continue;
      const Target target{pixels.data(),
                          picture.width,
                          std::max(0, static_cast<int>(cmd.ClipRect.x - data.DisplayPos.x)),
                          std::max(0, static_cast<int>(cmd.ClipRect.y - data.DisplayPos.y)),
                          std::min(picture.width, static_cast<int>(cmd.ClipRect.z - data.DisplayPos.x)),
                          std::min(picture.height, static_cast<int>(cmd.ClipRect.w - data.DisplayPos.y))};
      if (target.x0 < target.x1 && target.y0 < target.y1) command(list, cmd, target);
    }
  }
  std::memcpy(picture.rgba.data(), pixels.data(), picture.rgba.size());
}

}  // namespace shard::view
