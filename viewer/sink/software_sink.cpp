// The frame loop without a window.
#include "viewer/sink/software_sink.h"

#include <imgui.h>

#include <chrono>
#include <cstring>

namespace shard::view {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// ImGui before 1.87 has no queue of input events.
void feed(ImGuiIO& io, const Input& input) {
  const bool present = input.mouse_x >= 0 && input.mouse_y >= 0;
  const ImVec2 mouse = present ? ImVec2(input.mouse_x, input.mouse_y) : ImVec2(-FLT_MAX, -FLT_MAX);
#if IMGUI_VERSION_NUM >= 18700
  io.AddMousePosEvent(mouse.x, mouse.y);
  io.AddMouseButtonEvent(0, input.left);
  io.AddMouseButtonEvent(1, input.right);
  io.AddMouseButtonEvent(2, input.middle);
  if (input.wheel != 0) io.AddMouseWheelEvent(0, input.wheel);
  io.AddKeyEvent(ImGuiKey_ModShift, input.shift);
  io.AddKeyEvent(ImGuiKey_ModCtrl, input.control);
#else
  io.MousePos = mouse;
  io.MouseDown[0] = input.left;
  io.MouseDown[1] = input.right;
  io.MouseDown[2] = input.middle;
  io.MouseWheel = input.wheel;
  io.KeyShift = input.shift;
  io.KeyCtrl = input.control;
#endif
  io.AddInputCharactersUTF8(input.typed.c_str());
}

}  // namespace

SoftwareSink::SoftwareSink(int width, int height, float scale) : context_(scale), picture_(width, height) {
  ImGuiIO& io = ImGui::GetIO();
  io.DisplaySize = ImVec2(static_cast<float>(width), static_cast<float>(height));
  io.DeltaTime = 1.0F / 60.0F;
  io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
  io.ConfigInputTextCursorBlink = false;
#if IMGUI_VERSION_NUM >= 18700
  // A test's frame is one frame: nothing is spread over the next ones.
  io.ConfigInputTrickleEventQueue = false;
#endif
  unsigned char* pixels = nullptr;
  io.Fonts->GetTexDataAsRGBA32(&pixels, &atlas_.width, &atlas_.height);
  atlas_.rgba.resize(static_cast<std::size_t>(atlas_.width) * static_cast<std::size_t>(atlas_.height));
  std::memcpy(atlas_.rgba.data(), pixels, atlas_.rgba.size() * sizeof(std::uint32_t));
  io.Fonts->SetTexID(&atlas_);
}

double SoftwareSink::build(ThemeName theme, const DrawFrame& draw, const Input& input, Items* items) {
  const auto start = std::chrono::steady_clock::now();
  if (!styled_ || theme != theme_) context_.apply(theme_of(theme));
  styled_ = true;
  theme_ = theme;
  feed(ImGui::GetIO(), input);
  ImGui::NewFrame();
  if (items != nullptr) items->clear();
  draw(Frame{theme_of(theme), context_.fonts(), input.keys, 1.0 / 60, items});
  ImGui::Render();
  return seconds_since(start);
}

double SoftwareSink::draw() {
  const auto start = std::chrono::steady_clock::now();
  const Color background = theme_of(theme_).background;
  for (std::size_t i = 0; i < picture_.rgba.size(); i += 4) std::memcpy(picture_.rgba.data() + i, &background, 4);
  draw_in_software(*ImGui::GetDrawData(), picture_);
  return seconds_since(start);
}

}  // namespace shard::view
