// Reductions: two tiles in flight per peer, summed in order. Placements: everything posted at once.
#include "executor/comm/message_call.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "executor/comm/members.h"
#include "executor/comm/tree_sum.h"
#include "sim/target/comm_workspace.h"

namespace shard {
namespace {

constexpr std::int64_t kLargestMessage = std::int64_t{1} << 30;  // of a port
constexpr int kReducePhase = 0;
constexpr int kPlacePhase = 1;
constexpr int kNumberBits = 8;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15U;
  return hash ^ (hash >> 29);
}

/// Whether all are complete; those that are become kNoMessage.
Result<bool> all_complete(MessagePort& port, std::vector<MessageId>& messages) {
  bool all = true;
  for (MessageId& message : messages) {
    if (message == kNoMessage) continue;
    const Result<bool> complete = port.finish(message);
    if (!complete) return complete;
    if (*complete)
      message = kNoMessage;
    else
      all = false;
  }
  return all;
}

}  // namespace

void MessageCall::reserve(const MessageContext& context, CommLimits limits) {
  const auto world = static_cast<std::size_t>(context.port->size());
  const auto segments = static_cast<std::size_t>(limits.segments);
  segments_.reserve(segments);
  windows_.resize(static_cast<std::size_t>(kCommTilesInFlight));
  for (Window& window : windows_) window.requests.reserve(world);
  outboxes_.resize(world);
  for (Outbox& outbox : outboxes_) outbox.requests.reserve(static_cast<std::size_t>(kCommTilesInFlight));
  sources_.resize(world);
  numbers_.resize(world);
  requests_.reserve(2 * world * segments);
  with_.reserve(2 * world * segments);
}

void MessageCall::begin(const MessageContext& context, const CollectiveRequest& request,
                        std::span<std::uint64_t> calls_with) {
  kind_ = request.kind;
  op_ = request.op;
  dtype_ = request.dtype;
  group_ = resolved(request.group, context.port->size());
  own_ = group_.member_of(context.port->rank().value);
  size_ = group_.count;
  root_ = std::max(group_.member_of(request.root.value), 0);  // not used where it is no member
  for (int peer = 0; peer < size_; ++peer)
    numbers_[static_cast<std::size_t>(peer)] = ++calls_with[static_cast<std::size_t>(group_.rank_of(peer))];
  segments_.assign(request.segments.begin(), request.segments.end());
  workspace_ = request.workspace_offset;
  identity_ = mix(mix(1, static_cast<std::uint64_t>(op_.value)),
                  static_cast<std::uint64_t>(kind_) * 256 + static_cast<std::uint64_t>(dtype_));
  identity_ = mix(mix(identity_, static_cast<std::uint64_t>(root_)), key_of(group_));
  std::int64_t largest = 0;
  for (const CommSegment& segment : segments_) {
    identity_ = mix(identity_, static_cast<std::uint64_t>(segment.elems.count()));
    largest = std::max(largest, bytes_of(dtype_, segment.elems).count());
  }
  requests_.clear();
  with_.clear();
  forwarding_ = false;
  has_data_ = false;
  if (kind_ == Collective::all_gather || kind_ == Collective::broadcast) {
    begin_place(context);
    return;
  }
  stage_ = Stage::reduce;
  const Bytes part_bytes = round_up(Bytes{(largest + size_ - 1) / size_}, kCommPartAlignment.count());
  tile_ = std::min(part_bytes, kCommTile).count();
  // As many as the workspace has room for: a short part has one tile of staging, also where more segments follow.
  const bool one_tile = part_bytes <= kCommTile;
  windows_in_use_ = one_tile ? 1 : static_cast<std::size_t>(kCommTilesInFlight);
  own_next_ = {};
  oldest_window_ = 0;
  for (Window& window : windows_) {
    window.tile = {};
    window.requests.clear();
  }
  for (Outbox& outbox : outboxes_) {
    outbox.next = {};
    outbox.requests.clear();
    outbox.finished = false;
  }
}

Result<bool> MessageCall::advance(const MessageContext& context) {
  bool moved = false;
  if (stage_ == Stage::reduce) {
    Result<bool> result = reduce(context);
    if (!result) return result;
    moved |= *result;
  }
  if (stage_ == Stage::place) {
    Result<bool> result = place(context);
    if (!result) return result;
    moved |= *result;
  }
  return moved;
}

ElemRange MessageCall::part(std::size_t segment, int peer) const {
  const Elems elems = segments_[segment].elems;
  if (kind_ != Collective::reduce_scatter && kind_ != Collective::all_gather)
    return part_of(elems, peer, size_, element_bytes());
  const std::int64_t shard = elems.count() / size_;
  return {peer * shard, (peer + 1) * shard};
}

