// The memory of an allocator drawn: bands, blocks, and the legend of who asked for them.
#pragma once

#include "viewer/ui/allocator.h"
#include "viewer/ui/canvas.h"
#include "viewer/ui/memory_stack.h"

namespace shard::view {

/// The picture of the plot's columns: of what is large enough at this height of the plot, a rectangle a block.
[[nodiscard]] const BlockPicture& block_picture(const BlockView& view, const ViewState& state, Derived& derived,
                                                const ByteAxis& axis, const Frame& frame);

/// Bands in the colours of their classes, blocks in shades of these. Names "block:EVENT" where somebody asks, of
/// blocks wide and high enough to click.
void draw_block_stack(const Canvas& canvas, const ByteAxis& axis, const BlockView& view, const BlockPicture& picture,
                      const ViewState& state, const Frame& frame);

/// What the allocator had reserved, as a line over the stack, where the trace has a counter of it.
void draw_reserved(const Session& session, const Canvas& canvas, const ByteAxis& axis, const BlockView& view,
                   const ViewState& state, Derived& derived, const Frame& frame);

/// What held most at the peak first: name, bytes, blocks and share at the moment looked at.
void draw_block_legend(const Session& session, const Canvas& canvas, const BlockView& view, const ViewState& state,
                       const Rect& gutter, const Frame& frame);

}  // namespace shard::view
