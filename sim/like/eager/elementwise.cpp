// Operators that work element by element, and along the last dimension.
#include <algorithm>

#include "sim/like/eager/operators.h"

namespace shard::like::eager {
namespace {

/// Of a result in which the wider of two types holds.
Scalar wider(const Tensor& a, const Tensor& b) {
  return is_half(a.scalar()) ? b.scalar() : a.scalar();
}

std::uint32_t last_dimension(const Tensor& x) {
  return 1U << (x.sizes().rank - 1);
}

/// An operator of one input whose backward needs nothing but the gradient's size.
Tensor simple(Runtime& r, const Tensor& x, const char* name, Backward backward) {
  r.tape().begin_op(name);
  Tensor y = r.elementwise({x}, x.scalar());
  if (recorded(r, {&x})) r.graph().record(y, {r.graph().edge(x)}, std::move(backward));
  return y;
}

}  // namespace

Tensor add(Runtime& r, const Tensor& a, const Tensor& b) {
  r.tape().begin_op("add");
  Tensor y = r.elementwise({a, b}, wider(a, b));
  if (recorded(r, {&a, &b})) {
    r.graph().record(y, {r.graph().edge(a), r.graph().edge(b)}, [](const Tensors& g) -> Tensors {
      return {g[0], g[0]};
    });
  }
  return y;
}

Tensor add_into(Runtime& r, const Tensor& a, const Tensor& b) {
  Tensor y = a.view(a.sizes(), a.strides());
  if (recorded(r, {&a, &b})) {
    r.graph().record(y, {r.graph().edge(a), r.graph().edge(b)}, [](const Tensors& g) -> Tensors {
      return {g[0], g[0]};
    });
  }
  return y;
}

Tensor sub(Runtime& r, const Tensor& a, const Tensor& b) {
  r.tape().begin_op("sub");
  Tensor y = r.elementwise({a, b}, wider(a, b));
  if (recorded(r, {&a, &b})) {
    r.graph().record(y, {r.graph().edge(a), r.graph().edge(b)},
                     [&r, negative = b.needs_gradient()](const Tensors& g) -> Tensors {
                       r.tape().begin_op("neg");
                       return {g[0], negative ? r.elementwise({g[0]}, g[0].scalar()) : Tensor{}};
                     });
  }
  return y;
}

Tensor mul(Runtime& r, const Tensor& a, const Tensor& b) {
  r.tape().begin_op("mul");
  Tensor y = r.elementwise({a, b}, wider(a, b));
  if (!recorded(r, {&a, &b})) return y;
  const Tensor keep_a = b.needs_gradient() ? a.saved() : Tensor{};
  const Tensor keep_b = a.needs_gradient() ? b.saved() : Tensor{};
  r.graph().record(y, {r.graph().edge(a), r.graph().edge(b)}, [&r, keep_a, keep_b](const Tensors& g) -> Tensors {
    r.tape().begin_op("mul");
    Tensor to_b, to_a;
    if (keep_a) to_b = r.elementwise({g[0], keep_a}, wider(g[0], keep_a));
    if (keep_b) to_a = r.elementwise({g[0], keep_b}, wider(g[0], keep_b));
    return {std::move(to_a), std::move(to_b)};
  });
  return y;
}

Tensor div(Runtime& r, const Tensor& a, const Tensor& b) {
  r.tape().begin_op("div");
  Tensor y = r.elementwise({a, b}, wider(a, b));
  if (!recorded(r, {&a, &b})) return y;
  r.graph().record(y, {r.graph().edge(a), r.graph().edge(b)},
                   [&r, a = a.saved(), b = b.saved(), both = b.needs_gradient()](const Tensors& g) -> Tensors {
                     r.tape().begin_op("div");
                     Tensor to_b;
                     if (both) {
                       const Tensor once = r.elementwise({a, b}, a.scalar());
                       const Tensor twice = r.elementwise({once, b}, a.scalar());
                       const Tensor negative = r.elementwise({g[0]}, g[0].scalar());
                       to_b = r.elementwise({negative, twice}, g[0].scalar());
                     }
                     Tensor to_a = r.elementwise({g[0], b}, g[0].scalar());
                     return {std::move(to_a), std::move(to_b)};
                   });
  return y;
}

Tensor add_number(Runtime& r, const Tensor& x) {
  return simple(r, x, "add", [](const Tensors& g) -> Tensors { return {g[0]}; });
}

Tensor mul_number(Runtime& r, const Tensor& x) {
  return simple(r, x, "mul", [&r](const Tensors& g) -> Tensors {
    r.tape().begin_op("mul");
    return {r.elementwise({g[0]}, g[0].scalar())};
  });
}

Tensor div_number(Runtime& r, const Tensor& x) {
  return simple(r, x, "div", [&r](const Tensors& g) -> Tensors {
    r.tape().begin_op("div");
    return {r.elementwise({g[0]}, g[0].scalar())};
  });
}

Tensor neg(Runtime& r, const Tensor& x) {
  return simple(r, x, "neg", [&r](const Tensors& g) -> Tensors {
    r.tape().begin_op("neg");
    return {r.elementwise({g[0]}, g[0].scalar())};
  });
}

Tensor pow_number(Runtime& r, const Tensor& given) {
  const Tensor x = raised(r, given);
  return simple(r, x, "pow", [&r, x = x.saved()](const Tensors& g) -> Tensors {
    r.tape().begin_op("pow");
    const Tensor lower = r.elementwise({x}, x.scalar());
    const Tensor slope = r.elementwise({lower}, x.scalar());
    return {r.elementwise({g[0], slope}, g[0].scalar())};
  });
}

Tensor rsqrt(Runtime& r, const Tensor& given) {
  const Tensor x = raised(r, given);
  r.tape().begin_op("rsqrt");
  Tensor y = r.elementwise({x}, x.scalar());
  if (!recorded(r, {&x})) return y;
  r.graph().record(y, {r.graph().edge(x)}, [&r, y = y.saved()](const Tensors& g) -> Tensors {
    r.tape().begin_op("rsqrt");
    const Tensor cubed = r.elementwise({y}, y.scalar());
    const Tensor halved = r.elementwise({g[0]}, g[0].scalar());
    return {r.elementwise({halved, cubed}, g[0].scalar())};
  });
  return y;
}

Tensor exp(Runtime& r, const Tensor& x) {
  return activation(r, raised(r, x), "exp", Kept::result);
}

Tensor activation(Runtime& r, const Tensor& x, const char* name, Kept kept) {
  r.tape().begin_op(name);
  Tensor y = r.elementwise({x}, x.scalar());
  if (!recorded(r, {&x})) return y;
  r.graph().record(y, {r.graph().edge(x)},
                   [&r, name, saved = (kept == Kept::input ? x : y).saved()](const Tensors& g) -> Tensors {
                     r.tape().begin_op(name);
                     return {r.elementwise({g[0], saved}, g[0].scalar())};
                   });
  return y;
}

Tensor where_number(Runtime& r, const Tensor& mask, const Tensor& x) {
  const auto where = [&r](const Tensor& by, const Tensor& value) {
    r.tape().begin_op("where");
    const Tensor number = r.empty({}, value.scalar());
    return r.elementwise({by, value}, value.scalar());
  };
  Tensor y = where(mask, x);
  if (recorded(r, {&x})) {
    r.graph().record(y, {r.graph().edge(x)},
                     [where, mask = mask.saved()](const Tensors& g) -> Tensors { return {where(mask, g[0])}; });
  }
  return y;
}

Tensor where(Runtime& r, const Tensor& mask, const Tensor& x, const Tensor& other) {
  r.tape().begin_op("where");
  Tensor y = r.elementwise({x}, other.scalar());
  if (recorded(r, {&x})) {
    r.graph().record(y, {r.graph().edge(x)}, [&r, mask = mask.saved()](const Tensors& g) -> Tensors {
      r.tape().begin_op("where");
      const Tensor number = r.empty({}, g[0].scalar());
      return {r.elementwise({g[0]}, g[0].scalar())};
    });
  }
  return y;
}

Tensor masked_fill(Runtime& r, const Tensor& x, const Tensor& mask) {
  r.tape().begin_op("masked_fill");
  Tensor y = r.clone(x);
  if (recorded(r, {&x})) {
    r.graph().record(y, {r.graph().edge(x)}, [&r, mask = mask.saved()](const Tensors& g) -> Tensors {
      r.tape().begin_op("masked_fill");
      return {r.clone(g[0])};
    });
  }
  return y;
}

Tensor dropout(Runtime& r, const Tensor& x, float probability) {
  if (probability == 0) return x;
  r.tape().begin_op("native_dropout");
  const Tensor mask = r.elementwise({x}, Scalar::boolean);
  Tensor y = r.elementwise({x}, x.scalar());
  if (recorded(r, {&x})) {
    r.graph().record(y, {r.graph().edge(x)}, [&r, mask = mask.saved()](const Tensors& g) -> Tensors {
      r.tape().begin_op("native_dropout");
      return {r.elementwise({g[0], mask}, g[0].scalar())};
    });
  }
  return y;
}

Tensor mean_last(Runtime& r, const Tensor& x) {
  r.tape().begin_op("mean");
  Tensor y = r.reduce(x, last_dimension(x), x.scalar());
  if (recorded(r, {&x})) {
    r.graph().record(y, {r.graph().edge(x)}, [&r, sizes = x.sizes()](const Tensors& g) -> Tensors {
      r.tape().begin_op("mean");
      const Tensor wide = expanded(g[0], sizes);
      return {r.elementwise({wide}, g[0].scalar())};
    });
  }
  return y;
}

Tensor sum_last(Runtime& r, const Tensor& x) {
  r.tape().begin_op("sum");
  Tensor y = r.reduce(x, last_dimension(x), x.scalar());
  if (recorded(r, {&x})) {
    r.graph().record(y, {r.graph().edge(x)},
                     [sizes = x.sizes()](const Tensors& g) -> Tensors { return {expanded(g[0], sizes)}; });
  }
  return y;
}

Tensor max_last(Runtime& r, const Tensor& x) {
  r.tape().begin_op("max");
  Tensor y = r.reduce(x, last_dimension(x), x.scalar());
  const Tensor indices = r.empty(y.sizes(), Scalar::i64);
  if (recorded(r, {&x})) {
    r.graph().record(y, {r.graph().edge(x)},
                     [&r, indices = indices.saved(), sizes = x.sizes()](const Tensors& g) -> Tensors {
                       r.tape().begin_op("max");
                       return {r.empty(sizes, g[0].scalar())};
                     });
  }
  return y;
}

}  // namespace shard::like::eager
