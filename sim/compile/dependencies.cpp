// Edges between streams, kept minimal with one vector clock per op.
#include "sim/compile/dependencies.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "sim/compile/given_back.h"
#include "sim/ir/effects.h"

namespace shard::plan {
namespace {

/// Per stream, the index in plan order of the newest op known to have finished; -1: none.
using Clock = std::array<std::int32_t, kStreamCount>;
constexpr Clock kNothing = [] {
  Clock c{};
  c.fill(-1);
  return c;
}();

[[nodiscard]] std::size_t index_of(Stream s) {
  return static_cast<std::size_t>(s);
}

void join(Clock& into, const Clock& other) {
  for (std::size_t s = 0; s < into.size(); ++s) into[s] = std::max(into[s], other[s]);
}

/// What has finished before each op starts, given stream order and the edges added so far.
class Order {
 public:
  Order(const Plan& plan, PhaseOps& phase) : pool_(*plan.pool), ops_(phase.ops), before_(phase.ops.size(), kNothing) {
    last_.fill(-1);
    if (ops_.empty()) return;
    first_id_ = ops_.front().id.value;
    position_.resize(static_cast<std::size_t>(ops_.back().id.value - first_id_) + 1, -1);
    for (std::size_t i = 0; i < ops_.size(); ++i)
      position_[static_cast<std::size_t>(ops_[i].id.value - first_id_)] = static_cast<std::int32_t>(i);
  }

  /// Starts op i, the next in plan order, with those of its edges that say more than others do by now.
  void begin(std::size_t i) {
    if (const std::int32_t previous = last_[index_of(ops_[i].stream)]; previous >= 0) learn(i, previous);
    edges_.clear();
    before_edges_.assign(ops_[i].dependencies.begin(), ops_[i].dependencies.end());
    if (before_edges_.size() > 1) std::sort(before_edges_.rbegin(), before_edges_.rend());
    for (OpId d : before_edges_) need_op(i, position(d));
    last_[index_of(ops_[i].stream)] = static_cast<std::int32_t>(i);
  }

  /// Op i needs the op of each stream that `needed` names (an index, -1: none) to have finished. The newest first, so
  /// that it implies as many of the others as possible.
  void need(std::size_t i, Clock needed) {
    if (std::ranges::count_if(needed, [](std::int32_t other) { return other >= 0; }) > 1)
      std::sort(needed.rbegin(), needed.rend());
    for (std::int32_t other : needed) need_op(i, other);
    if (edges_.size() > 1) drop_implied();
    if (!std::ranges::equal(ops_[i].dependencies, edges_))
      ops_[i].dependencies = pool_.keep(std::span<const OpId>(edges_));
  }

 private:
  void need_op(std::size_t i, std::int32_t other) {
    if (other < 0) return;
    const Op& source = ops_[static_cast<std::size_t>(other)];
    if (source.stream == ops_[i].stream || before_[i][index_of(source.stream)] >= other) return;
    edges_.push_back(source.id);
    learn(i, other);
  }
  /// Drops edges that others of the same op imply: what came first may be older than what came later.
  void drop_implied() {
    before_edges_.clear();
    for (OpId d : edges_) {
      const std::int32_t at = position(d);
      const std::size_t stream = index_of(ops_[static_cast<std::size_t>(at)].stream);
      const bool implied = std::any_of(edges_.begin(), edges_.end(), [&](OpId e) {
        const auto other = static_cast<std::size_t>(position(e));
        if (e == d) return false;
        return index_of(ops_[other].stream) == stream ? position(e) > at : before_[other][stream] >= at;
      });
      if (!implied) before_edges_.push_back(d);
    }
    edges_.swap(before_edges_);
  }
  [[nodiscard]] std::int32_t position(OpId id) const {
    return position_[static_cast<std::size_t>(id.value - first_id_)];
  }
  void learn(std::size_t i, std::int32_t other) {
    const auto o = static_cast<std::size_t>(other);
    join(before_[i], before_[o]);
    std::int32_t& known = before_[i][index_of(ops_[o].stream)];
    known = std::max(known, other);
  }