MessageCall::Tile MessageCall::take_tile(Cursor& cursor, int peer) const {
  const std::int64_t element = element_bytes();
  for (; cursor.segment < segments_.size(); ++cursor.segment, cursor.offset = 0) {
    const ElemRange range = part(cursor.segment, peer);
    const std::int64_t left = range.size() * element - cursor.offset;
    if (left <= 0) continue;
    const Tile tile{cursor.segment, range.begin * element + cursor.offset, std::min(left, tile_)};
    cursor.offset += tile.bytes;
    return tile;
  }
  return {};
}

std::byte* MessageCall::staging(const MessageContext& context, std::size_t window, int peer) const {
  const int slot = peer < own_ ? peer : peer - 1;
  return context.arena + workspace_ + (static_cast<std::int64_t>(window) * (size_ - 1) + slot) * tile_;
}

int MessageCall::tag(const MessageContext& context, int phase, int peer) const {
  const std::uint64_t number = numbers_[static_cast<std::size_t>(peer)];
  const std::uint64_t low = (number % (1U << kNumberBits)) * 2 + static_cast<std::uint64_t>(phase);
  const std::uint64_t high = identity_ >> 33 << (kNumberBits + 1);
  return static_cast<int>((low | high) & ((std::uint64_t{1} << context.port->tag_bits()) - 1));
}

Result<bool> MessageCall::send_tiles(const MessageContext& context) {
  bool moved = false;
  for (int peer = 0; peer < size_; ++peer) {
    Outbox& outbox = outboxes_[static_cast<std::size_t>(peer)];
    if (outbox.finished || peer == own_) continue;
    if (const Result<bool> sent = all_complete(*context.port, outbox.requests); !sent) return sent;
    moved |= std::erase(outbox.requests, kNoMessage) > 0;
    while (outbox.requests.size() < static_cast<std::size_t>(kCommTilesInFlight)) {
      const Tile tile = take_tile(outbox.next, peer);
      if (tile.bytes == 0) break;
      outbox.requests.push_back(context.port->send(Rank{group_.rank_of(peer)}, tag(context, kReducePhase, peer),
                                                   context.arena + segments_[tile.segment].full_offset + tile.offset,
                                                   tile.bytes));
      moved = true;
    }
    outbox.finished = outbox.requests.empty();
  }
  return moved;
}

void MessageCall::await_tiles(const MessageContext& context, bool& moved) {
  for (std::size_t turn = 0; turn < windows_in_use_; ++turn) {
    const std::size_t index = (oldest_window_ + turn) % windows_in_use_;
    Window& window = windows_[index];
    if (window.tile.bytes != 0) continue;
    window.tile = take_tile(own_next_, own_);
    if (window.tile.bytes == 0) break;
    moved = true;
    for (int peer = 0; peer < size_; ++peer)
      if (peer != own_)
        window.requests.push_back(context.port->receive(Rank{group_.rank_of(peer)}, tag(context, kReducePhase, peer),
                                                        staging(context, index, peer), window.tile.bytes));
  }
}

Result<bool> MessageCall::reduce(const MessageContext& context) {
  const Result<bool> sent = send_tiles(context);
  if (!sent) return sent;
  bool moved = *sent;
  await_tiles(context, moved);
  Window& oldest = windows_[oldest_window_];
  if (oldest.tile.bytes != 0) {
    const Result<bool> there = all_complete(*context.port, oldest.requests);
    if (!there) return there;
    if (!*there) return moved;
    sum(context, oldest_window_);
    oldest.requests.clear();
    oldest.tile = {};
    oldest_window_ = (oldest_window_ + 1) % windows_in_use_;
    return true;  // the next tile, or the end, in the next round
  }
  // Parts are placed only when all of `full` has been sent: receives may then overwrite it.
  bool all_sent = true;
  for (int peer = 0; peer < size_; ++peer)
    all_sent = all_sent && (peer == own_ || outboxes_[static_cast<std::size_t>(peer)].finished);
  if (all_sent) {
    begin_place(context);
    moved = true;
  }
  return moved;
}

