// Memory of two traces held against each other in plan order: what differs at which op, whatever time it ran at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/reader.h"

namespace shard {

/// Events of each rank and memory, as indices into Trace::memory, in plan order.
[[nodiscard]] std::map<std::pair<Rank, Memory>, std::vector<std::uint32_t>> memory_events(const Trace& trace);

/// Which ops of two traces are the same: by id where one plan is behind both, else by name.
class SameOps {
 public:
  SameOps(const Trace& first, const Trace& other);
  [[nodiscard]] bool by_id() const { return by_id_; }
  /// Equal for the same op of both traces; negative where the event belongs to no op.
  [[nodiscard]] std::int64_t of_first(OpId op) const { return key(op, first_); }
  [[nodiscard]] std::int64_t of_other(OpId op) const { return key(op, other_); }

 private:
  using Keys = std::unordered_map<std::int32_t, std::int64_t>;
  [[nodiscard]] std::int64_t key(OpId op, const Keys& keys) const;

  bool by_id_ = false;
  Keys first_, other_;  ///< by OpId, where names decide
};

/// The difference behind one event of either trace, or behind the same event of both.
struct MemoryPoint {
  std::uint32_t first_moment = 0, other_moment = 0;  ///< how many of each trace's events lie behind
  std::int64_t bytes = 0;                            ///< live in the other - live in the first
  bool of_first = true, of_other = true;             ///< which trace's event led here
  bool first_again = false, other_again = false;  ///< this step of that trace stands for a later one of the same kind
};

/// One memory of one rank.
struct MemoryByOp {
  std::int64_t same_events = 0;     ///< that both traces have
  std::vector<MemoryPoint> points;  ///< in plan order, step by step; empty where the traces share no op
  std::size_t largest = 0;          ///< the first point whose difference is the largest of all
  std::size_t begin = 0;            ///< the first point with any difference; points.size() without one

  [[nodiscard]] bool equal() const { return begin == points.size(); }
  /// Without its sign; 0 without points.
  [[nodiscard]] std::int64_t largest_bytes() const;
};

/// Steps are paired by phase and by which of their phase they are; where one trace has more of them, the last one of
/// the other stands for those that it lacks, as one predicted steady step does for a whole run. Phases that only one
/// trace has are left out. Within a step events are the same where op, direction and their number among such are; what
/// is out of order counts as two events. `first_events`, `other_events`: of one rank and memory, in plan order.
[[nodiscard]] MemoryByOp memory_by_op(const Trace& first, const std::vector<std::uint32_t>& first_events,
                                      const Trace& other, const std::vector<std::uint32_t>& other_events,
                                      const SameOps& ops);

/// What led to a point, for people: the op's name, its phase and step.
struct MemoryPlace {
  std::string op;  ///< "gather chunk 0", or "op 12" where it has no name; empty where the event belongs to no op
  OpId id{};       ///< in the trace that has the event, the first one of both
  Phase phase = Phase::steady_step;
  std::int32_t step = 0;
};
[[nodiscard]] MemoryPlace place_of(const MemoryPoint& point, const Trace& first,
                                   const std::vector<std::uint32_t>& first_events, const Trace& other,
                                   const std::vector<std::uint32_t>& other_events);

/// The memory that differs most, with the places where; nothing where no memory was compared.
struct LargestMemoryDifference {
  Rank rank{};
  Memory memory = Memory::device;
  std::int64_t bytes = 0;        ///< without its sign
  MemoryPlace at{};              ///< where it is reached; empty where `bytes` is 0
  std::int64_t begin_bytes = 0;  ///< other - first behind the first event that makes a difference
  MemoryPlace begin{};           ///< that event's
  bool compared = false;         ///< both traces have events of the same ops
};
[[nodiscard]] LargestMemoryDifference largest_memory_difference(const Trace& first, const Trace& other);

}  // namespace shard
