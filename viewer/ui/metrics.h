// Sizes that several panes share, in logical pixels.
#pragma once

namespace shard::view {

inline constexpr float kGutter = 196;      ///< left of every plot: labels and legends
inline constexpr float kTitleHeight = 24;  ///< heading of a pane
inline constexpr float kPad = 8;

}  // namespace shard::view
