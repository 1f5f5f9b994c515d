// The log of states.
#include "viewer/commands/view_log.h"

#include <iostream>
#include <nlohmann/json.hpp>

namespace shard::view {

std::string state_line(const Session& session, const ViewState& state) {
  const std::int64_t origin = state.camera.origin_ns;
  const TimeRange seen = visible(state.camera);
  nlohmann::ordered_json line{{"view_begin_ns", seen.begin_ns - origin}, {"view_end_ns", seen.end_ns - origin}};
  line["selected"] = nullptr;
  if (state.selected) line["selected"] = session.documents[state.selected->document].name_of(state.selected->span);
  line["range"] = nullptr;
  if (state.range) line["range"] = {state.range->begin_ns - origin, state.range->end_ns - origin};
  line["marker_ns"] = nullptr;
  if (state.marker_ns) line["marker_ns"] = *state.marker_ns - origin;
  line["tab"] = to_string(state.tab);
  line["rank"] = state.rank.value;
  line["query"] = state.query;
  line["help"] = state.help_open;
  line["search_field"] = state.search_open;
  line["theme"] = state.theme == ThemeName::dark ? "dark" : "light";
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void ViewLog::note(const Session& session, const ViewState& state) {
  if (!enabled_) return;
  std::string line = state_line(session, state);
  if (line == last_) return;
  std::cerr << line << std::endl;  // at once: whoever drives the window waits for it
  last_ = std::move(line);
}

}  // namespace shard::view
