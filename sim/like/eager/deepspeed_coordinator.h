// ZeRO stage 3's parameters: which are gathered, when, and what is gathered ahead of its use.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/like/eager/sharding.h"

namespace shard::like::eager {

/// runtime/zero/partitioned_param_coordinator.py: the first step is recorded, module by module; from the second on
/// parameters are gathered ahead of it, and stay where it uses them again soon.
class ParameterCoordinator {
 public:
  ParameterCoordinator(Runtime& runtime, const ShardingOptions& options) : r_(runtime), options_(options) {}

  /// The runtime's parameters, none of which is gathered, as they are from then on.
  void begin();
  /// Of a parameter that a rank has: rounded up.
  [[nodiscard]] std::int64_t part(std::size_t p) const;
  [[nodiscard]] bool is_persistent(std::size_t p) const;

  void reset_step();
  void fetch(const Module& module, bool forward);
  void release(const Module& module, bool forward);
  /// Of modules whose input has no gradient, behind which nothing runs.
  void release_leftovers();
  void release_all();
  /// Persistent parameters are gathered behind an update, each in memory of its own.
  void gather_persistent();
  /// One parameter is gathered and let go.
  void gather_and_release(std::size_t p);

 private:
  enum class Status : std::uint8_t { not_available, in_flight, available };
  enum class Trace : std::uint8_t { invalid, recorded, complete };
  /// A collective that is under way.
  struct Handle {
    std::vector<std::size_t> parameters{};
    BufferId flat{};   ///< what it writes, where several parameters are gathered at once
    Tensors copies{};  ///< of parts that lie on the host
    bool complete = false;
  };
  struct State {
    Status status = Status::not_available;
    std::vector<std::string_view> used_by{};  ///< modules that run
    std::shared_ptr<Handle> handle{};
    /// A checkpointed part has run again with it: what that saved holds the memory, not the parameter.
    bool run_again = false;
    std::int64_t fetched_for = -1;  ///< the last step of the trace that it was gathered for
  };
  struct Use {
    std::size_t parameter = 0;
    std::int64_t step = 0;
  };

  [[nodiscard]] std::int64_t elements(std::size_t p) const { return r_.parameters()[p].elements(); }
  [[nodiscard]] BufferId take(std::int64_t elements, std::string_view name, Category category);
  /// On the device, of one that lies on the host.
  [[nodiscard]] Tensor copied_part(std::size_t p);
  void fill(std::size_t p, BufferId memory);
  void gather(std::vector<std::size_t> parameters);
  void wait(Handle& handle);
  void drop(Handle& handle);
  void wait_for(std::size_t p);
  void release(std::size_t p);
  void prefetch(const Module& module);
  void record_uses();
  [[nodiscard]] const std::vector<std::size_t>& released_by(const Module& module);

  Runtime& r_;
  ShardingOptions options_;
  std::vector<State> states_;
  Trace trace_ = Trace::invalid;
  bool recording_ = false;
  std::vector<Module> modules_;  ///< in the order in which they run, forward and backward
  std::vector<Use> uses_;
  std::deque<Use> queue_;
  std::map<std::pair<std::int64_t, std::int32_t>, std::vector<std::size_t>> released_;
  std::vector<Module> in_backward_;
  std::int64_t step_ = 0;
  std::int64_t gathered_ = 0;  ///< elements
};

}  // namespace shard::like::eager
