// Hooks around units: fsdp/_runtime_utils.py, and _fsdp_state.py with _fsdp_param_group.py of _fully_shard.
#include "sim/like/eager/fsdp.h"

#include <algorithm>

namespace shard::like::eager {

void Fsdp::make_units(const model::Model& model) {
  blocks_ = static_cast<std::size_t>(model.layers);
  tied_ends_ = options_.ends_apart && model.tied_embeddings;
  units_.resize(blocks_ + (options_.ends_apart ? 3 : 1));
  for (std::size_t p = 0; p < model.parameters.size(); ++p) {
    const std::int32_t block = model.parameter_block[p];
    (block < 0 ? unit_outside(model, p) : units_[static_cast<std::size_t>(block)]).parameters.push_back(p);
    Dims sizes;
    for (const std::int64_t s : model.parameters[p].shape) sizes.push(s);
    Tensor t = r_.without_memory(sizes, options_.compute);
    t.set_parameter(static_cast<std::int32_t>(p));
    r_.parameters().push_back(t);
  }
  if (!tied_ends_) return;
  std::vector<std::size_t>& end = units_[blocks_ + 1].parameters;
  std::rotate(end.begin(), end.begin() + 1, end.end());  // the embedding is the last of its modules
}

Fsdp::Unit& Fsdp::unit_outside(const model::Model& model, std::size_t p) {
  if (!options_.ends_apart) return root();
  if (p == 0) return units_[blocks_ + (tied_ends_ ? 1 : 0)];
  return is_behind_blocks(model, p) ? units_[blocks_ + 1] : root();
}

void Fsdp::enter_model() {
  for (Unit& u : units_) u.in_backward = false;
  if (root().parameters.empty()) return;
  gather(root());
  wait(root(), true);
}

void Fsdp::leave_model(const Tensor& loss, const Tensor& logits) {
  if (!root().parameters.empty()) {
    for (const Tensor& output : {loss, logits}) r_.graph().before(output, [this] { before_backward(root()); });
    leave(root());
  }
  end_forward();
}

Tensor Fsdp::enter(std::size_t block, const Tensor& x) {
  Unit& u = units_[block];
  if (u.in_backward) return x;  // run again: what it needs is gathered
  gather(u);
  wait(u, true);
  if (!x.needs_gradient()) return x;
  Tensor entered = x.view(x.sizes(), x.strides());
  r_.graph().record(entered, {r_.graph().edge(x)}, [this, &u](const Tensors& g) -> Tensors {
    reduce(u);
    return {g[0]};
  });
  return entered;
}

void Fsdp::leave(std::size_t block, const Tensor& y) {
  Unit& u = units_[block];
  if (u.in_backward) return;
  const bool stays = options_.ends_apart ? block == blocks_ + 1 : options_.keep_last && block == blocks_ - 1;
  if (options_.reshard_after_forward && !stays) drop(u);
  leave(u);
  r_.graph().before(y, [this, &u] { before_backward(u); });
}

void Fsdp::leave(Unit& u) {
  u.forward_at = order_.size();
  order_.push_back(&u);
}

void Fsdp::before_backward(Unit& u) {
  if (u.in_backward) return;
  u.in_backward = true;
  gather(u);
  wait(u, false);
  if (options_.prefetch && u.forward_at > 0) gather(*order_[u.forward_at - 1]);
}

void Fsdp::end_backward() {
  if (!root().parameters.empty()) reduce(root());
  if (options_.ends_apart) reduce(units_[blocks_ + (tied_ends_ ? 1 : 0)]);  // whose inputs have no gradients
  order_.clear();
}

}  // namespace shard::like::eager
