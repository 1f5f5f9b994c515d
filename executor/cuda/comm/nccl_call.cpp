// Segments are grouped; pieces of a sum fill a slot for each of the others in the workspace.
#include "executor/cuda/comm/nccl_call.h"

#include <algorithm>
#include <string>
#include <vector>

#include "executor/comm/parts.h"
#include "executor/comm/validate.h"

namespace shard::cuda {
namespace {

using model::Access;

/// Work of the call between begin_op and end_op, with what it touches.
class Stage {
 public:
  explicit Stage(const NcclCall& call) : call_(call) {}

  void touch(const std::byte* begin, std::int64_t bytes, Access access) {
    if (bytes > 0) ranges_.push_back({begin, bytes, access});
  }
  [[nodiscard]] bool is_empty() const { return ranges_.empty(); }
  template <class Work>
  [[nodiscard]] Result<void> enqueue(const Work& work) const {
    if (is_empty()) return {};
    const OpNote note{
        .rank = call_.rank, .op = call_.request.op, .name = to_string(call_.request.kind), .ranges = ranges_};
    const Witnessed witnessed(call_.room.witness, note.rank, note.op);
    if (Result<void> r = call_.room.api.begin_op(call_.stream, note); !r) return r;
    if (Result<void> r = work(); !r) return r;
    return call_.room.api.end_op(call_.stream);
  }
  /// Calls of NCCL as one.
  template <class Calls>
  [[nodiscard]] Result<void> enqueue_group(const Calls& calls) const {
    return enqueue([&]() -> Result<void> {
      if (Result<void> r = call_.nccl.group_start(); !r) return r;
      if (Result<void> r = calls(); !r) return r;
      if (Result<void> r = call_.nccl.group_end(); !r) return r;
      return call_.settle();
    });
  }

 private:
  const NcclCall& call_;
  std::vector<Range> ranges_;
};

/// Where things of the call are, in elements and bytes.
class Places {
 public:
  explicit Places(const NcclCall& call)
      : call_(call),
        element_(bytes_per_element(call.request.dtype)),
        members_(call.group.count),
        own_(call.group.member_of(call.rank.value)) {}

  [[nodiscard]] std::int64_t element() const { return element_; }
  [[nodiscard]] int members() const { return members_; }
  [[nodiscard]] int own() const { return own_; }
  [[nodiscard]] int root() const { return call_.group.member_of(call_.request.root.value); }
  [[nodiscard]] std::int64_t bytes(std::int64_t elems) const { return elems * element_; }
  [[nodiscard]] std::byte* full(const CommSegment& s, std::int64_t elem = 0) const {
    return call_.arena + s.full_offset + bytes(elem);
  }
  [[nodiscard]] std::byte* shard(const CommSegment& s, std::int64_t elem = 0) const {
    return call_.arena + s.shard_offset + bytes(elem);
  }
  /// Elements of `full` that a member sums.
  [[nodiscard]] ElemRange part(const CommSegment& s, int member) const {
    if (call_.request.kind != Collective::reduce_scatter) return part_of(s.elems, member, members_, element_);
    const std::int64_t each = s.elems.count() / members_;
    return {member * each, (member + 1) * each};
  }

