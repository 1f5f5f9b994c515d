// The collectives of ranks that see one another's memory: direct loads and stores between arenas, no staging.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/comm/in_flight.h"
#include "executor/comm/peer_watch.h"
#include "executor/comm/shared_region.h"
#include "traces/base/result.h"

namespace shard {

/// One rank's side of the algorithm. Each rank writes only its own buffers and flags, with one exception: in a reduce
/// every rank writes its part of the sum into the root's buffer, which the root lends by arriving.
///   all_gather      copy each peer's shard as it arrives
///   reduce_scatter  when all have arrived, sum the own part out of all full buffers
///   all_reduce      sum the own part in place (nobody else reads it there), then copy each peer's part once reduced
///   broadcast       copy the root's buffer
///   reduce          sum the own part into the root's buffer
/// A call is complete when the own result is there and every peer that reads this rank's memory is done with it.
/// Calls are matched within their group: each group has a ring of slots in every member, and counts its own calls, so
/// what other groups do meanwhile does not matter. Below, a peer is a member of the call's group, by its number.
class SharedCollectives {
 public:
  /// `region` must have heads; rings and arenas come with `open_arenas`. The heads' states are set by the owner.
  SharedCollectives(SharedRegion region, Rank rank, CommOptions options, PeerWatch watch);

  /// Arenas and rings exist from now on; `arena` is this rank's size.
  void open_arenas(std::vector<SlotRings> rings, std::vector<std::byte*> arenas, Bytes arena, CommLimits limits);

  [[nodiscard]] Rank rank() const { return rank_; }
  [[nodiscard]] int size() const { return static_cast<int>(region_.heads.size()); }
  [[nodiscard]] const SharedRegion& region() const { return region_; }
  [[nodiscard]] Result<Ticket> start(const CollectiveRequest& request);
  [[nodiscard]] Result<bool> poll(Ticket ticket);
  [[nodiscard]] std::chrono::nanoseconds moving_time(Ticket ticket) const {
    return in_flight_.moving_time(ticket.sequence);
  }
  void abort(std::string_view reason) { publish_abort(region_, rank_, reason); }

  /// Abort word, dead peers and peers that left, for other waits than calls. Not sticky: what is waited
  /// for may have happened just before a peer left, so look again, then `fail`.
  [[nodiscard]] Result<void> check_peers();
  /// Marks everything after as failed with `error` and returns it.
  Error fail(Error error);
  [[nodiscard]] bool failed() const { return error_.has_value(); }
  /// Communicator::lost_peer.
  [[nodiscard]] std::optional<Error> lost_peer() const;

 private:
  enum class Stage : std::uint8_t { sum, copy, drain, complete };

  /// A group that this rank calls with, and what its members show of their calls; index is the member number.
  struct Channel {
    RankGroup group;              ///< resolved; count 0: not in use yet
    int own = 0;                  ///< this rank's number
    std::uint64_t last = 0;       ///< calls started
    std::vector<SlotRing> rings;  ///< none as long as the member has not made its first call
    std::vector<std::byte*> arenas;
  };

  /// A call in flight, and how far it has come: a segment and an offset in it, and for copies the peer.
  struct Flight {
    Channel* channel = nullptr;
    std::uint64_t sequence = 0;  ///< in its channel
    OpId op;
    Collective kind = Collective::all_gather;
    Dtype dtype = Dtype::f32;
    int own = 0;   ///< this rank's member number
    int size = 0;  ///< of the group
    int root = 0;  ///< member number
    Stage stage = Stage::complete;
    int segments = 0;
    int segment = 0;
    std::int64_t offset = 0;          ///< bytes of the current segment already moved
    int peer = -1;                    ///< being copied from; -1: choose
    int copied = 0;                   ///< peers copied from
    std::vector<std::uint8_t> seen;   ///< per peer: description compared with the own
    std::vector<std::uint8_t> taken;  ///< per peer: copied from
    /// Since when data moves, within one advance.
    std::optional<std::chrono::steady_clock::time_point> moving_since;
    void moves() {
      if (!moving_since) moving_since = std::chrono::steady_clock::now();
    }
  };
  struct Copy {
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    std::int64_t bytes = 0;
  };

