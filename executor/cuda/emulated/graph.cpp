// Paths as sets of bits; launches by random keys.
#include "executor/cuda/emulated/graph.h"

#include <algorithm>

namespace shard::cuda::emulated {
namespace {

bool has(const std::vector<std::uint64_t>& bits, std::int32_t node) {
  const auto word = static_cast<std::size_t>(node) / 64;
  return word < bits.size() && (bits[word] >> (node % 64) & 1U) != 0;
}

void set(std::vector<std::uint64_t>& bits, std::int32_t node) {
  const auto word = static_cast<std::size_t>(node) / 64;
  if (word >= bits.size()) bits.resize(word + 1);
  bits[word] |= std::uint64_t{1} << (node % 64);
}

void join(std::vector<std::uint64_t>& bits, const std::vector<std::uint64_t>& more) {
  if (more.size() > bits.size()) bits.resize(more.size());
  for (std::size_t word = 0; word < more.size(); ++word) bits[word] |= more[word];
}

}  // namespace

std::int32_t GraphWork::add(Step step, std::vector<std::int32_t> after) {
  Node node{std::move(step), std::move(after), {}};
  for (const std::int32_t other : node.after) {
    join(node.before, nodes_[static_cast<std::size_t>(other)].before);
    set(node.before, other);
  }
  nodes_.push_back(std::move(node));
  return size() - 1;
}

bool GraphWork::leads_to(std::int32_t from, std::int32_t to) const {
  return has(nodes_[static_cast<std::size_t>(to)].before, from);
}

std::optional<std::int32_t> GraphWork::not_before(const std::vector<std::int32_t>& ends) const {
  std::vector<std::uint64_t> reached;
  for (const std::int32_t end : ends) {
    join(reached, nodes_[static_cast<std::size_t>(end)].before);
    set(reached, end);
  }
  for (std::int32_t node = 0; node < size(); ++node) {
    if (!has(reached, node)) return node;
  }
  return std::nullopt;
}

std::optional<Conflict> GraphWork::check() {
  AccessHistory history;
  for (std::int32_t node = 0; node < size(); ++node) {
    const auto ordered = [&](const Stamp& before) { return before.lane == node || leads_to(before.lane, node); };
    for (const Access& access : step(node).accesses) {
      if (auto conflict = history.add(access, {node, 0, step(node).op}, ordered)) return conflict;
    }
  }
  accesses_ = history.summary();
  return std::nullopt;
}

void GraphWork::clone_nodes(EmulatedActivity& to) {
  for (Node& node : nodes_) {
    if (node.step.told.kind == EmulatedWork::Kind::none) continue;
    const std::uint64_t clone = to.next_node();
    to.node_cloned(clone, std::exchange(node.step.told.node, clone));
  }
}

GraphRun::GraphRun(std::shared_ptr<const GraphWork> graph, Random* chance, std::uint32_t launched)
    : graph_(std::move(graph)),
      keys_(static_cast<std::size_t>(graph_->size())),
      waits_for_(keys_.size()),
      followers_(keys_.size()),
      left_(graph_->size()),
      launched_(launched) {
  for (std::int32_t node = 0; node < left_; ++node) {
    const auto at = static_cast<std::size_t>(node);
    keys_[at] = chance != nullptr ? chance->next() : static_cast<std::uint64_t>(left_ - node);
    waits_for_[at] = static_cast<std::int32_t>(graph_->after(node).size());
    for (const std::int32_t other : graph_->after(node)) followers_[static_cast<std::size_t>(other)].push_back(node);
    if (waits_for_[at] == 0) release(node);
  }
}

void GraphRun::release(std::int32_t node) {
  if (graph_->step(node).hangs) return;
  if (graph_->step(node).ready) {
    held_up_.push_back(node);
    return;
  }
  put(node);
}

bool GraphRun::can_go_on() {
  std::erase_if(held_up_, [&](std::int32_t node) {
    const bool can_run = graph_->step(node).can_run();
    if (can_run) put(node);
    return can_run;
  });
  return !ready_.empty();
}

void GraphRun::put(std::int32_t node) {
  ready_.emplace_back(keys_[static_cast<std::size_t>(node)], node);
  std::ranges::push_heap(ready_);
}

std::optional<Error> GraphRun::run_next(EmulatedActivity* to) {
  std::ranges::pop_heap(ready_);
  const std::int32_t node = ready_.back().second;
  ready_.pop_back();
  --left_;
  auto error = run_and_tell(graph_->step(node), to, launched_);
  for (const std::int32_t next : followers_[static_cast<std::size_t>(node)]) {
    if (--waits_for_[static_cast<std::size_t>(next)] == 0) release(next);
  }
  return error;
}

}  // namespace shard::cuda::emulated
