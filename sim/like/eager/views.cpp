// Views, copies, casts.
#include <algorithm>
#include <numeric>

#include "sim/like/eager/operators.h"

namespace shard::like::eager {

bool recorded(const Runtime& r, std::initializer_list<const Tensor*> inputs) {
  return r.gradients_wanted &&
         std::any_of(inputs.begin(), inputs.end(), [](const Tensor* x) { return *x && x->needs_gradient(); });
}

namespace {

/// A view's gradient is a view of the gradient of the same size.
Tensor viewed(Runtime& r, const Tensor& x, Tensor view, Backward backward) {
  if (recorded(r, {&x})) r.graph().record(view, {r.graph().edge(x)}, std::move(backward));
  return view;
}

}  // namespace

Tensor reshape(Runtime& r, const Tensor& x, const Dims& sizes) {
  r.tape().begin_op("clone");
  return viewed(r, x, r.reshape(x, sizes), [&r, from = x.sizes()](const Tensors& g) -> Tensors {
    r.tape().begin_op("clone");
    return {r.reshape(g[0], from)};
  });
}

Tensor transpose(Runtime& r, const Tensor& x, std::size_t a, std::size_t b) {
  return viewed(r, x, transposed(x, a, b), [a, b](const Tensors& g) -> Tensors { return {transposed(g[0], a, b)}; });
}

Tensor permute(Runtime& r, const Tensor& x, const std::vector<std::size_t>& order) {
  const auto permuted = [](const Tensor& t, const std::vector<std::size_t>& by) {
    Dims sizes = t.sizes(), strides = t.strides();
    for (std::size_t i = 0; i < by.size(); ++i) {
      sizes[i] = t.sizes()[by[i]];
      strides[i] = t.strides()[by[i]];
    }
    return t.view(sizes, strides);
  };
  std::vector<std::size_t> back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) back[order[i]] = i;
  return viewed(r, x, permuted(x, order),
                [permuted, back](const Tensors& g) -> Tensors { return {permuted(g[0], back)}; });
}

Tensor expand(Runtime& r, const Tensor& x, const Dims& sizes) {
  // The engine sums to the input's size.
  return viewed(r, x, expanded(x, sizes), [](const Tensors& g) -> Tensors { return {g[0]}; });
}

Tensor slice(Runtime& r, const Tensor& x, std::size_t dimension, std::int64_t elements) {
  Dims sizes = x.sizes();
  sizes[dimension] = elements;
  return viewed(r, x, x.view(sizes, x.strides()), [&r, from = x.sizes()](const Tensors& g) -> Tensors {
    if (g[0].sizes() == from) return {g[0]};
    r.tape().begin_op("slice_backward");
    return {r.empty(from, g[0].scalar())};
  });
}

Tensor every_other(Runtime& r, const Tensor& x) {
  Dims sizes = x.sizes(), strides = x.strides();
  sizes[sizes.rank - 1] /= 2;
  strides[strides.rank - 1] *= 2;
  return viewed(r, x, x.view(sizes, strides), [&r, from = x.sizes()](const Tensors& g) -> Tensors {
    r.tape().begin_op("slice_backward");
    return {r.empty(from, g[0].scalar())};
  });
}

Tensor select(Runtime& r, const Tensor& x, std::size_t dimension) {
  Dims sizes, strides;
  for (std::size_t i = 0; i < x.sizes().rank; ++i) {
    if (i == dimension) continue;
    sizes.push(x.sizes()[i]);
    strides.push(x.strides()[i]);
  }
  return viewed(r, x, x.view(sizes, strides), [&r, from = x.sizes()](const Tensors& g) -> Tensors {
    r.tape().begin_op("select_backward");
    return {r.empty(from, g[0].scalar())};
  });
}

