// The two themes. Categories that belong together (parameter and gathered, master and optimizer) share a hue, and
// classes of spans have the hue of the bytes they make: gather and gathered, reduce and gradient, optimizer and state.
#include "viewer/ui/theme.h"

#include <algorithm>
#include <cmath>

namespace shard::view {
namespace {

Theme dark() {
  Theme t;
  t.name = ThemeName::dark;
  t.background = rgb(0x14161B);
  t.pane = rgb(0x1A1D24);
  t.bar = rgb(0x22262F);
  t.grid = rgb(0x2A2F3A);
  t.border = rgb(0x3A414F);
  t.text = rgb(0xE4E8EF);
  t.dim = rgb(0x97A0B0);
  t.accent = rgb(0x5EA3FF);
  t.selection = rgb(0x5EA3FF, 46);
  t.cursor = rgb(0xFFFFFF, 150);
  t.good = rgb(0x5CC98B);
  t.warning = rgb(0xF2B84B);
  t.bad = rgb(0xF26D6D);
  t.category = {rgb(0x3F6FD1), rgb(0x86B6FF), rgb(0xEFA13A), rgb(0x7650C9), rgb(0xB48CF2),
                rgb(0x45B07A), rgb(0x8B95A5), rgb(0xE5605E), rgb(0xDCD05A), rgb(0x68728A)};
  t.span_class = {rgb(0x45B07A), rgb(0x2A9AA6), rgb(0xA9C65A), rgb(0x9B74E8), rgb(0x7FB2FF),
                  rgb(0xEFA13A), rgb(0xE5605E), rgb(0xD06BB0), rgb(0x8B95A5), rgb(0x68728A)};
  t.site = {rgb(0x5B8FF9), rgb(0xF3A24C), rgb(0x4FBF8B), rgb(0xE8684A), rgb(0xA07BE0), rgb(0x45C1D4),
            rgb(0xF2CF4A), rgb(0xDE7DB5), rgb(0x9CC04E), rgb(0xBE8E63), rgb(0x8791A3), rgb(0x59637A)};
  t.series = {rgb(0x5EA3FF), rgb(0xF2A544), rgb(0x5CC98B), rgb(0xE877B5),
              rgb(0xB48CF2), rgb(0x4FC3D0), rgb(0xE5605E), rgb(0xDCD05A)};
  t.chunk = {rgb(0x37415A), rgb(0x3E7D60), rgb(0x7A6A52), rgb(0xF2C14B), rgb(0x79AEFF), rgb(0xE5605E), rgb(0xD06BB0)};
  return t;
}

Theme light() {
  Theme t;
  t.name = ThemeName::light;
  t.background = rgb(0xF2F4F7);
  t.pane = rgb(0xFFFFFF);
  t.bar = rgb(0xE9ECF1);
  t.grid = rgb(0xE6E9EF);
  t.border = rgb(0xC5CBD6);
  t.text = rgb(0x1D222B);
  t.dim = rgb(0x5F6979);
  t.accent = rgb(0x1F66D0);
  t.selection = rgb(0x1F66D0, 40);
  t.cursor = rgb(0x000000, 150);
  t.good = rgb(0x1E8E55);
  t.warning = rgb(0xB87400);
  t.bad = rgb(0xC8322F);
  t.category = {rgb(0x2F5FC4), rgb(0x8FB8F5), rgb(0xE8962A), rgb(0x6B43BF), rgb(0xB592EC),
                rgb(0x3EA56F), rgb(0x9BA4B2), rgb(0xD84F4D), rgb(0xD3C545), rgb(0x7A8496)};
  t.span_class = {rgb(0x47AE79), rgb(0x2C97A4), rgb(0xA3BF55), rgb(0x8E66DD), rgb(0x7BABEF),
                  rgb(0xE8962A), rgb(0xD84F4D), rgb(0xC45DA4), rgb(0x97A0AF), rgb(0x7A8496)};
  t.site = {rgb(0x3D74E0), rgb(0xEE922F), rgb(0x35A571), rgb(0xD9532F), rgb(0x8458CE), rgb(0x1FA3B8),
            rgb(0xE0B81F), rgb(0xCB5D9C), rgb(0x7FA62F), rgb(0xA37444), rgb(0x9AA3B2), rgb(0x6C7689)};
  t.series = {rgb(0x1F66D0), rgb(0xD9780F), rgb(0x1E8E55), rgb(0xC24A8C),
              rgb(0x7D55D0), rgb(0x1C8FA0), rgb(0xC8322F), rgb(0x9C8B00)};
  t.chunk = {rgb(0xD3D9E6), rgb(0x9FD3B8), rgb(0xD6C5A8), rgb(0xEFB52E), rgb(0x5E93EA), rgb(0xD84F4D), rgb(0xC45DA4)};
  return t;
}

std::uint32_t channel(Color color, unsigned shift) {
  return (color >> shift) & 0xFFU;
}

}  // namespace

Color mix(Color a, Color b, double share) {
  const double s = std::clamp(share, 0.0, 1.0);
  Color result = 0xFF000000U;
  for (unsigned shift = 0; shift < 24; shift += 8)
    result |= static_cast<Color>(std::lround(channel(a, shift) * s + channel(b, shift) * (1 - s))) << shift;
  return result;
}

Color ink_on(Color background) {
  // Weights of ITU-R BT.601; the threshold lies where white text on our mid blues is still preferred.
  const double light =
      0.299 * channel(background, 0) + 0.587 * channel(background, 8) + 0.114 * channel(background, 16);
  return light > 140 ? rgb(0x11151B) : rgb(0xFFFFFF);
}

const Theme& theme_of(ThemeName name) {
  static const Theme kDark = dark();
  static const Theme kLight = light();
  return name == ThemeName::dark ? kDark : kLight;
}

}  // namespace shard::view
