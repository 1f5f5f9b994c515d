// Stands in for window.cpp where GLFW or OpenGL was missing when this was built.
#include "viewer/sink/window.h"

namespace shard::view {

bool has_window() {
  return false;
}

void wake_window() {}

Result<void> run_window(const WindowOptions& /*options*/, const std::function<AfterFrame(const Frame&)>& /*content*/) {
  return Error{Errc::unavailable, "this build of shardscope-view has no window: GLFW or OpenGL was missing",
               "shardscope-view", "--screenshot FILE.png; or 'make deps' and build again"};
}

}  // namespace shard::view
