// The driver.
#include "tests/viewer/driver.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "viewer/ui/view.h"

namespace shard::view {
namespace {

Session opened(const std::vector<std::string>& traces) {
  Sources sources;
  for (const std::string& trace : traces) sources.traces.push_back(data(trace));
  Result<Session> session = load_session(sources);
  if (!session) {
    ADD_FAILURE() << to_string(session.error());
    return {};
  }
  return std::move(*session);
}

}  // namespace

std::string data(const std::string& name) {
  return std::string(TEST_DATA) + "/viewer/data/" + name;
}

Session predicted_and_measured() {
  return opened({"predicted.sst", "measured.sst"});
}

Session predicted_alone() {
  return opened({"predicted.sst"});
}

Driver::Driver(Session open, int width, int height)
    : session(std::move(open)), state(initial_state(session)), sink(width, height) {
  frames(2);
}

void Driver::frames(int count) {
  for (int i = 0; i < count; ++i) {
    sink.build(
        state.theme, [&](const Frame& frame) { draw_view(session, state, derived, frame); }, input, &items);
    input.wheel = 0;
    input.typed.clear();
  }
}

void Driver::move(float x, float y) {
  input.mouse_x = x;
  input.mouse_y = y;
  frames(2);
}

void Driver::click() {
  input.left = true;
  frames(2);
  input.left = false;
  frames(2);
}

void Driver::double_click() {
  for (int i = 0; i < 2; ++i) {
    input.left = true;
    frames();
    input.left = false;
    frames();
  }
  frames(2);
}

void Driver::drag(float dx, float dy, bool shift) {
  input.shift = shift;
  input.left = true;
  frames();
  constexpr int kMoves = 5;
  const float x = input.mouse_x;
  const float y = input.mouse_y;
  for (int i = 1; i <= kMoves; ++i) {
    input.mouse_x = x + dx * static_cast<float>(i) / kMoves;
    input.mouse_y = y + dy * static_cast<float>(i) / kMoves;
    frames();
  }
  input.left = false;
  frames();
  input.shift = false;
  frames();
}

void Driver::wheel(float steps, bool control) {
  input.control = control;
  input.wheel = steps;
  frames();
  input.control = false;
  frames();
}

void Driver::type(const std::string& text) {
  input.typed = text;
  // A field that opens takes the keyboard a frame later.
  frames(3);
}

void Driver::press_escape() {
  input.keys.escape = true;
  frames(2);
  input.keys.escape = false;
  frames();
}

bool Driver::has(const std::string& name) const {
  return std::ranges::any_of(items, [&](const Item& item) { return item.name == name; });
}

Rect Driver::at(const std::string& name) const {
  for (const Item& item : items) {
    if (item.name == name) return item.rect;
  }
  ADD_FAILURE() << "nothing is named '" << name << "' in the frame";
  return {};
}

void Driver::move_to(const std::string& name) {
  const Rect rect = at(name);
  move(rect.x0 + rect.width() / 2, rect.y0 + rect.height() / 2);
}

void Driver::click_on(const std::string& name) {
  move_to(name);
  click();
}

std::int64_t Driver::time_under_mouse() const {
  const Rect plot = at("plot:timeline");
  return time_at(state.camera, input.mouse_x - plot.x0, plot.width());
}

std::string Driver::some_wide_span(float width) const {
  const Rect plot = at("plot:timeline");
  for (const Item& item : items) {
    if (item.name.starts_with("span:0/") && item.rect.width() >= width && item.rect.y1 < plot.y1) return item.name;
  }
  ADD_FAILURE() << "no span is " << width << " pixels wide";
  return {};
}

}  // namespace shard::view
