// A user without hands: moves the mouse, clicks named things, types, and lets frames pass.
#pragma once

#include <optional>
#include <string>

#include "viewer/commands/load_session.h"
#include "viewer/sink/software_sink.h"
#include "viewer/ui/derived.h"
#include "viewer/ui/session.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

/// The file of tests/viewer/data.
[[nodiscard]] std::string data(const std::string& name);

/// Both traces of one small run; stops the test where they do not load.
[[nodiscard]] Session predicted_and_measured();
[[nodiscard]] Session predicted_alone();

class Driver {
 public:
  explicit Driver(Session opened, int width = 1600, int height = 1000);

  /// Lets `count` frames pass.
  void frames(int count = 1);
  /// Puts the mouse there and lets a frame pass.
  void move(float x, float y);
  /// Presses and releases the left button where the mouse is.
  void click();
  void double_click();
  /// From where the mouse is, in several moves.
  void drag(float dx, float dy = 0, bool shift = false);
  void wheel(float steps, bool control = false);
  void type(const std::string& text);
  void press_escape();

  /// The rectangle of a named thing in the last frame; fails the test where there is none.
  [[nodiscard]] Rect at(const std::string& name) const;
  [[nodiscard]] bool has(const std::string& name) const;
  void move_to(const std::string& name);
  void click_on(const std::string& name);

  /// The time under the mouse.
  [[nodiscard]] std::int64_t time_under_mouse() const;
  /// Some span with a visible rectangle of at least `width` pixels: its name as an item.
  [[nodiscard]] std::string some_wide_span(float width) const;

  Session session;
  ViewState state;
  Derived derived;
  Input input;
  Items items;
  SoftwareSink sink;
};

}  // namespace shard::view
