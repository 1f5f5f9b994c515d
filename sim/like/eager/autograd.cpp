// The engine: dependencies, the queue by age, sums of gradients that meet.
#include "sim/like/eager/autograd.h"

#include <cassert>
#include <queue>
#include <utility>

namespace shard::like::eager {

Edge Graph::edge(const Tensor& input) {
  if (!input.needs_gradient()) return {};
  Source to = input.source();
  if (to.node < 0) {
    std::int32_t& collector = collectors_[static_cast<std::size_t>(input.parameter())];
    if (collector < 0) {
      collector = static_cast<std::int32_t>(nodes_.size());
      nodes_.push_back({.inputs = {}, .backward = nullptr, .parameter = input.parameter(), .place = tape_.place()});
    }
    to = {.node = collector};
  }
  return {.to = to, .sizes = input.sizes(), .scalar = input.scalar()};
}

void Graph::record(Tensor& output, std::vector<Edge> inputs, Backward backward) {
  record(std::vector<Tensor*>{&output}, std::move(inputs), std::move(backward));
}

void Graph::record(std::vector<Tensor*> outputs, std::vector<Edge> inputs, Backward backward) {
  const bool saves = tape_.count_saved() > 0;
  const auto own = [&](std::int32_t node) {
    for (std::size_t i = 0; i < outputs.size(); ++i)
      outputs[i]->set_source({.node = node, .output = static_cast<std::int32_t>(i)});
  };
  if (again_) {  // only for those that need a gradient; the graph is there already
    own(again_->nodes.back());
    if (!saves || again_->kept == again_->nodes.size()) return;
    nodes_[static_cast<std::size_t>(again_->nodes[again_->kept++])].backward = std::move(backward);
    if (again_->kept == again_->nodes.size()) tape_.mute(true);
    return;
  }
  const auto node = static_cast<std::int32_t>(nodes_.size());
  own(node);
  nodes_.push_back({.inputs = std::move(inputs),
                    .backward = std::move(backward),
                    .outputs = static_cast<std::int32_t>(outputs.size()),
                    .place = tape_.place()});
  if (!part_ || !saves) return;
  part_->nodes.push_back(node);
  nodes_.back().part = part_;
  nodes_.back().backward = nullptr;
}

void Graph::run_again(const std::shared_ptr<Checkpoint>& part) {
  if (part->ran) return;
  part->ran = true;
  again_ = part.get();
  part->again();
  tape_.mute(false);
  again_ = nullptr;
}

void Graph::before(const Tensor& output, std::function<void()> hook) {
  nodes_[static_cast<std::size_t>(output.source().node)].hooks.push_back(std::move(hook));
}

struct Graph::Run {
  Graph& graph;
  const Tensors& parameters;
  Fitting& fitting;
  std::vector<std::int32_t> waits;  ///< by node: gradients that are still to come
  std::vector<Tensors> arrived;     ///< by node and output
  /// Collectors run at once, else the youngest.
  struct Older {
    const std::deque<Node>& nodes;
    [[nodiscard]] std::int64_t age(std::int32_t n) const {
      return nodes[static_cast<std::size_t>(n)].parameter >= 0 ? INT64_MAX : n;
    }
    bool operator()(std::int32_t a, std::int32_t b) const { return age(a) < age(b); }
  };
  std::priority_queue<std::int32_t, std::vector<std::int32_t>, Older> ready{Older{graph.nodes_}};

  Run(Graph& of, const Tensors& parameters_of, Fitting& fits)
      : graph(of), parameters(parameters_of), fitting(fits), waits(of.nodes_.size(), 0), arrived(of.nodes_.size()) {}

  void count_dependencies(std::int32_t root) {
    std::vector<bool> seen(graph.nodes_.size(), false);
    std::vector<std::int32_t> open{root};
    seen[static_cast<std::size_t>(root)] = true;
    while (!open.empty()) {
      const Node& node = graph.nodes_[static_cast<std::size_t>(open.back())];
      open.pop_back();
      for (const Edge& e : node.inputs) {
        if (e.to.node < 0) continue;
        const auto to = static_cast<std::size_t>(e.to.node);
        ++waits[to];
        if (!seen[to]) open.push_back(e.to.node);
        seen[to] = true;
      }
    }
  }

