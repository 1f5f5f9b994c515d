// A line on stderr for every change of what is shown: for scripts and tests that drive the window.
#pragma once

#include <string>

#include "viewer/ui/session.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

/// What can be asserted about a state, as one line of JSON: view_begin_ns, view_end_ns, selected, range, marker_ns,
/// tab, rank, query, help, search_field, theme. Times count from the begin of the first trace.
[[nodiscard]] std::string state_line(const Session& session, const ViewState& state);

class ViewLog {
 public:
  explicit ViewLog(bool enabled) : enabled_(enabled) {}
  /// Prints the state if it differs from the last one printed.
  void note(const Session& session, const ViewState& state);

 private:
  bool enabled_;
  std::string last_;
};

}  // namespace shard::view
