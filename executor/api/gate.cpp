// Entering, leaving and closing.
#include "executor/api/gate.h"

#include <unistd.h>

#include <string>

namespace shardscope {

Gate::Inside::~Inside() {
  if (gate_ == nullptr) return;  // handed on
  gate_->state_.store(State::free);
  gate_->state_.notify_all();
}

Gate::Gate() : owner_(getpid()) {}

Result<Gate::Inside> Gate::enter(std::shared_ptr<Gate> gate, const char* object) {
  const std::string where = object;
  if (gate == nullptr)
    return Error{.code = Errc::contradiction,
                 .what = "was moved from, and has nothing that could be asked",
                 .where = where,
                 .help = "call the object that it was moved to"};
  if (getpid() != gate->owner_)
    return Error{.code = Errc::contradiction,
                 .what = "belongs to process " + std::to_string(gate->owner_) + "; process " +
                         std::to_string(getpid()) + " was forked off it without the threads of its ranks",
                 .where = where,
                 .help = "start one behind fork()"};
  State expected = State::free;
  if (gate->state_.compare_exchange_strong(expected, State::busy)) return Inside(std::move(gate));
  if (expected == State::closed)
    return Error{.code = Errc::contradiction,
                 .what = "is being destroyed",
                 .where = where,
                 .help = "let every thread that calls it end first"};
  return Error{.code = Errc::retryable,
               .what = "another thread is in a call of it, and one at a time is",
               .where = where,
               .help = "call it from one thread, or under a mutex"};
}

bool Gate::close() {
  if (getpid() != owner_) return false;
  State expected = State::free;
  while (!state_.compare_exchange_strong(expected, State::closed)) {
    state_.wait(expected);
    expected = State::free;
  }
  return true;
}

Result<void> check_rank(int rank, int ranks) {
  if (rank >= 0 && rank < ranks) return {};
  return Error{.code = Errc::contradiction,
               .what = "there is no rank " + std::to_string(rank),
               .where = "rank",
               .help = ranks == 1 ? "rank 0, the only one" : "a rank from 0 to " + std::to_string(ranks - 1)};
}

}  // namespace shardscope
