// Frames through the software sink.
#include "viewer/commands/pictures.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "viewer/sink/software_sink.h"
#include "viewer/ui/view.h"

namespace shard::view {
namespace {

/// After this many frames ImGui's tables and scroll bars have their final sizes.
constexpr int kSettlingFrames = 3;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

Picture picture_of(const Session& session, ViewState state, int width, int height, float scale, int measured_frames,
                   PictureCosts* costs) {
  const auto start = std::chrono::steady_clock::now();
  SoftwareSink sink(width, height, scale);
  Derived derived;
  const DrawFrame content = [&](const Frame& frame) { draw_view(session, state, derived, frame); };
  for (int i = 0; i < kSettlingFrames; ++i) {
    sink.build(state.theme, content);
    if (i > 0 || costs == nullptr) continue;
    sink.draw();
    costs->first_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  sink.draw();
  std::vector<double> builds, draws;
  for (int i = 0; i < measured_frames; ++i) {
    builds.push_back(sink.build(state.theme, content));
    draws.push_back(sink.draw());
  }
  if (costs != nullptr) {
    costs->build_seconds = median(builds);
    costs->draw_seconds = median(draws);
  }
  return sink.picture();
}

}  // namespace shard::view
