// When a job's parent no longer waits: a rank that does not come, falls silent, or waits in a call that does not
// return.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/launch/rank_lines.h"
#include "traces/base/result.h"

namespace shard {

/// Pure: knows only the times that it is told.
///   not come     nobody has come or moved for the deadline, and ranks are missing
///   silent       a rank that has come sent no beat for the deadline; its beats come from a thread of their own, so a
///                rank that computes for long is not silent, one that is stopped is
///   blocked      a rank is in a call without a deadline, and no rank has moved for the deadline
/// Ranks name a peer that they wait for by its op; they get kHeadStart for it.
class Watchdog {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// Ranks send beats so often.
  static constexpr std::chrono::milliseconds kBeat{100};
  static constexpr std::chrono::milliseconds kHeadStart{400};

  Watchdog(int ranks, std::chrono::milliseconds deadline, Time start);

  void heard(const RankLines::Beat& beat, Time now);
  /// It has reported, or is gone: nothing more is expected from it.
  void ended(Rank rank);

  /// Errc::retryable naming ranks and place, once a deadline has passed. What has come until `now` must have been told.
  [[nodiscard]] std::optional<Error> overdue(Time now);
  /// Ranks that live and sent no beat for half the deadline: where others wait for one that is stopped, their own
  /// deadline has passed a little earlier than this one's.
  [[nodiscard]] std::vector<Rank> silent(Time now) const;
  /// Where a rank was when it was last heard.
  [[nodiscard]] RunPlace place_of(Rank rank) const { return ranks_[static_cast<std::size_t>(rank.value)].place; }
  /// Whether all ranks have been heard from a part behind `part`.
  [[nodiscard]] bool all_beyond(RunPart part) const;

 private:
  struct Watched {
    bool came = false;
    bool ended = false;
    Time heard{};
    RunPlace place{};
    std::string blocking;
  };
  [[nodiscard]] Error late(const std::vector<int>& ranks, const std::string& what) const;

  std::vector<Watched> ranks_;
  std::chrono::milliseconds deadline_;
  Time moved_;   ///< when a rank last came, or showed another place or call
  Time looked_;  ///< the last call of overdue
};

}  // namespace shard
