// torch/optim/adam.py and adamw.py, torch/nn/utils/clip_grad.py, version 2.
#include "sim/like/eager/optimizers.h"

#include <algorithm>

#include "traces/base/division.h"

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

void clip_gradients(Runtime& r, const std::function<Tensor(const Tensor& norms)>& sum_norms) {
  constexpr std::int64_t kChunk = 65'536;  // elements of a gradient that one block of threads sums: ForeachReduceOp.cu
  r.tape().set_module("", -1);
  r.tape().set_part(Part::optimizer, Category::workspace);
  r.tape().begin_op("clip_grad_norm_");
  std::int64_t count = 0, chunks = 0;
  Scalar scalar = Scalar::f32;
  for (const Tensor& gradient : r.graph().gradients()) {
    if (!gradient) continue;
    ++count;
    chunks = std::max(chunks, divide_up(gradient.elements(), kChunk));
    scalar = gradient.scalar();
  }
  if (count == 0) return;
  Tensors norms;
  {
    const Tensor partial = r.empty({count * chunks}, Scalar::f32);
    for (std::int64_t i = 0; i < count; ++i) norms.push_back(r.empty({}, scalar));
  }
  Tensor stacked = r.empty({count}, scalar);
  const Tensor total = [&] {
    const Tensor summed = sum_norms ? sum_norms(stacked) : stacked;
    return r.reduce(summed, 1U, scalar);
  }();
  stacked = {};
  while (!norms.empty()) norms.pop_back();
  Tensor shifted = r.empty({}, scalar), inverse = r.empty({}, scalar);
  Tensor coefficient = r.empty({}, scalar);
  inverse = {};
  shifted = {};
  const Tensor clamped = r.empty({}, scalar);
  coefficient = {};
}

}  // namespace shard::like::eager
