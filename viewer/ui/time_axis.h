// The minimap of the whole document and the ruler of what is visible.
#pragma once

#include "viewer/ui/derived.h"
#include "viewer/ui/frame.h"
#include "viewer/ui/session.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

/// The whole memory curve, the steps, and a frame around what is visible; a click or drag moves there.
void draw_minimap(const Session& session, ViewState& state, Derived& derived, const Frame& frame, const Rect& area);

/// Times since the begin of the first document, and the steps by number.
void draw_ruler(const Session& session, ViewState& state, const Frame& frame, const Rect& area);

}  // namespace shard::view
