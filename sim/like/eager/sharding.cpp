// What frameworks have in common.
#include "sim/like/eager/sharding.h"

#include <utility>

namespace shard::like::eager {

void Sharding::exchange() {
  if (wraps_placed_module()) return;  // the optimizer has the program's
  std::swap(r_.parameters(), shards_);
  std::swap(r_.graph().gradients(), shard_gradients_);
}

Tensor Sharding::on_host(const Dims& sizes, Scalar scalar, bool pinned) {
  const Memory before = r_.tape().in_memory(pinned ? Memory::pinned : Memory::host);
  Tensor t = r_.empty(sizes, scalar);
  r_.tape().in_memory(before);
  return t;
}

void Sharding::clip() {
  exchange();
  clip_gradients(r_);
  exchange();
}

void Sharding::step(Optimizer& optimizer) {
  exchange();
  const Memory before = r_.tape().in_memory(offloads() ? Memory::host : Memory::device);
  optimizer.step();
  r_.tape().in_memory(before);
  exchange();
}

void Sharding::zero_grad(Optimizer& optimizer, bool set_to_none) {
  exchange();
  optimizer.zero_grad(set_to_none);
  exchange();
}

}  // namespace shard::like::eager