  Pool& pool_;
  std::vector<Op>& ops_;
  std::vector<OpId> edges_;         // of the op begun last, so far
  std::vector<OpId> before_edges_;  // the same before the step at hand
  std::vector<Clock> before_;
  Clock last_{};
  std::int32_t first_id_ = 0;
  std::vector<std::int32_t> position_;  // by id - first_id_; ids ascend
};

}  // namespace

void order_buffers(const Plan& plan, PhaseOps& phase) {
  struct Last {
    Clock write = kNothing;
    Clock read = kNothing;
  };
  std::vector<Last> last(plan.buffers.size());
  Order order(plan, phase);
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    order.begin(i);
    const Op& op = phase.ops[i];
    Clock needed = kNothing;
    for (const Operand& o : op.operands) {
      const Last& seen = last[static_cast<std::size_t>(o.buffer.value)];
      join(needed, seen.write);
      if (o.writes()) join(needed, seen.read);
    }
    order.need(i, needed);
    for (const Operand& o : op.operands) {
      Last& seen = last[static_cast<std::size_t>(o.buffer.value)];
      if (o.writes()) seen.write[index_of(op.stream)] = static_cast<std::int32_t>(i);
      if (o.reads()) seen.read[index_of(op.stream)] = static_cast<std::int32_t>(i);
    }
  }
}

ArenaPlaces::ArenaPlaces(const Plan& plan) : of_buffer_(plan.buffers.size()) {
  struct Place {
    std::int64_t byte;
    std::int32_t buffer;
    bool end;
  };
  std::array<std::vector<Place>, kMemoryCount> arenas;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    if (buffer.offset < 0 || buffer.persistent) continue;
    std::vector<Place>& arena = arenas[static_cast<std::size_t>(buffer.memory)];
    const auto id = static_cast<std::int32_t>(b);
    arena.push_back({.byte = buffer.offset, .buffer = id, .end = false});
    arena.push_back({.byte = buffer.offset + arena_bytes(buffer).count(), .buffer = id, .end = true});
  }
  for (std::size_t m = 0; m < arenas.size(); ++m) {
    std::ranges::sort(arenas[m], {}, &Place::byte);
    std::size_t number = 0;
    for (std::size_t i = 0; i < arenas[m].size(); ++i) {
      if (i > 0 && arenas[m][i].byte != arenas[m][i - 1].byte) ++number;
      Range& range = of_buffer_[static_cast<std::size_t>(arenas[m][i].buffer)];
      (arenas[m][i].end ? range.end : range.begin) = number;
    }
    count_[m] = arenas[m].empty() ? 0 : number + 1;
  }
}

void order_reuse(const Plan& plan, const ArenaPlaces& places, PhaseOps& phase) {
  std::vector<RangeOwners> arenas;
  for (int m = 0; m < kMemoryCount; ++m) arenas.emplace_back(places.count(static_cast<Memory>(m)));
  std::vector<Clock> given_back;                           // accesses of lifetimes that are over
  std::vector<Clock> last(plan.buffers.size(), kNothing);  // accesses of this lifetime
  Order order(plan, phase);
  for (std::size_t i = 0; i < phase.ops.size(); ++i) {
    order.begin(i);
    Op& op = phase.ops[i];
    Clock needed = kNothing;
    for (BufferId id : op.acquire) {
      const Buffer& buffer = plan.buffer(id);
      if (buffer.persistent) continue;
      const ArenaPlaces::Range at = places.of(id);
      arenas[static_cast<std::size_t>(buffer.memory)].for_each(
          at.begin, at.end, [&](std::int32_t owner) { join(needed, given_back[static_cast<std::size_t>(owner)]); });
      last[static_cast<std::size_t>(id.value)] = kNothing;
    }
    order.need(i, needed);
    for (const Operand& o : op.operands)
      last[static_cast<std::size_t>(o.buffer.value)][index_of(op.stream)] = static_cast<std::int32_t>(i);
    for (BufferId id : op.release) {
      const ArenaPlaces::Range at = places.of(id);
      if (at.begin == at.end) continue;
      // The newest owner's accesses imply the older ones inside its bytes.
      arenas[static_cast<std::size_t>(plan.buffer(id).memory)].assign(at.begin, at.end,
                                                                      static_cast<std::int32_t>(given_back.size()));
      given_back.push_back(last[static_cast<std::size_t>(id.value)]);
    }
  }
}

}  // namespace shard::plan
