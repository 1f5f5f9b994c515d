// The order and the heights of lanes.
#include "viewer/ui/timeline_lines.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace shard::view {
namespace {

constexpr float kHeading = 20;
constexpr float kRow = 19;
constexpr float kNestedRow = 16;
constexpr float kTrackGap = 5;

}  // namespace

std::vector<TimelineLine> timeline_lines(const Session& session, const ViewState& state, const Frame& frame) {
  std::vector<TimelineLine> lines;
  // Tracks in the order of the first document that has them.
  std::vector<std::pair<Rank, std::string>> keys;
  std::map<std::pair<Rank, std::string>, std::vector<std::pair<std::size_t, const TrackRows*>>> tracks;
  for (std::size_t d = 0; d < session.documents.size(); ++d) {
    for (const TrackRows& track : session.documents[d].tracks()) {
      if (state.rank.valid() && track.rank != state.rank) continue;
      const std::pair key(track.rank, track.name);
      auto& list = tracks[key];
      if (list.empty()) keys.push_back(key);
      list.emplace_back(d, &track);
    }
  }
  std::ranges::stable_sort(keys, {}, [](const auto& key) { return key.first; });
  const bool several = session.documents.size() > 1;
  float top = 0;
  Rank rank{-2};
  for (const auto& key : keys) {
    if (key.first != rank) {
      rank = key.first;
      TimelineLine heading;
      heading.heading = true;
      heading.rank = rank;
      heading.label = rank.valid() ? "rank " + std::to_string(rank.value) : "no rank";
      heading.top = top;
      heading.height = frame.px(kHeading);
      top += heading.height;
      lines.push_back(std::move(heading));
    }
    bool first = true;
    for (const auto& [d, track] : tracks[key]) {
      for (std::size_t r = 0; r < track->row_count; ++r) {
        const Row& row = session.documents[d].rows()[track->first_row + r];
        TimelineLine line;
        line.rank = rank;
        line.document = d;
        line.row = track->first_row + r;
        if (first) line.label = key.second;
        if (several && r == 0) line.tag = short_name(session, d);
        first = false;
        line.top = top;
        line.height = frame.px(row.depth == 0 ? kRow : kNestedRow);
        top += line.height + frame.px(1);
        lines.push_back(std::move(line));
      }
    }
    top += frame.px(kTrackGap);
  }
  return lines;
}

}  // namespace shard::view
