// Where each lane of the timeline lies, before anything is drawn.
#pragma once

#include <string>
#include <vector>

#include "viewer/ui/frame.h"
#include "viewer/ui/session.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

/// One line of the timeline: a rank's heading or one row of spans.
struct TimelineLine {
  bool heading = false;
  Rank rank{};
  std::size_t document = 0;
  std::size_t row = 0;        ///< in Document::rows()
  std::string label;          ///< of the track, on its first row of the first document
  std::string tag;            ///< of the document, where there are several, on its first row
  float top = 0, height = 0;  ///< pixels from the first line
};

/// By rank, then track by its name, then document, then row. Only `state.rank` where that is valid.
[[nodiscard]] std::vector<TimelineLine> timeline_lines(const Session& session, const ViewState& state,
                                                       const Frame& frame);

}  // namespace shard::view
