// torch.autocast: which operators cast their operands, and which copies are kept (aten/src/ATen/autocast_mode.cpp).
#include "sim/like/eager/operators.h"

namespace shard::like::eager {

Tensor lowered(Runtime& r, const Tensor& x) {
  if (!r.autocast || !x || x.scalar() != Scalar::f32) return x;
  if (x.parameter() < 0) return to(r, x, *r.autocast);
  Tensor& kept = r.kept_casts()[static_cast<std::size_t>(x.parameter())];
  if (!kept) kept = to(r, x, *r.autocast);
  return kept;
}

Tensor raised(Runtime& r, const Tensor& x) {
  return r.autocast ? to(r, x, Scalar::f32) : x;
}

}  // namespace shard::like::eager
