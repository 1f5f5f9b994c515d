// The two graphs. Seen in no dry run: what is kept follows torch/_functorch/partitioners.py, what is fused Inductor.
#include "sim/like/eager/compiled_block.h"

#include <memory>
#include <utility>
#include <vector>

#include "sim/like/eager/operators.h"

namespace shard::like::eager {
namespace {

/// What is there of a block's inner tensors.
struct Inner {
  Tensor normed, q, k, v;
  Tensor turned_q, turned_k, repeated_v;  ///< the last of grouped heads alone
  Tensor out, sums, between;
  Tensor second_normed, gate, up, gated;
};

class Graphs {
 public:
  Graphs(Runtime& r, const CompiledBlock& shape, const BlockWeights& weights) : r_(r), s_(shape), w_(weights) {}

  /// Makes what is needed and not there; the result where it is asked for.
  Tensor forward(const Tensor& x, Inner& in, bool to_the_end) {
    if (!in.turned_q && (!in.q || !in.k || !in.v)) {
      need(in.normed, s_.hidden);
      if (!in.q) in.q = product(in.normed, w_.q);
      if (!in.k) in.k = product(in.normed, w_.k);
      if (!in.v) in.v = product(in.normed, w_.v);
      if (!keeps_all()) in.normed = {};
    }
    if (!in.out) {
      turn(in);
      in.out = wide(query());
      in.sums = r_.empty({s_.heads, s_.tokens}, Scalar::f32);
      if (keeps_all()) in.q = in.k = in.v = {};
      if (!keeps_all()) in.turned_q = in.turned_k = in.repeated_v = {};
    }
    if (!in.between) in.between = product(in.out, w_.o);
    if (!in.gate || !in.up) {
      need(in.second_normed, s_.hidden);
      if (!in.gate) in.gate = product(in.second_normed, w_.gate);
      if (!in.up) in.up = product(in.second_normed, w_.up);
      if (!keeps_all()) in.second_normed = {};
    }
    if (!to_the_end) return {};
    need(in.gated, s_.ffn);
    Tensor y = product(in.gated, w_.down);
    if (!keeps_all()) in.gated = {};
    return y.view(x.sizes(), x.strides());
  }

  Tensors backward(const Tensor& x, Inner& in, const Tensor& given) {
    r_.tape().begin_op("compiled backward");
    (void)forward(x, in, false);
    const Tensor g = flat(given);
    Tensors weights(7);
    need(in.gated, s_.ffn);
    weights[6] = weight_gradient(g, in.gated);
    in.gated = {};
    Tensor to_gated = r_.mm(g, w_.down);
    Tensor to_gate = wide(s_.ffn), to_up = wide(s_.ffn);
    to_gated = in.gate = in.up = {};
    need(in.second_normed, s_.hidden);
    weights[4] = weight_gradient(to_gate, in.second_normed);
    weights[5] = weight_gradient(to_up, in.second_normed);
    Tensor first = r_.mm(to_gate, w_.gate);
    to_gate = {};
    Tensor second = r_.mm(to_up, w_.up);
    to_up = in.second_normed = {};
    Tensor to_between = wide(s_.hidden);
    first = second = in.between = {};
    weights[3] = weight_gradient(to_between, in.out);
    Tensor to_out = r_.mm(to_between, w_.o);
    attention_backward(in, to_out, first, second);
    const Tensor to_v = std::exchange(to_value_, {});
    need(in.normed, s_.hidden);
    weights[0] = weight_gradient(first, in.normed);
    weights[1] = weight_gradient(second, in.normed);
    weights[2] = weight_gradient(to_v, in.normed);
    const Tensor parts[] = {r_.mm(first, w_.q), r_.mm(second, w_.k), r_.mm(to_v, w_.v)};
    Tensors all{wide(s_.hidden).view(x.sizes(), x.strides())};
    for (Tensor& weight : weights) all.push_back(std::move(weight));
    for (const Tensor& norm : w_.norms) all.push_back(r_.empty(norm.sizes(), norm.scalar()));
    return all;
  }

