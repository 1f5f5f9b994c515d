// The Communicator contract: one rank's end of the collectives that a plan lists, started and polled, never waited in.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/comm/totals.h"
#include "traces/base/dtype.h"
#include "traces/base/ids.h"
#include "traces/base/rank_group.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard {

/// One contiguous buffer of a call. Offsets are bytes from the start of this rank's own arena and may differ between
/// ranks; `elems` may not. Offsets are multiples of the element size; multiples of 64 are fastest.
struct CommSegment {
  std::int64_t shard_offset = 0;  ///< elems / members elements; unused by the other kinds
  std::int64_t full_offset = 0;   ///< elems elements
  Elems elems{0};                 ///< of the full buffer; a multiple of the number of members for gather and scatter
};

/// One call, grouped over its segments: counted once, complete at once. Members are the ranks of `group`, numbered
/// m = 0, 1, ... in its order, n of them; `own` is this rank's number.
///   all_gather      full[m*S .. (m+1)*S) = shard of member m, on every member; S = elems / n
///   reduce_scatter  shard = sum over members m of full_m[own*S .. (own+1)*S); `full` keeps its values
///   all_reduce      full = sum over members of full, the same bits on every member
///   broadcast       full = full of `root`
///   reduce          full of `root` = sum over members of full; on other members `full` is unspecified afterwards
/// A shard may be the own place in `full` (full_offset + own * S), or not overlap `full` at all.
/// Gathers and broadcasts move any element type, sums take f32, f16, bf16 and i64.
/// Sum: the complete binary tree over the member numbers, neighbours first, ((m0+m1)+(m2+m3))+...; without a power of
/// two the odd one out of each level is carried up unchanged. Every node is computed in fp32 and rounded to `dtype`,
/// wherever it is computed; i64 is exact (modulo 2^64). So the bits depend neither on the implementation, nor on how a
/// buffer is cut into segments (DESIGN.md, "Numbers", rule 1).
struct CollectiveRequest {
  OpId op = {};
  Collective kind = Collective::all_gather;
  std::span<const CommSegment> segments = {};  ///< copied by start
  Dtype dtype = Dtype::f32;
  RankGroup group{};  ///< who takes part; count 0: all ranks
  Rank root{0};       ///< a member, for broadcast and reduce
  /// Planned staging in the own arena, used by the message transport only: comm_workspace_bytes(kind, largest segment,
  /// members) of sim/target/comm_workspace.h, at a multiple of 8. Calls in flight together have disjoint workspaces.
  std::int64_t workspace_offset = 0;
  Bytes workspace{0};
};

/// A started call. Tickets of one communicator count up from 1 in the order of their starts.
struct Ticket {
  std::uint64_t sequence = 0;
  friend bool operator==(Ticket, Ticket) = default;
};

/// What the control structures are sized for; equal on all ranks.
struct CommLimits {
  int in_flight = 16;  ///< calls started and not yet complete; also from the oldest such of a group to its newest
  int segments = 64;   ///< of one call
  int groups = 8;      ///< different groups that one rank calls with
};

struct CommOptions {
  /// A call that makes no progress for so long while it is polled fails, naming the ranks that have not arrived.
  std::chrono::milliseconds deadline{60'000};
};

/// One rank's end. Used by one thread at a time; there are no hidden threads, so calls advance only inside `start`,
/// `poll` and `wait`, and each of those advances every call in flight, oldest first.
///
/// Plan order: any two ranks start the calls that both take part in in the same order; several may be in flight. A rank
/// does not start, and does not notice, calls of groups without it, so different groups work at the same time. The k-th
/// call of a group is matched with the k-th call of its other members. Another call in its place is found out: with
/// shared memory at once (Errc::internal, naming both), with messages by the deadline. Members that disagree about the
/// group wait for one another until the deadline.
///
/// Errors: Errc::retryable when a peer died ("rank 2 died ..."), left, aborted ("rank 2 stopped: ...") or did not
/// arrive within the deadline (only members of the call are named); `where` has the own rank and the op. After one
/// error every further call returns that same error: leave, do not retry. Destroying the communicator tells the peers
/// that this rank has left.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  [[nodiscard]] virtual Rank rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Which implementation: "single", "in-process", "mpi-shared", "mpi-messages".
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// True when collectives use CollectiveRequest::workspace.
  [[nodiscard]] virtual bool needs_workspace() const = 0;

  /// Makes this rank's arena, the only memory that collectives touch: zeroed on first touch, aligned to 4096, owned by
  /// the communicator. Collective and blocking (with the deadline), once, before the first start; sizes may differ
  /// between ranks. Errc::does_not_fit when the place that backs shared memory has no room, naming place, needed and
  /// available bytes.
  [[nodiscard]] virtual Result<std::span<std::byte>> make_arena(Bytes bytes, CommLimits limits) = 0;
  [[nodiscard]] Result<std::span<std::byte>> make_arena(Bytes bytes) { return make_arena(bytes, CommLimits{}); }

  /// Starts a call. Never blocks, does not allocate. The buffers belong to the call until it is complete: nothing may
  /// write what it reads, or touch what it writes. Errc::internal when more than CommLimits calls or segments are in
  /// flight, or a buffer lies outside the arena.
  [[nodiscard]] virtual Result<Ticket> start(const CollectiveRequest& request) = 0;

  /// Makes a bounded amount of progress (a few MiB moved at most). True when the call is complete: the own result is
  /// readable and the own buffers may be reused. False means: try again, yielding in between (Backoff).
  [[nodiscard]] virtual Result<bool> poll(Ticket ticket) = 0;

  /// Polls until complete, yielding the core (Backoff).
  [[nodiscard]] Result<void> wait(Ticket ticket);

  /// Of a complete call, how long this rank was moving or summing its data; valid until CommLimits::in_flight later
  /// calls have been started. The rest of the time between start and completion was waiting: for members that had not
  /// started, or for a rank's thread to come back from something else. With shared memory nothing counts before the
  /// members that the data comes from have started, with messages at most the poll in which the first of it came. What
  /// a network does between two polls is not seen.
  [[nodiscard]] virtual std::chrono::nanoseconds moving_time(Ticket ticket) const = 0;

  /// Every rank's `own` text, by rank. Collective and blocking with the deadline; works before make_arena. For agreeing
  /// at creation (plan hash, capacity) and for reports at the end, never inside a step, and not counted.
  /// Not while calls are in flight.
  [[nodiscard]] virtual Result<std::vector<std::string>> exchange(std::string_view own) = 0;

  /// Makes every other rank's calls fail at once with `reason` ("rank N stopped: reason"). The first reason stays.
  virtual void abort(std::string_view reason) = 0;

  /// A peer that died or aborted, if that is known. For the thread that takes signals, while the communicator's own
  /// thread goes on: under a launcher that tears the job down, survivors can still say who died.
  [[nodiscard]] virtual std::optional<Error> lost_peer() const { return std::nullopt; }

  /// Calls started so far, per kind; bytes are the full buffers.
  [[nodiscard]] const CollectiveTotals& totals() const { return totals_; }

 protected:
  /// To be called by `start` once the request is accepted.
  void count(const CollectiveRequest& request);
  /// And what it sends.
  void count_wire(Bytes sent) { totals_.wire += sent; }
  /// Calls that happen again without being started again.
  void count_again(const CollectiveTotals& calls) { totals_ += calls; }

 private:
  CollectiveTotals totals_;
};

/// Yields the core ever longer: sched_yield at first, then naps of 20 and 100 us.
class Backoff {
 public:
  void pause();
  void reset() { turns_ = 0; }

 private:
  int turns_ = 0;
};

}  // namespace shard
