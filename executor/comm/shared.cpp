// Progress of shared-memory collectives: stages per call, a byte budget per poll, and what to say when a peer is gone.
#include "executor/comm/shared.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "executor/comm/members.h"
#include "executor/comm/parts.h"
#include "executor/comm/tree_sum.h"
#include "executor/comm/validate.h"
#include "traces/base/deadline.h"

namespace shard {
namespace {

/// Bytes read per poll: about a millisecond of memory bandwidth, so that a caller can look after other work.
constexpr std::int64_t kPollBudget = 4 * 1024 * 1024;
/// How often an idle rank looks for dead peers (one system call, a microsecond).
constexpr std::chrono::milliseconds kWatchEvery{1};

}  // namespace

SharedCollectives::SharedCollectives(SharedRegion region, Rank rank, CommOptions options, PeerWatch watch)
    : region_(std::move(region)), rank_(rank), options_(options), watch_(std::move(watch)) {}

void SharedCollectives::open_arenas(std::vector<SlotRings> rings, std::vector<std::byte*> arenas, Bytes arena,
                                    CommLimits limits) {
  region_.rings = std::move(rings);
  region_.arenas = std::move(arenas);
  arena_bytes_ = arena;
  limits_ = limits;
  const std::size_t world = region_.heads.size();
  flights_.resize(static_cast<std::size_t>(limits.in_flight));
  in_flight_.reserve(flights_.size());
  for (Flight& f : flights_) {
    f.seen.resize(world);
    f.taken.resize(world);
  }
  channels_.resize(static_cast<std::size_t>(limits.groups));
  for (Channel& channel : channels_) {
    channel.rings.reserve(world);
    channel.arenas.reserve(world);
  }
  sources_.resize(world);
}

SharedCollectives::Channel* SharedCollectives::channel_of(RankGroup group) {
  const auto known = std::ranges::find_if(
      channels_, [&](const Channel& each) { return each.group == group || each.group.count == 0; });
  if (known == channels_.end() || known->group.count != 0) return known == channels_.end() ? nullptr : &*known;
  Channel& channel = *known;
  channel.group = group;
  channel.own = group.member_of(rank_.value);
  channel.rings.resize(static_cast<std::size_t>(group.count));
  const auto index = static_cast<int>(known - channels_.begin());
  channel.rings[static_cast<std::size_t>(channel.own)] =
      region_.rings[static_cast<std::size_t>(rank_.value)].open(index, key_of(group));
  for (int member = 0; member < group.count; ++member)
    channel.arenas.push_back(region_.arenas[static_cast<std::size_t>(group.rank_of(member))]);
  return &channel;
}

std::uint64_t SharedCollectives::oldest_of(const Channel& channel) const {
  std::uint64_t oldest = channel.last + 1;
  for (const std::size_t place : in_flight_.order())
    if (flights_[place].channel == &channel) oldest = std::min(oldest, flights_[place].sequence);
  return oldest;
}

bool SharedCollectives::reached(int peer, const Flight& f, std::atomic<std::uint64_t> CallSlot::*flag) const {
  SlotRing& ring = f.channel->rings[static_cast<std::size_t>(peer)];
  if (!ring) ring = region_.rings[static_cast<std::size_t>(rank_of(peer, f).value)].find(key_of(f.channel->group));
  return ring && (ring.slot(f.sequence).*flag).load(std::memory_order_acquire) >= f.sequence;
}

Result<Ticket> SharedCollectives::start(const CollectiveRequest& request) {
  if (error_) return *error_;
  if (Result<void> valid = validate(request, rank_, size(), arena_bytes_, limits_); !valid) return fail(valid.error());
  if (in_flight_.full()) advance(0);
  if (in_flight_.full())
    return fail({Errc::internal, "more than " + std::to_string(limits_.in_flight) + " calls in flight",
                 rank_name(rank_) + " " + describe(request.kind, request.op), ""});
  const RankGroup group = resolved(request.group, size());
  Channel* const channel = channel_of(group);
  if (channel == nullptr)
    return fail({Errc::internal, "calls with more than " + std::to_string(limits_.groups) + " groups",
                 rank_name(rank_) + " " + describe(request.kind, request.op), ""});
  // The slot of the call that is so many before must not be needed any more.
  const auto in_ring = static_cast<std::uint64_t>(limits_.in_flight);
  if (channel->last + 1 - oldest_of(*channel) >= in_ring) advance(0);
  if (channel->last + 1 - oldest_of(*channel) >= in_ring)
    return fail({Errc::internal, "more than " + std::to_string(limits_.in_flight) + " calls after the oldest in flight",
                 rank_name(rank_) + " " + describe(request.kind, request.op), ""});
  Flight& f = flights_[in_flight_.take()];
  f.channel = channel;
  f.sequence = ++channel->last;
  f.own = channel->own;
  f.size = group.count;
  f.root = std::max(group.member_of(request.root.value), 0);  // not used where it is no member
  f.op = request.op;
  f.kind = request.kind;
  f.dtype = request.dtype;
  f.segments = static_cast<int>(request.segments.size());
  f.segment = 0;
  f.offset = 0;
  f.peer = -1;
  f.copied = 0;
  const bool sums = f.kind != Collective::all_gather && f.kind != Collective::broadcast;
  f.stage = sums ? Stage::sum : Stage::copy;
  std::fill(f.seen.begin(), f.seen.end(), std::uint8_t{0});
  std::fill(f.taken.begin(), f.taken.end(), std::uint8_t{0});

  CallSlot& own = slot(f.own, f);
  own.op = request.op;
  own.kind = request.kind;
  own.dtype = request.dtype;
  own.root = f.root;
  own.segments = f.segments;
  std::copy(request.segments.begin(), request.segments.end(),
            channel->rings[static_cast<std::size_t>(f.own)].segments(f.sequence));
  own.arrived.store(f.sequence, std::memory_order_release);
  return Ticket{in_flight_.last()};
}

Result<bool> SharedCollectives::poll(Ticket ticket) {
  if (error_) return *error_;
  if (ticket.sequence == 0 || ticket.sequence > in_flight_.last())
    return fail(
        {Errc::internal, "a ticket that was never given: " + std::to_string(ticket.sequence), where(nullptr), ""});
  const bool progressed = advance(kPollBudget);
  if (error_) return *error_;
  const std::size_t place = in_flight_.place_of(ticket.sequence);
  if (place == InFlight::kNone) return true;
  const Flight& f = flights_[place];
  if (std::optional<Error> error = interruption(&f)) return fail(std::move(*error));
  if (progressed) {
    idle_since_.reset();
    return false;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!idle_since_) idle_since_ = now;
  if (now >= next_watch_) {
    next_watch_ = now + kWatchEvery;
    if (std::optional<Error> error = peer_loss(&f)) return fail(std::move(*error));
  }
  if (now - *idle_since_ > options_.deadline) return fail(deadline_error(f));
  return false;
}

Result<void> SharedCollectives::check_peers() {
  if (error_) return *error_;
  if (std::optional<Error> error = interruption(nullptr)) return std::move(*error);
  const auto now = std::chrono::steady_clock::now();
  if (now < next_watch_) return {};
  next_watch_ = now + kWatchEvery;
  if (std::optional<Error> error = peer_loss(nullptr)) return std::move(*error);
  return {};
}

Error SharedCollectives::fail(Error error) {
  if (!error_) error_ = std::move(error);
  return *error_;
}

bool SharedCollectives::advance(std::int64_t budget) {
  bool progressed = false;
  in_flight_.visit([&](std::size_t place) {
    Flight& f = flights_[place];
    if (!error_ && advance(f, budget)) progressed = true;
    if (f.moving_since) {
      in_flight_.moved(place, std::chrono::steady_clock::now() - *f.moving_since);
      f.moving_since.reset();
    }
    return f.stage == Stage::complete;
  });
  return progressed;
}

bool SharedCollectives::advance(Flight& f, std::int64_t& budget) {
  bool progressed = false;
  if (f.stage == Stage::sum) progressed |= sum(f, budget);
  if (f.stage == Stage::copy) progressed |= copy(f, budget);
  if (f.stage == Stage::drain) progressed |= drain(f);
  return progressed;
}

bool SharedCollectives::sum(Flight& f, std::int64_t& budget) {
  if (!all_arrived(f)) return false;
  if (budget > 0) f.moves();
  bool progressed = false;
  const std::int64_t element = bytes_of(f.dtype, Elems{1}).count();
  while (f.segment < f.segments) {
    const CommSegment& own = segment_of(f.own, f, f.segment);
    ElemRange part = part_of(own.elems, f.own, f.size, element);
    if (f.kind == Collective::reduce_scatter) {
      const std::int64_t shard = own.elems.count() / f.size;
      part = {f.own * shard, (f.own + 1) * shard};
    }
    const std::int64_t left = part.size() * element - f.offset;
    if (left > 0 && budget <= 0) return progressed;
    const std::int64_t block = std::max<std::int64_t>(budget / f.size / 64 * 64, 4096);
    const std::int64_t bytes = std::min(left, block);
    for (int peer = 0; peer < f.size; ++peer)
      sources_[static_cast<std::size_t>(peer)] =
          arena(peer, f) + segment_of(peer, f, f.segment).full_offset + part.begin * element + f.offset;
    std::byte* out = arena(f.own, f) + own.full_offset + part.begin * element;
    if (f.kind == Collective::reduce_scatter) out = arena(f.own, f) + own.shard_offset;
    if (f.kind == Collective::reduce)
      out = arena(f.root, f) + segment_of(f.root, f, f.segment).full_offset + part.begin * element;
    const auto sources = std::span<const std::byte* const>(sources_).first(static_cast<std::size_t>(f.size));
    if (bytes > 0) tree_sum(f.dtype, sources, out + f.offset, bytes / element);
    budget -= bytes * f.size;
    f.offset += bytes;
    progressed = true;
    if (bytes == left) {
      ++f.segment;
      f.offset = 0;
    }
  }
  CallSlot& own = slot(f.own, f);
  if (f.kind == Collective::all_reduce) {
    own.reduced.store(f.sequence, std::memory_order_release);
    f.stage = Stage::copy;
    f.segment = 0;
  } else {
    own.done.store(f.sequence, std::memory_order_release);
    f.stage = Stage::drain;
  }
  return true;
}

bool SharedCollectives::copies_from(const Flight& f, int peer) {
  return f.kind == Collective::broadcast ? peer == f.root : true;
}

bool SharedCollectives::choose_peer(Flight& f) {
  // Own part first, then the neighbours upwards, so that ranks do not all read the same arena at once.
  for (int step = 0; step < f.size; ++step) {
    const int peer = (f.own + step) % f.size;
    if (f.taken[static_cast<std::size_t>(peer)] != 0 || !copies_from(f, peer)) continue;
    if (!has_arrived(f, peer)) continue;
    if (f.kind == Collective::all_reduce && !reached(peer, f, &CallSlot::reduced)) continue;
    f.peer = peer;
    f.segment = 0;
    f.offset = 0;
    return true;
  }
  return false;
}

SharedCollectives::Copy SharedCollectives::copy_of(const Flight& f) const {
  const CommSegment& own = segment_of(f.own, f, f.segment);
  const CommSegment& theirs = segment_of(f.peer, f, f.segment);
  const std::int64_t element = bytes_of(f.dtype, Elems{1}).count();
  const std::byte* from = arena(f.peer, f) + theirs.full_offset;
  std::byte* to = arena(f.own, f) + own.full_offset;
  const std::int64_t full = own.elems.count() * element;
  if (f.kind == Collective::broadcast) return {from, to, full};
  if (f.kind == Collective::all_gather) {
    const std::int64_t shard = full / f.size;
    return {arena(f.peer, f) + theirs.shard_offset, to + f.peer * shard, shard};
  }
  const ElemRange part = part_of(own.elems, f.peer, f.size, element);
  return {from + part.begin * element, to + part.begin * element, part.size() * element};
}

bool SharedCollectives::copy(Flight& f, std::int64_t& budget) {
  bool progressed = false;
  const int wanted = f.kind == Collective::broadcast ? 1 : f.size;
  while (f.copied < wanted) {
    if (f.peer < 0 && !choose_peer(f)) return progressed;
    if (budget > 0) f.moves();
    while (f.segment < f.segments) {
      const Copy whole = copy_of(f);
      const std::int64_t left = whole.from == whole.to ? 0 : whole.bytes - f.offset;
      if (left > 0 && budget <= 0) return progressed;
      const std::int64_t bytes = std::min(left, std::max<std::int64_t>(budget, 0));
      if (bytes > 0) std::memcpy(whole.to + f.offset, whole.from + f.offset, static_cast<std::size_t>(bytes));
      budget -= bytes;
      f.offset += bytes;
      progressed = true;
      if (bytes == left) {
        ++f.segment;
        f.offset = 0;
      }
    }
    f.taken[static_cast<std::size_t>(f.peer)] = 1;
    ++f.copied;
    f.peer = -1;
    progressed = true;
  }
  slot(f.own, f).done.store(f.sequence, std::memory_order_release);
  f.stage = Stage::drain;
  return true;
}

bool SharedCollectives::drain(Flight& f) {
  for (int peer = 0; peer < f.size; ++peer)
    if (waits_for(f, peer)) return false;
  f.stage = Stage::complete;
  return true;
}

bool SharedCollectives::waits_for(const Flight& f, int peer) const {
  switch (f.stage) {
    case Stage::sum: return !reached(peer, f, &CallSlot::arrived);
    case Stage::copy:
      if (f.taken[static_cast<std::size_t>(peer)] != 0) return false;
      if (!copies_from(f, peer)) return false;
      return !reached(peer, f, f.kind == Collective::all_reduce ? &CallSlot::reduced : &CallSlot::arrived);
    case Stage::drain:
      // Nobody reads a broadcast's receivers.
      if (f.kind == Collective::broadcast && f.own != f.root) return false;
      return !reached(peer, f, &CallSlot::done);
    case Stage::complete: return false;
  }
  return false;
}

bool SharedCollectives::has_arrived(Flight& f, int peer) {
  std::uint8_t& seen = f.seen[static_cast<std::size_t>(peer)];
  if (seen != 0) return true;
  if (!reached(peer, f, &CallSlot::arrived)) return false;
  const CallSlot& theirs = slot(peer, f);
  const CallSlot& own = slot(f.own, f);
  bool same = own.op == theirs.op && own.kind == theirs.kind && own.dtype == theirs.dtype && own.root == theirs.root &&
              own.segments == theirs.segments;
  for (int i = 0; same && i < own.segments; ++i) same = segment_of(f.own, f, i).elems == segment_of(peer, f, i).elems;
  if (!same) {
    set_mismatch(f, peer);
    return false;
  }
  seen = 1;
  return true;
}

bool SharedCollectives::all_arrived(Flight& f) {
  bool all = true;
  for (int peer = 0; peer < f.size; ++peer) all = has_arrived(f, peer) && all;
  return all;
}

void SharedCollectives::set_mismatch(const Flight& f, int peer) {
  const CallSlot& theirs = slot(peer, f);
  fail({Errc::internal,
        rank_name(rank_of(peer, f)) + " started " + describe(theirs.kind, theirs.op) + " as call " +
            std::to_string(f.sequence) + " of " + describe(f.channel->group) + ", with " +
            std::to_string(theirs.segments) + " segments of " + to_string(theirs.dtype) +
            "; calls must be the same on all ranks, root and sizes too",
        where(&f), ""});
}

std::string SharedCollectives::where(const Flight* f) const {
  return f == nullptr ? rank_name(rank_) : rank_name(rank_).append(" ").append(describe(f->kind, f->op));
}

std::optional<Error> SharedCollectives::interruption(const Flight* f) const {
  const std::int32_t claim = region_.heads[0]->aborted_by.load(std::memory_order_acquire);
  if (claim == 0) return std::nullopt;
  const RankHead& head = *region_.heads[static_cast<std::size_t>(claim - 1)];
  return Error{Errc::retryable, rank_name(Rank{claim - 1}) + " stopped: " + head.reason, where(f), ""};
}

std::optional<Error> SharedCollectives::lost_peer() const {
  if (std::optional<Error> aborted = interruption(nullptr)) return aborted;
  return peer_death(nullptr);
}

std::optional<Error> SharedCollectives::peer_death(const Flight* f) const {
  for (const Rank peer : watch_.ended()) {
    const RankHead& head = *region_.heads[static_cast<std::size_t>(peer.value)];
    if (head.state.load(std::memory_order_acquire) == RankHead::left) continue;  // a clean end; see below
    return Error{Errc::retryable,
                 rank_name(peer) + " died (process " + std::to_string(head.process.load(std::memory_order_relaxed)) +
                     " is gone)",
                 where(f), "run again"};
  }
  return std::nullopt;
}

std::optional<Error> SharedCollectives::peer_loss(const Flight* f) const {
  if (std::optional<Error> death = peer_death(f)) return death;
  const int peers = f == nullptr ? size() : f->size;
  for (int peer = 0; peer < peers; ++peer) {
    const Rank rank = f == nullptr ? Rank{peer} : rank_of(peer, *f);
    const RankHead& head = *region_.heads[static_cast<std::size_t>(rank.value)];
    // The state is read first: flags that a peer set before it left are then seen too.
    if (rank == rank_ || head.state.load(std::memory_order_acquire) != RankHead::left) continue;
    if (f != nullptr && !waits_for(*f, peer)) continue;
    return Error{Errc::retryable, rank_name(rank) + " left before this call was complete", where(f), ""};
  }
  return std::nullopt;
}

Error SharedCollectives::deadline_error(const Flight& f) const {
  std::vector<int> absent;
  std::vector<int> busy;
  for (int peer = 0; peer < f.size; ++peer)
    if (waits_for(f, peer)) (reached(peer, f, &CallSlot::arrived) ? busy : absent).push_back(rank_of(peer, f).value);
  std::string what;
  if (!absent.empty()) what = ranks_have(absent) + " not arrived";
  if (!busy.empty()) what += (what.empty() ? "" : ", ") + ranks_have(busy) + " not finished";
  return {Errc::retryable, what + " within " + in_seconds(options_.deadline), where(&f), kLookAtThatRank};
}

}  // namespace shard
