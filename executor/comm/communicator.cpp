// What every communicator shares: counting, waiting, yielding.
#include "executor/comm/communicator.h"

#include <sched.h>
#include <time.h>

namespace shard {

void Communicator::count(const CollectiveRequest& request) {
  CollectiveCount& entry = totals_[request.kind];
  ++entry.calls;
  for (const CommSegment& segment : request.segments) entry.bytes += bytes_of(request.dtype, segment.elems);
}

Result<void> Communicator::wait(Ticket ticket) {
  Backoff backoff;
  while (true) {
    const Result<bool> complete = poll(ticket);
    if (!complete) return complete.error();
    if (*complete) return {};
    backoff.pause();
  }
}

void Backoff::pause() {
  constexpr int kYields = 200;
  ++turns_;
  if (turns_ <= kYields) {
    sched_yield();
    return;
  }
  const long nanoseconds = turns_ < 2 * kYields ? 20'000 : 100'000;
  const timespec nap{0, nanoseconds};
  nanosleep(&nap, nullptr);
}

}  // namespace shard
