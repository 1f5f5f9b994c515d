// Fonts and style.
#include "viewer/ui/context.h"

#include <imgui.h>

#include <cmath>
#include <filesystem>

namespace shard::view {
namespace {

/// Latin, general punctuation, Greek letters, arrows and comparison signs: what labels use.
constexpr ImWchar kGlyphs[] = {0x0020, 0x00FF, 0x0391, 0x03C9, 0x2010, 0x2027, 0x2190, 0x2193, 0x2212,
                               0x2212, 0x2248, 0x2248, 0x2264, 0x2265, 0x25A0, 0x25CF, 0};

ImFont* load_font(const char* file, float pixels) {
  // Debian, Fedora, Arch, in this order.
  for (const char* folder :
       {"/usr/share/fonts/truetype/dejavu/", "/usr/share/fonts/dejavu-sans-fonts/", "/usr/share/fonts/TTF/"}) {
    const std::string path = std::string(folder) + file;
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    ImFontConfig config;
    // Whole-pixel glyphs: sharp, and the same in every sink.
    config.OversampleH = 1;
    config.PixelSnapH = true;
    return ImGui::GetIO().Fonts->AddFontFromFileTTF(path.c_str(), pixels, &config, kGlyphs);
  }
  return nullptr;
}

}  // namespace

const char* imgui_version() {
  return ImGui::GetVersion();
}

Context::Context(float scale) : context_(ImGui::CreateContext()) {
  ImGui::SetCurrentContext(context_);
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  io.LogFilename = nullptr;
  fonts_.scale = scale;
  fonts_.body = load_font("DejaVuSans.ttf", std::round(14 * scale));
  has_font_ = fonts_.body != nullptr;
  if (has_font_) {
    fonts_.small = load_font("DejaVuSans.ttf", std::round(12 * scale));
    fonts_.bold = load_font("DejaVuSans-Bold.ttf", std::round(14 * scale));
    if (fonts_.bold == nullptr) fonts_.bold = fonts_.body;
  } else {
    ImFontConfig config;
    config.SizePixels = std::round(13 * scale);
    fonts_.body = io.Fonts->AddFontDefault(&config);
    fonts_.small = fonts_.bold = fonts_.body;
  }
}

Context::~Context() {
  ImGui::DestroyContext(context_);
}

void Context::apply(const Theme& theme) const {
  ImGuiStyle style;
  if (theme.name == ThemeName::dark) {
    ImGui::StyleColorsDark(&style);
  } else {
    ImGui::StyleColorsLight(&style);
  }
  style.WindowPadding = ImVec2(8, 6);
  style.FramePadding = ImVec2(7, 3);
  style.ItemSpacing = ImVec2(7, 5);
  style.CellPadding = ImVec2(5, 2);
  style.WindowRounding = 0;
  style.ChildRounding = 0;
  style.FrameRounding = 3;
  style.PopupRounding = 4;
  style.ScrollbarRounding = 3;
  style.GrabRounding = 3;
  style.TabRounding = 3;
  style.WindowBorderSize = 0;
  style.ChildBorderSize = 0;
  style.ScrollbarSize = 11;
  style.AntiAliasedLinesUseTex = false;
  const auto set = [&](ImGuiCol which, Color color) { style.Colors[which] = ImGui::ColorConvertU32ToFloat4(color); };
  set(ImGuiCol_Text, theme.text);
  set(ImGuiCol_TextDisabled, theme.dim);
  set(ImGuiCol_WindowBg, theme.background);
  set(ImGuiCol_ChildBg, theme.pane);
  set(ImGuiCol_PopupBg, theme.bar);
  set(ImGuiCol_Border, theme.border);
  set(ImGuiCol_FrameBg, mix(theme.border, theme.pane, 0.45));
  set(ImGuiCol_FrameBgHovered, mix(theme.accent, theme.pane, 0.25));
  set(ImGuiCol_FrameBgActive, mix(theme.accent, theme.pane, 0.35));
  set(ImGuiCol_Button, mix(theme.border, theme.bar, 0.6));
  set(ImGuiCol_ButtonHovered, mix(theme.accent, theme.bar, 0.35));
  set(ImGuiCol_ButtonActive, mix(theme.accent, theme.bar, 0.55));
  set(ImGuiCol_Header, mix(theme.accent, theme.pane, 0.25));
  set(ImGuiCol_HeaderHovered, mix(theme.accent, theme.pane, 0.35));
  set(ImGuiCol_HeaderActive, mix(theme.accent, theme.pane, 0.45));
  set(ImGuiCol_Tab, mix(theme.border, theme.bar, 0.3));
  set(ImGuiCol_TabHovered, mix(theme.accent, theme.bar, 0.4));
  set(ImGuiCol_TabActive, mix(theme.accent, theme.bar, 0.3));
  set(ImGuiCol_TabUnfocused, mix(theme.border, theme.bar, 0.3));
  set(ImGuiCol_TabUnfocusedActive, mix(theme.accent, theme.bar, 0.3));
  set(ImGuiCol_TableHeaderBg, theme.bar);
  set(ImGuiCol_TableBorderLight, theme.grid);
  set(ImGuiCol_TableBorderStrong, theme.border);
  set(ImGuiCol_TableRowBg, with_alpha(theme.pane, 0));
  set(ImGuiCol_TableRowBgAlt, with_alpha(theme.grid, 110));
  set(ImGuiCol_ScrollbarBg, theme.pane);
  set(ImGuiCol_ScrollbarGrab, theme.border);
  set(ImGuiCol_CheckMark, theme.accent);
  set(ImGuiCol_Separator, theme.border);
  set(ImGuiCol_TextSelectedBg, with_alpha(theme.accent, 90));
  style.ScaleAllSizes(fonts_.scale);
  ImGui::GetStyle() = style;
}

}  // namespace shard::view
