// Which chunk is where over time: a row per unit of one rank, exact shares where units share a pixel.
#pragma once

#include <cstddef>
#include <optional>

#include "viewer/ui/derived.h"
#include "viewer/ui/frame.h"
#include "viewer/ui/session.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

/// The document that the map is about: the one that tables are about where that says where its chunks are, else the
/// first that does.
[[nodiscard]] std::optional<std::size_t> chunk_document(const Session& session, const ViewState& state);

/// A click selects a unit; its history is in the details.
void draw_chunks(const Session& session, ViewState& state, Derived& derived, const Frame& frame, const Rect& area);

/// The colour of a class of states.
[[nodiscard]] Color color_of(ChunkClass value, const Theme& theme);

}  // namespace shard::view
