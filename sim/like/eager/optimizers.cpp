// torch/optim/adam.py and adamw.py, version 2.
#include "sim/like/eager/optimizers.h"

namespace shard::like::eager {

void Optimizer::make_states() {
  if (!states_.empty()) return;
  r_.tape().set_part(Part::optimizer, Category::optimizer_state);
  r_.tape().begin_op("optimizer states");
  for (const Tensor& p : r_.parameters()) {
    Tensors& own = states_.emplace_back();
    if (update_ == Update::fused) own.push_back(r_.empty({}, Scalar::f32));  // the step count, else on the host
    for (const char* name : {".exp_avg", ".exp_avg_sq"}) {
      own.push_back(r_.empty(p.sizes(), p.strides(), p.scalar()));
      r_.tape().set_name(own.back().storage().buffer(), "", p.storage().buffer(), name);
    }
  }
}

void Optimizer::step() {
  r_.tape().set_module("", -1);
  if (rule_ == Rule::sgd) return;
  make_states();
  r_.tape().set_part(Part::optimizer, Category::workspace);
  r_.tape().begin_op("optimizer roots");
  if (update_ == Update::fused) return;
  if (update_ == Update::foreach) {
    Tensors roots;
    for (const Tensor& p : r_.parameters()) roots.push_back(r_.clone(p));
    while (!roots.empty()) roots.pop_back();
    return;
  }
  Tensor denominator;
  for (const Tensor& p : r_.parameters()) {
    Tensor root = r_.clone(p);
    const Tensor quotient = r_.clone(p);
    root = {};
    denominator = quotient;
  }
}

void Optimizer::zero_grad(bool set_to_none) {
  if (!set_to_none) return;
  for (Tensor& gradient : r_.graph().gradients()) gradient = {};
}

}  // namespace shard::like::eager
