// The window's frame loop.
#include "viewer/sink/window.h"

#include <GLFW/glfw3.h>
#include <backends/imgui_impl_glfw.h>
#include <backends/imgui_impl_opengl3.h>
#include <imgui.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "viewer/ui/context.h"

namespace shard::view {
namespace {

/// Between the start and the end of GLFW other threads may post events.
std::mutex glfw_mutex;
bool glfw_runs = false;

struct GlfwSession {
  bool ready = false;
  GlfwSession() {
    const std::lock_guard lock(glfw_mutex);
    ready = glfw_runs = glfwInit() == GLFW_TRUE;
  }
  GlfwSession(const GlfwSession&) = delete;
  GlfwSession& operator=(const GlfwSession&) = delete;
  ~GlfwSession() {
    const std::lock_guard lock(glfw_mutex);
    glfw_runs = false;
    if (ready) glfwTerminate();
  }
};

std::string glfw_problem() {
  const char* text = nullptr;
  glfwGetError(&text);
  return text == nullptr ? "no reason given" : text;
}

/// Starts and ends ImGui's two backends.
struct Backends {
  explicit Backends(GLFWwindow* window) {
    ImGui_ImplGlfw_InitForOpenGL(window, true);
    ready = ImGui_ImplOpenGL3_Init("#version 130");
  }
  Backends(const Backends&) = delete;
  Backends& operator=(const Backends&) = delete;
  ~Backends() {
    if (ready) ImGui_ImplOpenGL3_Shutdown();
    ImGui_ImplGlfw_Shutdown();
  }
  bool ready = false;
};

HeldKeys held_keys(GLFWwindow* window) {
  const auto down = [&](int key) { return glfwGetKey(window, key) == GLFW_PRESS; };
  return {down(GLFW_KEY_W), down(GLFW_KEY_A),      down(GLFW_KEY_S),
          down(GLFW_KEY_D), down(GLFW_KEY_ESCAPE), down(GLFW_KEY_ENTER) || down(GLFW_KEY_KP_ENTER)};
}

}  // namespace

bool has_window() {
  return true;
}

void wake_window() {
  const std::lock_guard lock(glfw_mutex);
  if (glfw_runs) glfwPostEmptyEvent();
}

Result<void> run_window(const WindowOptions& options, const std::function<AfterFrame(const Frame&)>& content) {
  const GlfwSession session;
  if (!session.ready) {
    return Error{Errc::unavailable, "no window can be opened: " + glfw_problem(), "display",
                 "--screenshot FILE.png, which needs no display"};
  }
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 0);
  const std::unique_ptr<GLFWwindow, decltype(&glfwDestroyWindow)> window(
      glfwCreateWindow(options.width, options.height, options.title.c_str(), nullptr, nullptr), glfwDestroyWindow);
  if (!window) {
    return Error{Errc::unavailable, "no window can be opened: " + glfw_problem(), "OpenGL 3.0",
                 "--screenshot FILE.png, which needs no OpenGL"};
  }
  glfwMakeContextCurrent(window.get());
  glfwSwapInterval(1);
  float scale_x = 1;
  float scale_y = 1;
  glfwGetWindowContentScale(window.get(), &scale_x, &scale_y);
  Context context(options.scale > 0 ? static_cast<float>(options.scale) : std::clamp(scale_x, 1.0F, 4.0F));
  const Backends backends(window.get());
  if (!backends.ready) {
    return Error{Errc::unavailable, "OpenGL 3.0 does not start", "display",
                 "--screenshot FILE.png, which needs no OpenGL"};
  }

  ThemeName theme = options.theme;
  context.apply(theme_of(theme));
  // ImGui settles over a few frames after each event (hovering, sizes of tables).
  constexpr int kFramesAfterEvent = 3;
  int frames_left = kFramesAfterEvent;
  double last = glfwGetTime();
  while (glfwWindowShouldClose(window.get()) == GLFW_FALSE) {
    if (frames_left > 0) {
      glfwPollEvents();
      --frames_left;
    } else {
      glfwWaitEvents();
      frames_left = kFramesAfterEvent - 1;
      last = glfwGetTime();  // time spent waiting moves nothing
    }
    ImGui_ImplOpenGL3_NewFrame();
    ImGui_ImplGlfw_NewFrame();
    ImGui::NewFrame();
    const double now = glfwGetTime();
    const HeldKeys keys = held_keys(window.get());
    const AfterFrame after =
        content(Frame{theme_of(theme), context.fonts(), keys, std::clamp(now - last, 0.001, 0.1), nullptr});
    last = now;
    ImGui::Render();
    int width = 0;
    int height = 0;
    glfwGetFramebufferSize(window.get(), &width, &height);
    glViewport(0, 0, width, height);
    const ImVec4 ground = ImGui::ColorConvertU32ToFloat4(theme_of(theme).background);
    glClearColor(ground.x, ground.y, ground.z, 1);
    glClear(GL_COLOR_BUFFER_BIT);
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
    glfwSwapBuffers(window.get());
    if (after.theme != theme) {
      theme = after.theme;
      context.apply(theme_of(theme));
      frames_left = kFramesAfterEvent;
    }
    if (after.busy || keys.w || keys.a || keys.s || keys.d || ImGui::IsAnyMouseDown())
      frames_left = std::max(frames_left, 1);
    if (after.close) break;
  }
  return {};
}

}  // namespace shard::view
