// Drawing by rectangles, lines and text; the only place that knows ImDrawList's calls.
#pragma once

#include <string_view>

#include "viewer/ui/frame.h"

struct ImDrawList;

namespace shard::view {

enum class Anchor { left, center, right };

/// Draws into the current ImGui window. Cheap to make.
class Canvas {
 public:
  explicit Canvas(const Frame& frame);

  void fill(const Rect& rect, Color color) const;
  void outline(const Rect& rect, Color color, float thickness = 1) const;
  void horizontal(float x0, float x1, float y, Color color, float thickness = 1) const;
  void vertical(float x, float y0, float y1, Color color, float thickness = 1) const;
  /// Strokes of `dash` pixels.
  void dashed_horizontal(float x0, float x1, float y, Color color, float dash = 6) const;
  void line(float x0, float y0, float x1, float y1, Color color, float thickness = 1) const;
  void triangle(float ax, float ay, float bx, float by, float cx, float cy, Color color) const;
  void dot(float x, float y, float radius, Color color) const;
  void ring(float x, float y, float radius, Color color) const;

  /// One line of text; `anchor` says which point of it (x, top) is. Returns its width.
  float text(float x, float y, std::string_view text, Color color, Anchor anchor = Anchor::left,
             ImFont* font = nullptr) const;
  /// Text inside the rectangle, vertically centred, at its left; what does not fit ends in an ellipsis, nothing where
  /// less than three characters fit.
  void text_in(const Rect& rect, std::string_view text, Color color, ImFont* font = nullptr) const;
  /// Text on a filled ground, moved so that it lies within `bounds`.
  void label(float x, float y, std::string_view text, Color ink, Color ground, const Rect& bounds,
             Anchor anchor = Anchor::left) const;
  [[nodiscard]] float width_of(std::string_view text, ImFont* font = nullptr) const;
  [[nodiscard]] float line_height(ImFont* font = nullptr) const;

  void push_clip(const Rect& rect) const;
  void pop_clip() const;

 private:
  const Frame& frame_;
  ImDrawList* list_;
};

/// Whether a picture may have more than 65,535 corners: not with OpenGL before 3.2.
[[nodiscard]] bool many_vertices();

/// Clips while it lives.
class Clip {
 public:
  Clip(const Canvas& canvas, const Rect& rect) : canvas_(canvas) { canvas_.push_clip(rect); }
  Clip(const Clip&) = delete;
  Clip& operator=(const Clip&) = delete;
  ~Clip() { canvas_.pop_clip(); }

 private:
  const Canvas& canvas_;
};

}  // namespace shard::view