 private:
  const NcclCall& call_;
  std::int64_t element_;
  int members_;
  int own_;
};

/// Elements sent to, or received from, a member.
struct Message {
  int member = 0;
  std::byte* at = nullptr;
  std::int64_t elems = 0;
  bool sends = false;
};

/// Enqueues the messages as one; the bytes that are sent.
Result<Bytes> exchange(const NcclCall& call, const Places& places, const std::vector<Message>& messages) {
  Stage stage(call);
  std::int64_t sent = 0;
  for (const Message& m : messages) {
    stage.touch(m.at, places.bytes(m.elems), m.sends ? Access::read : Access::write);
    if (m.sends) sent += places.bytes(m.elems);
  }
  const Dtype dtype = call.request.dtype;
  const auto calls = [&]() -> Result<void> {
    for (const Message& m : messages) {
      if (m.elems == 0) continue;
      Result<void> r = m.sends ? call.nccl.send(call.comm, call.stream, m.at, m.elems, dtype, m.member)
                               : call.nccl.receive(call.comm, call.stream, m.at, m.elems, dtype, m.member);
      if (!r) return r;
    }
    return {};
  };
  if (Result<void> r = stage.enqueue_group(calls); !r) return r.error();
  return Bytes{sent};
}

/// Elements [begin, begin + elems) of every member's part of a segment; `slot` bytes into each other member's slot.
struct Piece {
  const CommSegment* segment = nullptr;
  std::int64_t begin = 0;
  std::int64_t elems = 0;
  std::int64_t slot = 0;
  /// What a part has of it: the last parts may be short.
  [[nodiscard]] std::int64_t in(const ElemRange& part) const {
    return std::clamp<std::int64_t>(part.size() - begin, 0, elems);
  }
};

/// The same on every member: its workspace filled again and again.
std::vector<std::vector<Piece>> rounds_of(const CollectiveRequest& request, const Places& places, std::int64_t slot) {
  std::vector<std::vector<Piece>> rounds;
  std::int64_t free = 0;
  for (const CommSegment& segment : request.segments) {
    const std::int64_t longest = places.part(segment, 0).size();
    for (std::int64_t at = 0; at < longest;) {
      if (free <= 0) {
        rounds.emplace_back();
        free = slot;
      }
      const std::int64_t elems = std::min(longest - at, free / places.element());
      rounds.back().push_back({&segment, at, elems, slot - free});
      free -= round_up(Bytes{places.bytes(elems)}, kCommPartAlignment.count()).count();
      at += elems;
    }
  }
  return rounds;
}

/// One round's sums of the own parts.
Result<void> sum(const NcclCall& call, const Places& places, const std::vector<Piece>& pieces,
                 const std::function<std::byte*(int)>& slot_of) {
  struct Sum {
    MemberPointers from{};
    std::int64_t elems = 0;
    std::byte* to = nullptr;
  };
  Stage stage(call);
  std::vector<Sum> sums;
  for (const Piece& piece : pieces) {
    const ElemRange part = places.part(*piece.segment, places.own());
    Sum sum{.from = {}, .elems = piece.in(part), .to = nullptr};
    if (sum.elems == 0) continue;
    std::byte* const own = places.full(*piece.segment, part.begin + piece.begin);
    sum.to = call.request.kind == Collective::reduce_scatter ? places.shard(*piece.segment, piece.begin) : own;
    for (int member = 0; member < places.members(); ++member) {
      std::byte* const from = member == places.own() ? own : slot_of(member) + piece.slot;
      sum.from.member[static_cast<std::size_t>(member)] = from;
      stage.touch(from, places.bytes(sum.elems), from == sum.to ? Access::update : Access::read);
    }
    if (sum.to != own) stage.touch(sum.to, places.bytes(sum.elems), Access::write);
    sums.push_back(sum);
  }
  return stage.enqueue([&]() -> Result<void> {
    for (const Sum& each : sums)
      call.room.kernels.tree_sum(call.stream, places.members(), each.from, each.elems, call.request.dtype, each.to);
    return {};
  });
}

/// The sums to whom wants them: all, or the root.
std::vector<Message> messages_of_sums(const NcclCall& call, const Places& places) {
  std::vector<Message> messages;
  const bool to_all = call.request.kind == Collective::all_reduce;
  if (!to_all && call.request.kind != Collective::reduce) return messages;
  for (const CommSegment& segment : call.request.segments)
    for (int member = 0; member < places.members(); ++member) {
      if (member == places.own()) continue;
      const ElemRange own = places.part(segment, places.own());
      const ElemRange theirs = places.part(segment, member);
      if (to_all || member == places.root())
        messages.push_back({member, places.full(segment, own.begin), own.size(), true});
      if (to_all || places.own() == places.root())
        messages.push_back({member, places.full(segment, theirs.begin), theirs.size(), false});
    }
  return messages;
}

/// Of a group of one.
Result<Bytes> copy_own(const NcclCall& call, const Places& places) {
  const bool gathers = call.request.kind == Collective::all_gather;
  if (!gathers && call.request.kind != Collective::reduce_scatter) return Bytes{0};
  Stage stage(call);
  for (const CommSegment& s : call.request.segments) {
    if (places.full(s) == places.shard(s)) continue;
    stage.touch(places.full(s), places.bytes(s.elems.count()), gathers ? Access::write : Access::read);
    stage.touch(places.shard(s), places.bytes(s.elems.count()), gathers ? Access::read : Access::write);
  }
  const Result<void> done = stage.enqueue([&]() -> Result<void> {
    for (const CommSegment& s : call.request.segments) {
      std::byte* const to = gathers ? places.full(s) : places.shard(s);
      const std::byte* const from = gathers ? places.shard(s) : places.full(s);
      if (to == from) continue;
      if (Result<void> r = call.room.api.copy(call.stream, to, from, places.bytes(s.elems.count())); !r) return r;
    }
    return {};
  });
  if (!done) return done.error();
  return Bytes{0};
}

/// One segment as NCCL's own call.
Result<void> call_native(const NcclCall& call, const Places& places, const CommSegment& s) {
  Nccl& nccl = call.nccl;
  const CollectiveRequest& request = call.request;
  const std::int64_t elems = s.elems.count();
  std::byte* const full = places.full(s);
  switch (request.kind) {
    case Collective::all_gather:
      return nccl.all_gather(call.comm, call.stream, places.shard(s), full, elems / places.members(), request.dtype);
    case Collective::reduce_scatter:
      return nccl.reduce_scatter(call.comm, call.stream, full, places.shard(s), elems / places.members(),
                                 request.dtype);
    case Collective::all_reduce: return nccl.all_reduce(call.comm, call.stream, full, full, elems, request.dtype);
    case Collective::broadcast:
      return nccl.broadcast(call.comm, call.stream, full, full, elems, request.dtype, places.root());
    case Collective::reduce:
      return nccl.reduce(call.comm, call.stream, full, full, elems, request.dtype, places.root());
  }
  return {};
}

void touch_native(const NcclCall& call, const Places& places, const CommSegment& s, Stage& stage) {
  const std::int64_t full = places.bytes(s.elems.count());
  const bool root = places.root() == places.own();
  switch (call.request.kind) {
    case Collective::all_gather:
      stage.touch(places.shard(s), full / places.members(), Access::read);
      return stage.touch(places.full(s), full, Access::write);
    case Collective::reduce_scatter:
      stage.touch(places.full(s), full, Access::read);
      return stage.touch(places.shard(s), full / places.members(), Access::write);
    case Collective::all_reduce: return stage.touch(places.full(s), full, Access::update);
    case Collective::broadcast: return stage.touch(places.full(s), full, root ? Access::read : Access::write);
    case Collective::reduce: return stage.touch(places.full(s), full, root ? Access::update : Access::read);
  }
}

}  // namespace

Result<Bytes> enqueue_native(const NcclCall& call) {
  const Places places(call);
  if (places.members() == 1) return copy_own(call, places);
  Stage stage(call);
  std::int64_t bytes = 0;
  for (const CommSegment& s : call.request.segments) {
    touch_native(call, places, s, stage);
    bytes += places.bytes(s.elems.count());
  }
  const Result<void> done = stage.enqueue_group([&]() -> Result<void> {
    for (const CommSegment& s : call.request.segments) {
      if (s.elems.count() == 0) continue;
      if (Result<void> r = call_native(call, places, s); !r) return r;
    }
    return {};
  });
  if (!done) return done.error();
  const std::int64_t rings = call.request.kind == Collective::all_reduce ? 2 : 1;
  return Bytes{rings * bytes / places.members() * (places.members() - 1)};
}

Result<Bytes> enqueue_tree(const NcclCall& call) {
  const Places places(call);
  if (places.members() == 1) return copy_own(call, places);
  if (places.members() > kMostMembers)
    return Error{.code = Errc::contradiction,
                 .what = "a reproducible sum over " + std::to_string(places.members()) + " GPUs; at most " +
                         std::to_string(kMostMembers) + " are summed along one tree",
                 .where = rank_name(call.rank) + " " + describe(call.request.kind, call.request.op),
                 .help = "--no-reproducible"};
  const std::int64_t others = places.members() - 1;
  const std::int64_t alignment = kCommPartAlignment.count();
  const std::int64_t slot = call.request.workspace.count() / others / alignment * alignment;
  std::byte* const workspace = call.arena + call.request.workspace_offset;
  const auto slot_of = [&](int member) { return workspace + (member < places.own() ? member : member - 1) * slot; };
  Bytes sent{0};
  for (const std::vector<Piece>& pieces : rounds_of(call.request, places, slot)) {
    std::vector<Message> messages;
    for (int member = 0; member < places.members(); ++member) {
      if (member == places.own()) continue;
      for (const Piece& piece : pieces) {
        const ElemRange own = places.part(*piece.segment, places.own());
        const ElemRange theirs = places.part(*piece.segment, member);
        messages.push_back({member, places.full(*piece.segment, theirs.begin + piece.begin), piece.in(theirs), true});
        messages.push_back({member, slot_of(member) + piece.slot, piece.in(own), false});
      }
    }
    const Result<Bytes> round = exchange(call, places, messages);
    if (!round) return round.error();
    sent += *round;
    if (Result<void> r = sum(call, places, pieces, slot_of); !r) return r.error();
  }
  const Result<Bytes> sums = exchange(call, places, messages_of_sums(call, places));
  if (!sums) return sums.error();
  return sent + *sums;
}

}  // namespace shard::cuda
