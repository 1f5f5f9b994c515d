// One collective in flight between hosts: which messages are posted, which have come, what is summed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/comm/message_port.h"
#include "executor/comm/parts.h"
#include "traces/base/result.h"

namespace shard {

/// Who and where, the same for all calls of a communicator.
struct MessageContext {
  MessagePort* port = nullptr;
  std::byte* arena = nullptr;
};

/// Advances by looking at messages only. Reused for later calls, so that its lists keep their memory. A peer is a
/// member of the call's group, by its number.
class MessageCall {
 public:
  void reserve(const MessageContext& context, CommLimits limits);
  /// calls_with[r]: calls with rank r as a member that this rank has started so far. Those of the members are counted
  /// up. Both ends of a pair start their common calls in the same order, so the numbers agree and tell apart all calls
  /// that they can have in flight together, whatever the groups.
  void begin(const MessageContext& context, const CollectiveRequest& request, std::span<std::uint64_t> calls_with);
  /// One round of progress; true when something moved.
  [[nodiscard]] Result<bool> advance(const MessageContext& context);

  [[nodiscard]] bool complete() const { return stage_ == Stage::complete; }
  /// Something has come from all whose data is needed first, or nothing had to.
  [[nodiscard]] bool has_data() const { return has_data_; }
  [[nodiscard]] Collective kind() const { return kind_; }
  [[nodiscard]] OpId op() const { return op_; }
  /// Ranks with which a message is still on its way, to or from.
  [[nodiscard]] std::vector<int> missing(const MessageContext& context) const;

 private:
  enum class Stage : std::uint8_t { reduce, place, complete };

  /// A place in the list of tiles of one member's part: segment by segment, kCommTile by kCommTile.
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
    std::vector<MessageId> requests;
  };
  /// Tiles of one peer's part on their way there.
  struct Outbox {
    Cursor next;
    std::vector<MessageId> requests;
    bool finished = false;
  };

  [[nodiscard]] ElemRange part(std::size_t segment, int peer) const;
  [[nodiscard]] Tile take_tile(Cursor& cursor, int peer) const;
  [[nodiscard]] std::byte* staging(const MessageContext& context, std::size_t window, int peer) const;
  [[nodiscard]] int tag(const MessageContext& context, int phase, int peer) const;
  [[nodiscard]] std::int64_t element_bytes() const { return bytes_per_element(dtype_); }
  [[nodiscard]] Result<bool> reduce(const MessageContext& context);
  [[nodiscard]] Result<bool> send_tiles(const MessageContext& context);
  void await_tiles(const MessageContext& context, bool& moved);
  void sum(const MessageContext& context, std::size_t window);
  void begin_place(const MessageContext& context);
  [[nodiscard]] Result<bool> place(const MessageContext& context);
  void post(const MessageContext& context, bool send, std::byte* at, std::int64_t bytes, int peer);
  void post_full(const MessageContext& context, bool send, int peer);

  Collective kind_ = Collective::all_gather;
  OpId op_;
  Dtype dtype_ = Dtype::f32;
  RankGroup group_;
  int own_ = 0;                         ///< this rank's member number
  int size_ = 0;                        ///< of the group
  int root_ = 0;                        ///< member number
  std::vector<std::uint64_t> numbers_;  ///< per peer: of this call among those with it
  std::uint64_t identity_ = 0;          ///< hash of what must be the same on all members
  std::vector<CommSegment> segments_;
  std::int64_t workspace_ = 0;
  std::int64_t tile_ = 0;  ///< bytes of staging per peer and window
  Stage stage_ = Stage::complete;
  bool has_data_ = false;

  Cursor own_next_;              ///< next tile of the own part to be awaited
  std::vector<Window> windows_;  ///< kCommTilesInFlight, the first of them used in turn
  std::size_t windows_in_use_ = 1;
  std::size_t oldest_window_ = 0;  ///< the one to be summed next
  std::vector<Outbox> outboxes_;   ///< per peer; the own one stays empty
  std::vector<const std::byte*> sources_;

  std::vector<MessageId> requests_;  ///< of the place stage
  std::vector<int> with_;            ///< beside requests_: the rank at the other end
  bool forwarding_ = false;          ///< broadcast: the second half, sends to children
};

}  // namespace shard
