// Three rules over what was heard, and when.
#include "executor/launch/watchdog.h"

#include <algorithm>

#include "traces/base/deadline.h"

namespace shard {

Watchdog::Watchdog(int ranks, std::chrono::milliseconds deadline, Time start)
    : ranks_(static_cast<std::size_t>(ranks)), deadline_(deadline), moved_(start), looked_(start) {}

void Watchdog::heard(const RankLines::Beat& beat, Time now) {
  if (beat.rank.value < 0 || static_cast<std::size_t>(beat.rank.value) >= ranks_.size()) return;
  Watched& rank = ranks_[static_cast<std::size_t>(beat.rank.value)];
  // Its first beats may come before the run has said where it is: it has started, as its coming told.
  const RunPlace place = beat.place.part == RunPart::none ? rank.place : beat.place;
  if (!rank.came || rank.place != place || rank.blocking != beat.blocking) moved_ = now;
  rank.came = true;
  rank.heard = now;
  rank.place = place;
  rank.blocking = beat.blocking;
}

void Watchdog::ended(Rank rank) {
  if (rank.value >= 0 && static_cast<std::size_t>(rank.value) < ranks_.size())
    ranks_[static_cast<std::size_t>(rank.value)].ended = true;
}

bool Watchdog::all_beyond(RunPart part) const {
  return std::ranges::all_of(ranks_, [part](const Watched& rank) { return rank.place.part > part; });
}

std::vector<Rank> Watchdog::silent(Time now) const {
  std::vector<Rank> found;
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    if (ranks_[i].came && !ranks_[i].ended && now - ranks_[i].heard > deadline_ / 2)
      found.push_back(Rank{static_cast<std::int32_t>(i)});
  return found;
}

Error Watchdog::late(const std::vector<int>& ranks, const std::string& what) const {
  RunPlace place = ranks.empty() ? RunPlace{} : place_of(Rank{ranks.front()});
  if (place.part == RunPart::none) place.part = RunPart::start;  // before it could say so
  const std::string where = to_string(place);
  return {Errc::retryable, ranks_have(ranks) + " " + what + " within " + in_seconds(deadline_), where, kLookAtThatRank};
}

std::optional<Error> Watchdog::overdue(Time now) {
  // A parent that was stopped itself has heard nothing meanwhile: what it reads now counts from now.
  const bool was_away = now - looked_ > deadline_ / 2 + kBeat;
  looked_ = now;
  if (was_away) {
    moved_ = now;
    for (Watched& rank : ranks_) rank.heard = now;
    return std::nullopt;
  }
  std::vector<int> absent;
  std::vector<int> silent;
  std::vector<int> blocked;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const Watched& rank = ranks_[i];
    if (rank.ended) continue;
    const auto number = static_cast<int>(i);
    if (!rank.came)
      absent.push_back(number);
    else if (now - rank.heard > deadline_ + kHeadStart)
      silent.push_back(number);
    else if (!rank.blocking.empty())
      blocked.push_back(number);
  }
  if (!silent.empty()) return late(silent, "not been heard of");
  if (now - moved_ <= deadline_ + kHeadStart) return std::nullopt;
  if (!absent.empty()) return late(absent, "not come");
  if (!blocked.empty())
    return late(blocked, "not come out of " + ranks_[static_cast<std::size_t>(blocked.front())].blocking);
  return std::nullopt;
}

}  // namespace shard
