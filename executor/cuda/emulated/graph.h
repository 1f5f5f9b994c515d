// A captured graph: work with edges, checked once, run in any order that the edges allow.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "executor/cuda/emulated/access_history.h"
#include "executor/cuda/emulated/random.h"
#include "executor/cuda/emulated/work.h"

namespace shard::cuda::emulated {

class GraphWork {
 public:
  /// Behind the nodes `after`, which are there already. Its number.
  std::int32_t add(Step step, std::vector<std::int32_t> after);

  [[nodiscard]] std::int32_t size() const { return static_cast<std::int32_t>(nodes_.size()); }
  [[nodiscard]] const Step& step(std::int32_t node) const { return nodes_[static_cast<std::size_t>(node)].step; }
  [[nodiscard]] const std::vector<std::int32_t>& after(std::int32_t node) const {
    return nodes_[static_cast<std::size_t>(node)].after;
  }
  /// Whether edges lead from one to the other.
  [[nodiscard]] bool leads_to(std::int32_t from, std::int32_t to) const;
  /// A node that none of these is, or comes after.
  [[nodiscard]] std::optional<std::int32_t> not_before(const std::vector<std::int32_t>& ends) const;

  /// The first two accesses that conflict and have no path between them. Else the graph knows what it touches.
  [[nodiscard]] std::optional<Conflict> check();
  [[nodiscard]] const std::vector<Access>& accesses() const { return accesses_; }

  /// Nobody launches it any more; what was launched of it runs on.
  void destroy() { destroyed_ = true; }
  [[nodiscard]] bool is_destroyed() const { return destroyed_; }

  /// Every node becomes a copy of itself, with a number of its own: what is launched are not the nodes captured.
  void clone_nodes(EmulatedActivity& to);

 private:
  struct Node {
    Step step;
    std::vector<std::int32_t> after;
    std::vector<std::uint64_t> before;  // one bit for each node that leads here
  };
  std::vector<Node> nodes_;
  std::vector<Access> accesses_;
  bool destroyed_ = false;
};

/// One launch of a graph.
class GraphRun {
 public:
  /// Without chance, nodes run as they were captured. `launched`: the number of the call.
  GraphRun(std::shared_ptr<const GraphWork> graph, Random* chance, std::uint32_t launched);
  [[nodiscard]] bool finished() const { return left_ == 0; }
  [[nodiscard]] bool can_go_on();
  [[nodiscard]] bool waits_for_others() const { return !held_up_.empty(); }
  /// Runs one of the nodes that may run. `to` may be null.
  std::optional<Error> run_next(EmulatedActivity* to);

 private:
  void release(std::int32_t node);
  void put(std::int32_t node);
  std::shared_ptr<const GraphWork> graph_;
  std::vector<std::uint64_t> keys_;
  std::vector<std::int32_t> waits_for_;                        // by node, how many others
  std::vector<std::vector<std::int32_t>> followers_;           // by node
  std::vector<std::pair<std::uint64_t, std::int32_t>> ready_;  // a heap, the largest key first
  std::vector<std::int32_t> held_up_;                          // nodes that wait for other devices
  std::int32_t left_ = 0;
  std::uint32_t launched_ = 0;
};

}  // namespace shard::cuda::emulated
