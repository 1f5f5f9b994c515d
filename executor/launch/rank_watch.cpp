// Two ticks.
#include "executor/launch/rank_watch.h"

#include "executor/launch/watchdog.h"
#include "traces/base/deadline.h"
#include "traces/base/run_place.h"

namespace shard {

stop::Registration watch_for_parent(ParentLine& line) {
  return stop::every(Watchdog::kBeat, [&line] {
    if (!line.beat()) stop::end({Errc::retryable, "the process that started this rank is gone", "", ""});
    if (const int signal = line.take_request(); signal != 0) stop::ask(signal);
  });
}

stop::Registration watch_blocking_calls(Rank rank, std::chrono::milliseconds deadline) {
  return stop::every(Watchdog::kBeat, [=] {
    const BlockingCall::Now call = BlockingCall::now();
    if (call.name == nullptr || std::chrono::steady_clock::now() - call.since <= deadline) return;
    stop::end({Errc::retryable, std::string(call.name) + " has not returned within " + in_seconds(deadline),
               "rank " + std::to_string(rank.value) + ", " + to_string(run_place()), kLookAtThatRank});
  });
}

}  // namespace shard
