// What can be done to a view, apart from how it is asked for; and the one table of keys.
#pragma once

#include <span>
#include <string_view>

#include "viewer/ui/derived.h"
#include "viewer/ui/session.h"
#include "viewer/ui/view_state.h"

namespace shard::view {

enum class Action : std::uint8_t {
  none,  ///< done by holding a key, or by the mouse
  fit,
  search,
  next_match,
  previous_match,
  peak,
  theme,
  memory_by,  ///< colours of memory stand for sites, for categories
  side_panel,
  help,
  note,  ///< opens the field for a note
  next_note,
  previous_note,
  follow_flow,  ///< selects what the selected span leads to
  follow_back,  ///< selects what it waits for
  close,        ///< help, search or note field, range, selection, in this order
};

/// One line of the help overlay. `typed` is the character that does it; 0 where none does.
struct Key {
  std::string_view keys;
  std::string_view what;
  char typed = 0;
  Action action = Action::none;
};

/// Every key and mouse gesture, in the order help lists them. What help shows is what works: keys are looked up here.
[[nodiscard]] std::span<const Key> key_table();

/// Does it, and says in `state.notice` what was done where that is not plain to see.
void act(Action action, const Session& session, ViewState& state, Derived& derived);

/// Everything, or the selected range where there is one and it is not in view already.
void fit_view(const Session& session, ViewState& state);
/// Puts the marker on the peak of the memory shown and brings it into view.
void go_to_peak(const Session& session, ViewState& state);
/// Selects a span and brings it into view; `zoom` fills a good part of the view with it.
void go_to_span(const Session& session, ViewState& state, SpanRef span, bool zoom);
/// A span's time on the axis.
[[nodiscard]] TimeRange axis_time(const Session& session, const ViewState& state, SpanRef span);

}  // namespace shard::view
