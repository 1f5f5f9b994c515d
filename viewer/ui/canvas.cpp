// Drawing through ImDrawList.
#include "viewer/ui/canvas.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace shard::view {

Canvas::Canvas(const Frame& frame) : frame_(frame), list_(ImGui::GetWindowDrawList()) {}

void Canvas::fill(const Rect& r, Color color) const {
  list_->AddRectFilled(ImVec2(r.x0, r.y0), ImVec2(r.x1, r.y1), color);
}

void Canvas::outline(const Rect& r, Color color, float t) const {
  fill({r.x0, r.y0, r.x1, r.y0 + t}, color);
  fill({r.x0, r.y1 - t, r.x1, r.y1}, color);
  fill({r.x0, r.y0 + t, r.x0 + t, r.y1 - t}, color);
  fill({r.x1 - t, r.y0 + t, r.x1, r.y1 - t}, color);
}

void Canvas::horizontal(float x0, float x1, float y, Color color, float t) const {
  const float top = std::floor(y);
  fill({x0, top, x1, top + t}, color);
}

void Canvas::vertical(float x, float y0, float y1, Color color, float t) const {
  const float left = std::floor(x);
  fill({left, y0, left + t, y1}, color);
}

void Canvas::dashed_horizontal(float x0, float x1, float y, Color color, float dash) const {
  for (float x = x0; x < x1; x += 2 * dash) horizontal(x, std::min(x + dash, x1), y, color);
}

void Canvas::line(float x0, float y0, float x1, float y1, Color color, float thickness) const {
  list_->AddLine(ImVec2(x0, y0), ImVec2(x1, y1), color, thickness);
}

void Canvas::triangle(float ax, float ay, float bx, float by, float cx, float cy, Color color) const {
  list_->AddTriangleFilled(ImVec2(ax, ay), ImVec2(bx, by), ImVec2(cx, cy), color);
}

void Canvas::dot(float x, float y, float radius, Color color) const {
  list_->AddCircleFilled(ImVec2(x, y), radius, color, 16);
}

void Canvas::ring(float x, float y, float radius, Color color) const {
  list_->AddCircle(ImVec2(x, y), radius, color, 20, 1.5F);
}

float Canvas::width_of(std::string_view text, ImFont* font) const {
  if (font == nullptr) font = frame_.fonts.body;
  return font->CalcTextSizeA(font->FontSize, 1e9F, 0, text.data(), text.data() + text.size()).x;
}

float Canvas::line_height(ImFont* font) const {
  return (font == nullptr ? frame_.fonts.body : font)->FontSize;
}

float Canvas::text(float x, float y, std::string_view text, Color color, Anchor anchor, ImFont* font) const {
  if (font == nullptr) font = frame_.fonts.body;
  const float width = width_of(text, font);
  if (anchor == Anchor::center) x -= width / 2;
  if (anchor == Anchor::right) x -= width;
  list_->AddText(font, font->FontSize, ImVec2(std::round(x), std::round(y)), color, text.data(),
                 text.data() + text.size());
  return width;
}

void Canvas::text_in(const Rect& r, std::string_view text, Color color, ImFont* font) const {
  if (font == nullptr) font = frame_.fonts.body;
  const float y = std::round(r.y0 + (r.height() - font->FontSize) / 2);
  const float room = r.width();
  if (width_of(text, font) <= room) {
    this->text(r.x0, y, text, color, Anchor::left, font);
    return;
  }
  static constexpr const char* kEllipsis = "\u2026";
  const float left = room - width_of(kEllipsis, font);
  if (left <= 0) return;
  const char* end = nullptr;
  font->CalcTextSizeA(font->FontSize, left, 0, text.data(), text.data() + text.size(), &end);
  const auto count = static_cast<std::size_t>(end - text.data());
  if (count < 3) return;
  this->text(r.x0, y, std::string(text.substr(0, count)) + kEllipsis, color, Anchor::left, font);
}

void Canvas::label(float x, float y, std::string_view text, Color ink, Color ground, const Rect& bounds,
                   Anchor anchor) const {
  const float pad = frame_.px(4);
  const float width = width_of(text, frame_.fonts.small) + 2 * pad;
  const float height = line_height(frame_.fonts.small) + pad;
  if (anchor == Anchor::center) x -= width / 2;
  if (anchor == Anchor::right) x -= width;
  x = std::round(std::clamp(x, bounds.x0, std::max(bounds.x0, bounds.x1 - width)));
  y = std::round(std::clamp(y, bounds.y0, std::max(bounds.y0, bounds.y1 - height)));
  fill({x, y, x + width, y + height}, ground);
  this->text(x + pad, y + pad / 2, text, ink, Anchor::left, frame_.fonts.small);
}

bool many_vertices() {
  return (ImGui::GetIO().BackendFlags & ImGuiBackendFlags_RendererHasVtxOffset) != 0;
}

void Canvas::push_clip(const Rect& r) const {
  list_->PushClipRect(ImVec2(r.x0, r.y0), ImVec2(r.x1, r.y1), true);
}

void Canvas::pop_clip() const {
  list_->PopClipRect();
}

}  // namespace shard::view
