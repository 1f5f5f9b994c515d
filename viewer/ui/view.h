// One frame of the whole viewer.
#pragma once

#include <string_view>

#include "viewer/ui/derived.h"
#include "viewer/ui/frame.h"
#include "viewer/ui/session.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

/// Takes the frame's input, changes `state`, and draws all panes over the whole picture.
void draw_view(const Session& session, ViewState& state, Derived& derived, const Frame& frame);

/// The same while nothing is there yet.
void draw_loading_view(std::string_view what, double share, const Frame& frame);

}  // namespace shard::view