 private:
  [[nodiscard]] bool keeps_all() const { return s_.keep == CompiledKeep::all; }
  void need(Tensor& t, std::int64_t width) {
    if (!t) t = wide(width);
  }
  [[nodiscard]] std::int64_t query() const { return s_.heads * s_.head_dim; }
  Tensor wide(std::int64_t width) { return r_.empty({s_.tokens, width}, Scalar::bf16); }
  [[nodiscard]] Tensor flat(const Tensor& x) const { return x.view({s_.tokens, s_.hidden}, {s_.hidden, 1}); }
  Tensor product(const Tensor& x, const Tensor& weight) { return r_.mm(x, transposed(weight, 0, 1)); }
  Tensor weight_gradient(const Tensor& g, const Tensor& x) { return r_.mm(transposed(g, 0, 1), x); }
  /// Queries and keys turned, keys and values of a group's queries repeated.
  void turn(Inner& in) {
    need(in.turned_q, query());
    need(in.turned_k, query());
    if (s_.kv_heads != s_.heads) need(in.repeated_v, query());
  }
  void attention_backward(Inner& in, Tensor& to_out, Tensor& to_query, Tensor& to_key) {
    turn(in);
    Tensor dq = wide(query()), dk = wide(query()), dv = wide(query());
    {
      const Tensor row_sums = r_.empty({s_.heads, s_.tokens}, Scalar::f32);
      const Tensor sum = r_.empty({s_.tokens, query()}, Scalar::f32);
    }
    in.turned_q = in.turned_k = in.repeated_v = {};
    to_out = in.q = in.k = in.v = in.out = in.sums = {};
    to_query = wide(query());
    dq = {};
    to_key = wide(s_.kv_heads * s_.head_dim);
    dk = {};
    to_value_ = wide(s_.kv_heads * s_.head_dim);
  }

  Runtime& r_;
  CompiledBlock s_;
  BlockWeights w_;
  Tensor to_value_;
};

void drop_what_is_not_kept(Inner& in, CompiledKeep keep) {
  if (keep == CompiledKeep::all) return;
  in.k = in.between = in.up = {};
  if (keep == CompiledKeep::selected) return;
  in.out = in.sums = {};
  if (keep == CompiledKeep::input) in.q = in.v = in.gate = {};
}

}  // namespace

Tensor compiled_block(Runtime& r, const CompiledBlock& shape, const BlockWeights& weights, const Tensor& x) {
  r.tape().begin_op("compiled forward");
  auto graphs = std::make_shared<Graphs>(r, shape, weights);
  auto inner = std::make_shared<Inner>();
  Tensor y = graphs->forward(x, *inner, true);
  drop_what_is_not_kept(*inner, shape.keep);
  std::vector<Edge> edges{r.graph().edge(x)};
  for (const Tensor& w : {weights.q, weights.k, weights.v, weights.o, weights.gate, weights.up, weights.down})
    edges.push_back(r.graph().edge(w));
  for (const Tensor& norm : weights.norms) edges.push_back(r.graph().edge(norm));
  r.graph().record(y, std::move(edges), [graphs, inner, input = x.saved()](const Tensors& g) -> Tensors {
    return graphs->backward(input, *inner, g[0]);
  });
  return y;
}

Tensor compiled_cross_entropy(Runtime& r, const Tensor& scores) {
  r.tape().begin_op("compiled loss");
  const Tensor largest = r.empty({scores.size(0)}, Scalar::f32), sum = r.empty({scores.size(0)}, Scalar::f32);
  Tensor loss = r.empty({}, Scalar::f32);
  r.graph().record(loss, {r.graph().edge(scores)},
                   [&r, scores = scores.saved(), largest, sum](const Tensors&) -> Tensors {
                     r.tape().begin_op("compiled loss");
                     return {r.empty(scores.sizes(), scores.scalar())};
                   });
  return loss;
}

}  // namespace shard::like::eager
