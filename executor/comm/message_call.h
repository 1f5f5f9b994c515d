// One collective in flight between hosts: which messages are posted, which have come, what is summed.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/comm/parts.h"
#include "traces/base/result.h"

namespace shard {

/// Who and where, the same for all calls of a communicator.
struct MessageContext {
  MPI_Comm comm = MPI_COMM_NULL;
  Rank rank{0};
  int world = 1;
  std::byte* arena = nullptr;
  int tag_bits = 15;  ///< tags are below 2^tag_bits
};

/// Advances by MPI_Test only. Reused for later calls, so that its lists keep their memory.
class MessageCall {
 public:
  void reserve(const MessageContext& context, CommLimits limits);
  void begin(const MessageContext& context, const CollectiveRequest& request, std::uint64_t sequence);
  /// One round of progress; true when something moved.
  [[nodiscard]] Result<bool> advance(const MessageContext& context);

  [[nodiscard]] bool complete() const { return stage_ == Stage::complete; }
  [[nodiscard]] Collective kind() const { return kind_; }
  [[nodiscard]] OpId op() const { return op_; }
  /// Peers from which a message is still awaited.
  [[nodiscard]] std::vector<int> missing(const MessageContext& context) const;

 private:
  enum class Stage : std::uint8_t { reduce, place, complete };

  /// A place in the list of tiles of one rank's part: segment by segment, kCommTile by kCommTile.
  struct Cursor {
    std::size_t segment = 0;
    std::int64_t offset = 0;  ///< bytes into the part
  };
  struct Tile {
    std::size_t segment = 0;
    std::int64_t offset = 0;  ///< bytes into the segment's full buffer
    std::int64_t bytes = 0;   ///< 0: no more tiles
  };
  /// Tiles of the own part on their way from all peers: requests_ of this window, in peer order.
  struct Window {
    Tile tile;
    std::vector<MPI_Request> requests;
  };
  /// Tiles of one peer's part on their way there.
  struct Outbox {
    Cursor next;
    std::vector<MPI_Request> requests;
    bool finished = false;
  };

  [[nodiscard]] ElemRange part(const MessageContext& context, std::size_t segment, int rank) const;
  [[nodiscard]] Tile take_tile(const MessageContext& context, Cursor& cursor, int rank) const;
  [[nodiscard]] std::byte* staging(const MessageContext& context, std::size_t window, int peer) const;
  [[nodiscard]] int tag(const MessageContext& context, int phase) const;
  [[nodiscard]] Result<bool> reduce(const MessageContext& context);
  void sum(const MessageContext& context, std::size_t window);
  void begin_place(const MessageContext& context);
  [[nodiscard]] Result<bool> place(const MessageContext& context);
  void post(const MessageContext& context, bool send, std::byte* at, std::int64_t bytes, int peer);
  void post_full(const MessageContext& context, bool send, int peer);

  Collective kind_ = Collective::all_gather;
  OpId op_;
  Dtype dtype_ = Dtype::f32;
  int root_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t identity_ = 0;  ///< hash of what must be the same on all ranks
  std::vector<CommSegment> segments_;
  std::int64_t workspace_ = 0;
  std::int64_t tile_ = 0;  ///< bytes of staging per peer and window
  Stage stage_ = Stage::complete;

  Cursor own_next_;                ///< next tile of the own part to be awaited
  std::vector<Window> windows_;    ///< kCommTilesInFlight, used in turn
  std::size_t oldest_window_ = 0;  ///< the one to be summed next
  std::vector<Outbox> outboxes_;   ///< per rank; the own one stays empty
  std::vector<const float*> sources_;

  std::vector<MPI_Request> requests_;  ///< of the place stage
  std::vector<int> from_;              ///< beside requests_: the peer of a receive, -1 for a send
  bool forwarding_ = false;            ///< broadcast: the second half, sends to children
};

}  // namespace shard