void MessageCall::sum(const MessageContext& context, std::size_t window) {
  has_data_ = true;
  const Tile& tile = windows_[window].tile;
  const CommSegment& segment = segments_[tile.segment];
  std::byte* const own = context.arena + segment.full_offset + tile.offset;
  for (int peer = 0; peer < size_; ++peer)
    sources_[static_cast<std::size_t>(peer)] = peer == own_ ? own : staging(context, window, peer);
  std::byte* out = own;
  if (kind_ == Collective::reduce_scatter) {
    const std::int64_t begin = part(tile.segment, own_).begin * element_bytes();
    out = context.arena + segment.shard_offset + (tile.offset - begin);
  }
  const auto sources = std::span<const std::byte* const>(sources_).first(static_cast<std::size_t>(size_));
  tree_sum(dtype_, sources, out, tile.bytes / element_bytes());
}

void MessageCall::post(const MessageContext& context, bool send, std::byte* at, std::int64_t bytes, int peer) {
  const Rank rank{group_.rank_of(peer)};
  for (std::int64_t offset = 0; offset < bytes; offset += kLargestMessage) {
    const std::int64_t count = std::min(bytes - offset, kLargestMessage);
    const int number = tag(context, kPlacePhase, peer);
    requests_.push_back(send ? context.port->send(rank, number, at + offset, count)
                             : context.port->receive(rank, number, at + offset, count));
    with_.push_back(rank.value);
  }
}

void MessageCall::post_full(const MessageContext& context, bool send, int peer) {
  for (const CommSegment& segment : segments_)
    post(context, send, context.arena + segment.full_offset, bytes_of(dtype_, segment.elems).count(), peer);
}

void MessageCall::begin_place(const MessageContext& context) {
  stage_ = Stage::place;
  if (kind_ == Collective::reduce_scatter) return;  // nothing more to move
  if (kind_ == Collective::broadcast) {
    // Binomial tree over the distance from the root: the parent is the distance without its highest bit.
    const int distance = (own_ - root_ + size_) % size_;
    if (distance > 0) {
      const int parent = distance - static_cast<int>(std::bit_floor(static_cast<unsigned>(distance)));
      post_full(context, false, (parent + root_) % size_);
    }
    return;
  }
  const std::int64_t element = element_bytes();
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const CommSegment& segment = segments_[i];
    std::byte* const full = context.arena + segment.full_offset;
    const ElemRange own = part(i, own_);
    std::byte* const mine =
        kind_ == Collective::all_gather ? context.arena + segment.shard_offset : full + own.begin * element;
    for (int step = 1; step < size_; ++step) {  // neighbours upwards, so that not all meet at the first
      const int to = (own_ + step) % size_;
      const int from = (own_ - step + size_) % size_;
      const ElemRange theirs = part(i, from);
      if (kind_ != Collective::reduce || own_ == root_)
        post(context, false, full + theirs.begin * element, theirs.size() * element, from);
      if (kind_ != Collective::reduce || to == root_) post(context, true, mine, own.size() * element, to);
    }
    if (kind_ == Collective::all_gather && mine != full + own.begin * element)
      std::memcpy(full + own.begin * element, mine, static_cast<std::size_t>(own.size() * element));
  }
}

Result<bool> MessageCall::place(const MessageContext& context) {
  const Result<bool> done = all_complete(*context.port, requests_);
  if (!done || !*done) return done;
  has_data_ = true;
  requests_.clear();
  with_.clear();
  if (kind_ == Collective::broadcast && !forwarding_) {
    forwarding_ = true;
    const int distance = (own_ - root_ + size_) % size_;
    const auto above = distance == 0 ? 1U : std::bit_floor(static_cast<unsigned>(distance)) * 2;
    for (int bit = static_cast<int>(above); distance + bit < size_; bit *= 2)
      post_full(context, true, (distance + bit + root_) % size_);
    return true;
  }
  stage_ = Stage::complete;
  return true;
}

std::vector<int> MessageCall::missing(const MessageContext& context) const {
  const auto is_open = [&](MessageId message) { return message != kNoMessage && !context.port->is_complete(message); };
  std::vector<int> ranks;
  if (stage_ == Stage::reduce && windows_[oldest_window_].tile.bytes != 0) {
    const std::vector<MessageId>& requests = windows_[oldest_window_].requests;
    for (int peer = 0, i = 0; peer < size_; ++peer)
      if (peer != own_ && is_open(requests[static_cast<std::size_t>(i++)])) ranks.push_back(group_.rank_of(peer));
  } else if (stage_ == Stage::reduce) {
    for (int peer = 0; peer < size_; ++peer)
      if (peer != own_ && !outboxes_[static_cast<std::size_t>(peer)].finished) ranks.push_back(group_.rank_of(peer));
  }
  for (std::size_t i = 0; i < requests_.size(); ++i)
    if (is_open(requests_[i])) ranks.push_back(with_[i]);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace shard
