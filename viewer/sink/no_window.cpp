// Stands in for window.cpp where this is built without GLFW or OpenGL.
#include "viewer/sink/window.h"

namespace shard::view {

bool has_window() {
  return false;
}

void wake_window() {}

Result<void> run_window(const WindowOptions& /*options*/, const std::function<AfterFrame(const Frame&)>& /*content*/) {
  return Error{
      Errc::unavailable, "this build of shardscope-view has no window: it was built without GLFW or OpenGL",
      "shardscope-view",
      "--screenshot FILE.png, or 'shardscope report'; a window comes with 'make build' in Shardscope's sources"};
}

}  // namespace shard::view