  /// Of a peer that has arrived, as are its segments.
  [[nodiscard]] static CallSlot& slot(int peer, const Flight& f) {
    return f.channel->rings[static_cast<std::size_t>(peer)].slot(f.sequence);
  }
  [[nodiscard]] static const CommSegment& segment_of(int peer, const Flight& f, int segment) {
    return f.channel->rings[static_cast<std::size_t>(peer)].segments(f.sequence)[segment];
  }
  [[nodiscard]] static std::byte* arena(int peer, const Flight& f) {
    return f.channel->arenas[static_cast<std::size_t>(peer)];
  }
  [[nodiscard]] static Rank rank_of(int peer, const Flight& f) { return Rank{f.channel->group.rank_of(peer)}; }
  /// Whether a peer has set a flag of its slot for this call.
  [[nodiscard]] bool reached(int peer, const Flight& f, std::atomic<std::uint64_t> CallSlot::*flag) const;
  /// The channel of a resolved group, made with its first call; nullptr when CommLimits::groups are in use.
  [[nodiscard]] Channel* channel_of(RankGroup group);
  /// The first call of a channel that is not complete; the next one when all are.
  [[nodiscard]] std::uint64_t oldest_of(const Channel& channel) const;

  bool advance(std::int64_t budget);
  bool advance(Flight& f, std::int64_t& budget);
  bool sum(Flight& f, std::int64_t& budget);
  bool copy(Flight& f, std::int64_t& budget);
  bool drain(Flight& f);
  bool has_arrived(Flight& f, int peer);
  bool all_arrived(Flight& f);
  [[nodiscard]] static bool copies_from(const Flight& f, int peer);
  bool choose_peer(Flight& f);
  [[nodiscard]] Copy copy_of(const Flight& f) const;
  [[nodiscard]] bool waits_for(const Flight& f, int peer) const;
  void set_mismatch(const Flight& f, int peer);
  [[nodiscard]] std::optional<Error> interruption(const Flight* f) const;
  [[nodiscard]] std::optional<Error> peer_death(const Flight* f) const;
  [[nodiscard]] std::optional<Error> peer_loss(const Flight* f) const;
  [[nodiscard]] Error deadline_error(const Flight& f) const;
  [[nodiscard]] std::string where(const Flight* f) const;

  SharedRegion region_;
  Rank rank_;
  CommOptions options_;
  PeerWatch watch_;
  Bytes arena_bytes_{0};
  CommLimits limits_;
  std::vector<Channel> channels_;
  std::vector<Flight> flights_;
  InFlight in_flight_;                     ///< places are those of flights_
  std::vector<const std::byte*> sources_;  ///< of a sum, per peer
  std::optional<Error> error_;
  std::optional<std::chrono::steady_clock::time_point> idle_since_;
  std::chrono::steady_clock::time_point next_watch_{};
};

/// A communicator whose ranks see one another's memory; how they come to is the derived class's.
class SharedCommunicator : public Communicator {
 public:
  [[nodiscard]] Rank rank() const final { return calls_.rank(); }
  [[nodiscard]] int size() const final { return calls_.size(); }
  [[nodiscard]] bool needs_workspace() const final { return false; }
  [[nodiscard]] Result<Ticket> start(const CollectiveRequest& request) final {
    Result<Ticket> ticket = calls_.start(request);
    if (ticket) count(request);
    return ticket;
  }
  [[nodiscard]] Result<bool> poll(Ticket ticket) final { return calls_.poll(ticket); }
  [[nodiscard]] std::chrono::nanoseconds moving_time(Ticket ticket) const final { return calls_.moving_time(ticket); }
  void abort(std::string_view reason) final { calls_.abort(reason); }
  [[nodiscard]] std::optional<Error> lost_peer() const final { return calls_.lost_peer(); }

 protected:
  SharedCommunicator(SharedRegion region, Rank rank, CommOptions options, PeerWatch watch)
      : calls_(std::move(region), rank, options, std::move(watch)) {}

  SharedCollectives calls_;
};

}  // namespace shard