  void collect(std::size_t parameter, Tensors& gradients) {
    Tensor& own = graph.gradients_[parameter];
    if (own || !gradients[0]) return;  // added in place
    Tensor fresh = std::move(gradients[0]);
    if (!fresh.alone() || fresh.strides() != parameters[parameter].strides())
      fresh = fitting.clone_as(fresh, parameters[parameter]);
    Storage& storage = fresh.storage();
    storage.tape().set_category(storage.buffer(), Category::gradient);
    storage.tape().set_name(storage.buffer(), "d ", parameters[parameter].storage().buffer(), "");
    own = std::move(fresh);
    const Tensor held = own;
    if (graph.collected_) graph.collected_(parameter);
  }

  /// The gradients of a node's inputs; what came in and what the node saved are gone.
  Tensors run_node(std::int32_t at) {
    Node& node = graph.nodes_[static_cast<std::size_t>(at)];
    graph.tape_.set_place(node.place);
    Tensors in = std::move(arrived[static_cast<std::size_t>(at)]);
    arrived[static_cast<std::size_t>(at)].clear();
    if (node.parameter >= 0) {
      collect(static_cast<std::size_t>(node.parameter), in);
      return {};
    }
    for (const std::function<void()>& hook : node.hooks) hook();
    node.hooks.clear();
    in.resize(static_cast<std::size_t>(node.outputs));
    if (node.part) {
      graph.run_again(node.part);
      graph.tape_.set_place(node.place);
    }
    Tensors out = node.backward(in);
    assert(out.size() == node.inputs.size());
    if (node.part) node.backward = nullptr;  // a promise is kept for the node alone, which ends here
    for (std::size_t i = 0; i < out.size(); ++i) {
      const Edge& e = node.inputs[i];
      if (e.to.node < 0 || !out[i]) continue;
      if (out[i].sizes() != e.sizes) out[i] = fitting.sum_to(std::exchange(out[i], {}), e.sizes);
      if (out[i].scalar() != e.scalar) out[i] = fitting.cast(std::exchange(out[i], {}), e.scalar);
    }
    in.clear();
    node.backward = nullptr;
    node.part = nullptr;
    return out;
  }

  Tensor added(const Tensor& sum, const Tensor& next, std::uint8_t stream) {
    graph.tape_.on_stream(stream);
    Tensor both = fitting.add(sum, next);
    graph.tape_.on_stream(0);
    return both;
  }

  void hand_on(const Node& node, Tensors& out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const Edge& e = node.inputs[i];
      if (e.to.node < 0) continue;
      const auto to = static_cast<std::size_t>(e.to.node);
      Tensors& place = arrived[to];
      if (place.empty()) place.resize(static_cast<std::size_t>(graph.nodes_[to].outputs));
      Tensor& sum = place[static_cast<std::size_t>(e.to.output)];
      Tensor next = std::move(out[i]);
      if (!sum)
        sum = std::move(next);
      else if (next && !(sum.alone_in_memory() && is_dense(sum.sizes(), sum.strides())))
        sum = added(sum, next, graph.nodes_[to].parameter >= 0 ? graph.parameters_stream_ : std::uint8_t{0});
      if (--waits[to] == 0) ready.push(e.to.node);
    }
  }
};

void Graph::run(const Tensor& loss, const Tensor& root, const Tensors& parameters, Fitting& fitting) {
  Run run(*this, parameters, fitting);
  const std::int32_t first = loss.source().node;
  run.count_dependencies(first);
  run.arrived[static_cast<std::size_t>(first)] = {root};
  run.ready.push(first);
  while (!run.ready.empty()) {
    const std::int32_t at = run.ready.top();
    run.ready.pop();
    Tensors out = run.run_node(at);
    run.hand_on(nodes_[static_cast<std::size_t>(at)], out);
  }
  nodes_.clear();
  collectors_.assign(collectors_.size(), -1);
}

}  // namespace shard::like::eager
