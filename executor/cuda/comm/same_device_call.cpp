// Copies and tree sums between arenas of one device.
#include "executor/cuda/comm/same_device_call.h"

#include <array>
#include <string>

namespace shard::cuda {
namespace {

using model::Access;

/// One member's part of one stage of a call: its ranges are noted, then its work is enqueued.
class Part {
 public:
  Part(const DeviceRoom& room, std::span<const CallMember> members, std::size_t own)
      : room_(room), members_(members), own_(own), element_(bytes_per_element(members[own].request.dtype)) {}

  void copy(std::byte* to, const std::byte* from, Elems elems) {
    if (to == from || elems.count() == 0) return;
    add(from, elems, Access::read);
    add(to, elems, Access::write);
    copies_.push_back({to, from, bytes(elems)});
  }
  /// Elements [begin, end) of every member's full, summed to `to`.
  void sum(std::size_t segment, Elems begin, Elems end, std::byte* to) {
    const Elems elems = end - begin;
    if (elems.count() == 0) return;
    Sum sum{.from = {}, .elems = elems, .to = to};
    bool in_place = false;
    for (std::size_t m = 0; m < members_.size(); ++m) {
      std::byte* const from = members_[m].full(segment) + begin.count() * element_;
      sum.from.member[m] = from;
      in_place = in_place || from == to;
      add(from, elems, from == to ? Access::update : Access::read);
    }
    if (!in_place) add(to, elems, Access::write);
    sums_.push_back(sum);
  }
  [[nodiscard]] Result<void> enqueue() {
    const CallMember& own = members_[own_];
    const OpNote note{.rank = own.rank, .op = own.request.op, .name = to_string(own.request.kind), .ranges = ranges_};
    const Witnessed witnessed(room_.witness, note.rank, note.op);
    if (Result<void> r = room_.api.begin_op(own.stream, note); !r) return r;
    for (const CopyOf& c : copies_)
      if (Result<void> r = room_.api.copy(own.stream, c.to, c.from, c.bytes); !r) return r;
    for (const Sum& s : sums_)
      room_.kernels.tree_sum(own.stream, static_cast<std::int32_t>(members_.size()), s.from, s.elems.count(),
                             own.request.dtype, s.to);
    return room_.api.end_op(own.stream);
  }

 private:
  struct CopyOf {
    std::byte* to;
    const std::byte* from;
    std::int64_t bytes;
  };
  struct Sum {
    MemberPointers from;
    Elems elems;
    std::byte* to;
  };
  [[nodiscard]] std::int64_t bytes(Elems elems) const { return elems.count() * element_; }
  void add(const std::byte* begin, Elems elems, Access access) { ranges_.push_back({begin, bytes(elems), access}); }

  const DeviceRoom& room_;
  std::span<const CallMember> members_;
  std::size_t own_;
  std::int64_t element_;
  std::vector<Range> ranges_;
  std::vector<CopyOf> copies_;
  std::vector<Sum> sums_;
};

/// All members' streams go on when all have come to `event`.
Result<void> meet(const DeviceRoom& room, std::span<const CallMember> members, Event CallMember::*event) {
  for (const CallMember& m : members)
    for (const CallMember& other : members)
      if (m.rank != other.rank)
        if (Result<void> r = room.api.wait(m.stream, other.*event); !r) return r;
  return {};
}

Result<void> record(const DeviceRoom& room, std::span<const CallMember> members, Event CallMember::*event) {
  for (const CallMember& m : members)
    if (Result<void> r = room.api.record(m.*event, m.stream); !r) return r;
  return {};
}

/// Member m's elements of a sum that all share.
std::pair<Elems, Elems> slice(Elems elems, std::size_t m, std::size_t members) {
  const auto cut = [&](std::size_t at) {
    return Elems{elems.count() * static_cast<std::int64_t>(at) / static_cast<std::int64_t>(members)};
  };
  return {cut(m), cut(m + 1)};
}

void first_stage(std::span<const CallMember> members, std::size_t m, std::size_t segment, Part& part) {
  const CallMember& own = members[m];
  const Elems elems = own.segments[segment].elems;
  const auto n = static_cast<std::int64_t>(members.size());
  const Elems shard{elems.count() / n};
  const std::int64_t element = bytes_per_element(own.request.dtype);
  switch (own.request.kind) {
    case Collective::all_gather:
      for (std::size_t j = 0; j < members.size(); ++j)
        part.copy(own.full(segment) + static_cast<std::int64_t>(j) * shard.count() * element, members[j].shard(segment),
                  shard);
      return;
    case Collective::reduce_scatter: {
      const Elems begin{static_cast<std::int64_t>(m) * shard.count()};
      return part.sum(segment, begin, begin + shard, own.shard(segment));
    }
    case Collective::all_reduce: {
      const auto [begin, end] = slice(elems, m, members.size());
      return part.sum(segment, begin, end, own.full(segment) + begin.count() * element);
    }
    case Collective::broadcast:
    case Collective::reduce: break;
  }
  for (const CallMember& root : members) {
    if (root.rank != own.request.root) continue;
    if (own.request.kind == Collective::broadcast)
      part.copy(own.full(segment), root.full(segment), elems);
    else if (root.rank == own.rank)
      part.sum(segment, Elems{0}, elems, own.full(segment));
  }
}

/// Of an all_reduce: the others' slices.
void second_stage(std::span<const CallMember> members, std::size_t m, std::size_t segment, Part& part) {
  const CallMember& own = members[m];
  const std::int64_t element = bytes_per_element(own.request.dtype);
  for (std::size_t j = 0; j < members.size(); ++j) {
    const auto [begin, end] = slice(own.segments[segment].elems, j, members.size());
    const std::int64_t at = begin.count() * element;
    part.copy(own.full(segment) + at, members[j].full(segment) + at, end - begin);
  }
}

template <class Stage>
Result<void> enqueue_stage(const DeviceRoom& room, std::span<const CallMember> members, const Stage& stage) {
  for (std::size_t m = 0; m < members.size(); ++m) {
    Part part(room, members, m);
    for (std::size_t segment = 0; segment < members[m].segments.size(); ++segment) stage(members, m, segment, part);
    if (Result<void> r = part.enqueue(); !r) return r;
  }
  return {};
}

}  // namespace

Result<void> enqueue_call(const DeviceRoom& room, std::span<CallMember> members) {
  if (Result<void> r = meet(room, members, &CallMember::arrived); !r) return r;
  if (Result<void> r = enqueue_stage(room, members, first_stage); !r) return r;
  if (members.front().request.kind == Collective::all_reduce && members.size() > 1) {
    if (Result<void> r = record(room, members, &CallMember::half); !r) return r;
    if (Result<void> r = meet(room, members, &CallMember::half); !r) return r;
    if (Result<void> r = enqueue_stage(room, members, second_stage); !r) return r;
  }
  // Nobody's memory is given on before the others have read it.
  if (Result<void> r = record(room, members, &CallMember::done); !r) return r;
  return meet(room, members, &CallMember::done);
}

}  // namespace shard::cuda
