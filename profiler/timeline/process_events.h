// The events of one process on its host's clock, each once, with what says which op they belong to.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "profiler/clock/clock_map.h"
#include "profiler/spool/read_spool.h"
#include "profiler/timeline/timeline.h"

namespace shard::profiler {

/// A phase of a rank of our own program, as it said itself.
struct PhaseRange {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  PhaseStep at{};
};

/// Whose work something is. `at`: of the moment when the call was made, where our program said when its phases were.
struct WorkOf {
  PushedOp pushed{};
  PhaseStep at{};
};

class ProcessEvents {
 public:
  explicit ProcessEvents(const SpoolContent& content);

  /// By begin; times of the host. Without those that only say how others belong together.
  [[nodiscard]] const std::vector<Event>& events() const { return events_; }
  [[nodiscard]] std::int64_t twice() const { return twice_; }
  /// Of the moments of this recording, and at most what the map bounds.
  [[nodiscard]] std::int64_t clock_bound_ns() const { return clock_bound_ns_; }

  /// The call that caused it; null where there is none. Stays.
  [[nodiscard]] const Event* call_of(const Event& work) const;
  /// The op or the rank of ours that work or memory belongs to, by its graph node or by its call.
  [[nodiscard]] std::optional<WorkOf> owner_of(const Event& event) const;

 private:
  void keep_once(const SpoolContent& content);
  void join();
  void place();
  [[nodiscard]] PhaseStep phase_at(std::int32_t rank, std::int64_t time_ns) const;

  std::vector<Event> events_;
  std::vector<ClockLook> looks_;
  std::vector<Event> belongings_;
  std::unordered_map<std::uint32_t, std::size_t> calls_;              ///< by correlation
  std::unordered_map<std::uint32_t, std::uint64_t> pushed_;           ///< by correlation: our id
  std::unordered_map<std::uint64_t, std::uint64_t> node_origin_;      ///< by graph node: the node that it is a copy of
  std::unordered_map<std::uint64_t, std::uint64_t> node_pushed_;      ///< by graph node: our id
  std::unordered_map<std::int32_t, std::vector<PhaseRange>> phases_;  ///< by rank
  std::int64_t twice_ = 0;
  std::int64_t clock_bound_ns_ = 0;
};

}  // namespace shard::profiler
