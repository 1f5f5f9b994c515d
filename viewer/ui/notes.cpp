// Marking moments.
#include "viewer/ui/notes.h"

#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "viewer/index/ticks.h"
#include "viewer/ui/overlay.h"
#include "viewer/ui/pane_parts.h"
#include "viewer/ui/widgets.h"

namespace shard::view {
namespace {

std::string title_of(const Note& note) {
  return note.text.empty() ? "bookmark" : note.text;
}

void put(ViewState& state, std::int64_t time_ns, std::string text) {
  const auto at = std::ranges::lower_bound(state.notes, time_ns, {}, &Note::time_ns);
  if (at != state.notes.end() && at->time_ns == time_ns) {
    at->text = std::move(text);
  } else {
    state.notes.insert(at, Note{time_ns, std::move(text)});
  }
}

}  // namespace

void open_note(ViewState& state) {
  const TimeRange seen = visible(state.camera);
  NoteField field;
  field.time_ns = state.marker_ns.value_or(state.hover_ns.value_or(seen.begin_ns + seen.length_ns() / 2));
  for (const Note& note : state.notes) {
    if (note.time_ns != field.time_ns) continue;
    field.text = note.text;
    field.exists = true;
  }
  state.note_field = field;
}

void go_to_note(ViewState& state, std::size_t note) {
  const Note& to = state.notes[note];
  state.marker_ns = to.time_ns;
  if (!visible(state.camera).contains(to.time_ns)) state.camera = center(state.camera, to.time_ns);
  state.notice = "note: " + title_of(to);
}

void step_note(ViewState& state, bool forward) {
  if (state.notes.empty()) {
    state.notice = "there are no notes; M puts one at the marker or the mouse";
    return;
  }
  const TimeRange seen = visible(state.camera);
  if (forward) {
    const std::int64_t from = state.marker_ns.value_or(seen.begin_ns - 1);
    const auto next = std::ranges::upper_bound(state.notes, from, {}, &Note::time_ns);
    go_to_note(state, next == state.notes.end() ? 0 : static_cast<std::size_t>(next - state.notes.begin()));
  } else {
    const std::int64_t from = state.marker_ns.value_or(seen.end_ns);
    const auto at = std::ranges::lower_bound(state.notes, from, {}, &Note::time_ns);
    go_to_note(state, at == state.notes.begin() ? state.notes.size() - 1
                                                : static_cast<std::size_t>(at - state.notes.begin()) - 1);
  }
}

void draw_note_flags(const Canvas& canvas, const Rect& plot, ViewState& state, const PlotMouse& mouse,
                     const Frame& frame) {
  const float height = canvas.line_height(frame.fonts.small) + frame.px(2);
  for (std::size_t i = 0; i < state.notes.size(); ++i) {
    const float x = std::round(x_in(plot, state, state.notes[i].time_ns));
    if (x < plot.x0 - 1 || x >= plot.x1) continue;
    // Up to the next flag.
    float right = plot.x1;
    if (i + 1 < state.notes.size()) right = std::min(right, x_in(plot, state, state.notes[i + 1].time_ns));
    const std::string title = title_of(state.notes[i]);
    const float wanted = canvas.width_of(title, frame.fonts.small) + frame.px(8);
    const Rect flag{x, plot.y0, std::max(x + frame.px(5), std::min(right - 1, x + std::min(wanted, frame.px(160)))),
                    plot.y0 + height};
    canvas.fill(flag, frame.theme.warning);
    canvas.text_in({flag.x0 + frame.px(4), flag.y0, flag.x1, flag.y1}, title, ink_on(frame.theme.warning),
                   frame.fonts.small);
    canvas.vertical(x, plot.y0, plot.y1, frame.theme.warning);
    frame.name("note:" + std::to_string(i), flag);
    if (!mouse.hovered || !flag.contains(mouse.x, mouse.y)) continue;
    if (state.drag == Drag::none)
      ImGui::SetTooltip("%s\nat %s", title.c_str(),
                        exact_time_text(state.notes[i].time_ns - state.camera.origin_ns).c_str());
    if (mouse.clicked) go_to_note(state, i);
  }
}

void draw_note_field(ViewState& state, const Frame& frame, const Rect& area) {
  if (!state.note_field) return;
  NoteField& field = *state.note_field;
  const float width = std::min(frame.px(460), area.width() - frame.px(20));
  const Rect box{area.x0 + frame.px(10), area.y0 + frame.px(8), area.x0 + frame.px(10) + width,
                 area.y0 + frame.px(8) + ImGui::GetFrameHeight() + frame.px(20)};
  const Overlay overlay("note", box, frame, ImGuiWindowFlags_NoScrollbar);
  if (field.focus) {
    ImGui::SetWindowFocus();
    ImGui::SetKeyboardFocusHere();
  }
  std::array<char, 1024> text{};
  std::memcpy(text.data(), field.text.data(), std::min(field.text.size(), text.size() - 1));
  ImGui::SetNextItemWidth(width - frame.px(field.exists ? 190 : 130));
  const bool entered = ImGui::InputTextWithHint(
      "##note", ("note at " + exact_time_text(field.time_ns - state.camera.origin_ns)).c_str(), text.data(),
      text.size(), ImGuiInputTextFlags_AutoSelectAll | ImGuiInputTextFlags_EnterReturnsTrue);
  name_last("field:note", frame);
  if (!field.focus) field.text = text.data();
  field.focus = false;
  ImGui::SameLine();
  const bool keep = button("Keep", frame);
  ImGui::SameLine();
  if (entered || keep) {
    put(state, field.time_ns, field.text);
    state.note_field.reset();
    return;
  }
  if (field.exists) {
    if (button("Delete", frame)) {
      std::erase_if(state.notes, [&](const Note& note) { return note.time_ns == field.time_ns; });
      state.note_field.reset();
      return;
    }
    ImGui::SameLine();
  }
  if (button("Cancel", frame)) state.note_field.reset();
}

void draw_note_list(ViewState& state, const Frame& frame) {
  if (state.notes.empty()) return;
  heading("Notes", frame);
  for (std::size_t i = 0; i < state.notes.size(); ++i) {
    const Note note = state.notes[i];
    swatch(frame.theme.warning, frame);
    const std::string when = exact_time_text(note.time_ns - state.camera.origin_ns);
    const std::string label = title_of(note) + "   " + when + "##note" + std::to_string(i);
    if (ImGui::Selectable(label.c_str(), state.marker_ns == note.time_ns)) go_to_note(state, i);
    name_last("listed note:" + std::to_string(i), frame);
  }
  ImGui::Spacing();
}

}  // namespace shard::view
