// What several panes ask of an allocator's recording: its blocks, who asked for them, the segments they lie in.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "viewer/ui/derived.h"
#include "viewer/ui/frame.h"
#include "viewer/ui/session.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

/// One memory of the first document as blocks, in the classes that colours stand for.
struct BlockView {
  const MemorySeries& series;
  const BlockList& blocks;
  const MemoryClasses& classes;
  MemoryBy by = MemoryBy::site;
};

/// By sites where the trace knows stacks and nobody wants categories.
[[nodiscard]] MemoryBy memory_by(const Session& session, const ViewState& state);

/// Kept in `derived`. Only of a document that is of an allocator.
[[nodiscard]] BlockView block_view(const Session& session, const ViewState& state, Derived& derived,
                                   const MemorySeries& series);

[[nodiscard]] Color color_of(const BlockView& view, std::size_t memory_class, const Theme& theme);

/// Of a stack of the first document; invalid where nothing is known of it.
[[nodiscard]] FrameId site_of(const Session& session, Derived& derived, StackId stack);

/// "train.py:31 step", "no stack".
[[nodiscard]] std::string site_name(const Session& session, Derived& derived, StackId stack);

/// A frame of a stack in few words, never empty.
[[nodiscard]] std::string frame_name(const Trace& trace, FrameId frame);

/// The moment that tables and legends look at: the mouse's where `hover`, else the marker's, else the peak.
struct LookedAt {
  std::size_t moment = 0;
  std::int64_t time_ns = 0;
  const char* when = "";  ///< "at the mouse", "at the marker", "at the peak"
};
[[nodiscard]] LookedAt looked_at(const Session& session, const ViewState& state, const MemorySeries& series,
                                 bool hover);

/// The allocator's segments at the marker, else at the peak, of the device whose memory is shown. Without a map where
/// the file does not tell of any.
[[nodiscard]] const SegmentsShown& segments_shown(const Session& session, const ViewState& state, Derived& derived);

/// Selects a block and shows it in the side panel.
void select_block(ViewState& state, std::uint32_t event);

/// What is known of a block, name and value.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> block_facts(const Session& session,
                                                                           const BlockView& view, std::uint32_t block);

/// The tooltip of a block: site, bytes, life, and the innermost frames of Python, or any where there are none.
void block_tooltip(const Session& session, Derived& derived, const BlockView& view, std::uint32_t block,
                   const Frame& frame);

}  // namespace shard::view
