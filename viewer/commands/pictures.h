// Pictures of a session without a window, and what they cost.
#pragma once

#include "traces/base/result.h"
#include "viewer/sink/picture.h"
#include "viewer/ui/session.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

struct PictureCosts {
  double first_seconds = 0;  ///< from the session to the first picture, fonts and layout included
  double build_seconds = 0;  ///< of a frame: input, layout, draw lists; median
  double draw_seconds = 0;   ///< of a frame: pixels; median
};

/// The view as one picture. ImGui lays tables out over a few frames, so several are made; `measured_frames` more are
/// timed, where that is not 0.
[[nodiscard]] Picture picture_of(const Session& session, ViewState state, int width, int height, float scale = 1,
                                 int measured_frames = 0, PictureCosts* costs = nullptr);

}  // namespace shard::view