Tensor stack_last(Runtime& r, const Tensor& a, const Tensor& b) {
  r.tape().begin_op("stack");
  Dims sizes = a.sizes();
  sizes.push(2);
  Tensor y = r.empty(sizes, a.scalar());
  if (!recorded(r, {&a, &b})) return y;
  r.graph().record(y, {r.graph().edge(a), r.graph().edge(b)}, [](const Tensors& g) -> Tensors {
    Dims of_one, strides;
    for (std::size_t i = 0; i + 1 < g[0].sizes().rank; ++i) {
      of_one.push(g[0].sizes()[i]);
      strides.push(g[0].strides()[i]);
    }
    return {g[0].view(of_one, strides), g[0].view(of_one, strides)};
  });
  return y;
}

Tensors unbind_first(Runtime& r, const Tensor& x) {
  Dims sizes, strides;
  for (std::size_t i = 1; i < x.sizes().rank; ++i) {
    sizes.push(x.sizes()[i]);
    strides.push(x.strides()[i]);
  }
  Tensors parts;
  for (std::int64_t i = 0; i < x.sizes()[0]; ++i) parts.push_back(x.view(sizes, strides));
  if (!recorded(r, {&x})) return parts;
  std::vector<Tensor*> outputs;
  for (Tensor& part : parts) outputs.push_back(&part);
  r.graph().record(outputs, {r.graph().edge(x)}, [&r, from = x.sizes()](const Tensors& g) -> Tensors {
    r.tape().begin_op("stack");
    return {r.empty(from, g[0].scalar())};
  });
  return parts;
}

Tensors split_last(Runtime& r, const Tensor& x, std::int64_t parts) {
  return split_last(r, x, std::vector<std::int64_t>(static_cast<std::size_t>(parts), x.sizes().back(0) / parts));
}

Tensors split_last(Runtime& r, const Tensor& x, const std::vector<std::int64_t>& parts) {
  Dims sizes = x.sizes();
  Tensors result;
  for (const std::int64_t part : parts) {
    sizes[sizes.rank - 1] = part;
    result.push_back(x.view(sizes, x.strides()));
  }
  if (!recorded(r, {&x})) return result;
  std::vector<Tensor*> outputs;
  for (Tensor& part : result) outputs.push_back(&part);
  r.graph().record(outputs, {r.graph().edge(x)}, [&r, from = x.sizes()](const Tensors& g) -> Tensors {
    r.tape().begin_op("cat");
    return {r.empty(from, g[0].scalar())};
  });
  return result;
}

Tensor contiguous(Runtime& r, const Tensor& x) {
  if (x.is_contiguous()) return x;
  r.tape().begin_op("clone");
  Tensor copy = r.contiguous(x);
  if (recorded(r, {&x}))
    r.graph().record(copy, {r.graph().edge(x)}, [](const Tensors& g) -> Tensors { return {g[0]}; });
  return copy;
}

Tensor cat(Runtime& r, const Tensors& parts, std::size_t dimension, std::optional<Scalar> scalar) {
  r.tape().begin_op("cat");
  Dims sizes = parts[0].sizes();
  sizes[dimension] = 0;
  for (const Tensor& part : parts) sizes[dimension] += part.sizes()[dimension];
  Tensor result = r.empty(sizes, scalar.value_or(parts[0].scalar()));
  std::vector<Edge> edges;
  std::vector<Dims> shapes;
  bool wanted = false;
  for (const Tensor& part : parts) {
    wanted = wanted || recorded(r, {&part});
    edges.push_back(r.graph().edge(part));
    shapes.push_back(part.sizes());
  }
  if (!wanted) return result;
  r.graph().record(result, std::move(edges), [shapes](const Tensors& g) -> Tensors {
    Tensors narrow;
    for (const Dims& shape : shapes) narrow.push_back(g[0].view(shape, g[0].strides()));
    return narrow;
  });
  return result;
}

Tensor to(Runtime& r, const Tensor& x, Scalar scalar) {
  if (x.scalar() == scalar) return x;
  r.tape().begin_op("to");
  Tensor copy = r.clone(x, scalar);
  if (recorded(r, {&x})) {
    r.graph().record(copy, {r.graph().edge(x)}, [&r, from = x.scalar()](const Tensors& g) -> Tensors {
      r.tape().begin_op("to");
      return {r.clone(g[0], from)};
    });
  }
  return copy;
}

}  // namespace shard::like::eager
