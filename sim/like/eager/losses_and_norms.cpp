// Softmax, norms, the loss, rows of tables.
#include "sim/like/eager/operators.h"

namespace shard::like::eager {

Tensor softmax(Runtime& r, const Tensor& given, Scalar wanted) {
  const Scalar result = r.autocast ? Scalar::f32 : wanted;
  // One kernel reads fp16 and writes fp32; bf16 is cast first.
  const Tensor x = given.scalar() == Scalar::bf16 ? to(r, given, result) : given;
  r.tape().begin_op("softmax");
  const Tensor input = r.contiguous(x);
  Tensor y = r.empty(x.sizes(), result);
  if (!recorded(r, {&x})) return y;
  r.graph().record(y, {r.graph().edge(x)}, [&r, y = y.saved(), from = x.scalar()](const Tensors& g) -> Tensors {
    r.tape().begin_op("softmax");
    const Tensor gradient = r.contiguous(g[0]);
    Tensor dx = r.empty(y.sizes(), from);
    const Tensor product = r.elementwise({gradient, y}, y.scalar());
    return {std::move(dx)};
  });
  return y;
}

Tensor layer_norm(Runtime& r, const Tensor& given, const Tensor& weight, const Tensor& bias) {
  const Tensor x = raised(r, given);
  r.tape().begin_op("layer_norm");
  const Tensor input = r.contiguous(x);
  Tensor y = r.empty(x.sizes(), x.scalar());
  const std::int64_t rows = x.elements() / x.sizes().back(0);
  const Tensor mean = r.empty({rows}, Scalar::f32), deviation = r.empty({rows}, Scalar::f32);
  if (!recorded(r, {&x, &weight, &bias})) return y;
  r.graph().record(y, {r.graph().edge(x), r.graph().edge(weight), bias ? r.graph().edge(bias) : Edge{}},
                   [&r, input = input.saved(), mean, deviation, weight = weight.saved(),
                    biased = static_cast<bool>(bias)](const Tensors& g) -> Tensors {
                     r.tape().begin_op("layer_norm");
                     const Tensor gradient = r.contiguous(g[0]);
                     Tensor dx = r.empty(input.sizes(), input.scalar());
                     Tensor dw = r.empty(weight.sizes(), weight.scalar());
                     Tensor db = biased ? r.empty(weight.sizes(), weight.scalar()) : Tensor{};
                     return {std::move(dx), std::move(dw), std::move(db)};
                   });
  return y;
}

Tensor rms_norm(Runtime& r, const Tensor& x, const Tensor& weight) {
  r.tape().begin_op("rms_norm");
  const Tensor input = r.contiguous(x);
  Tensor y = r.empty(x.sizes(), x.scalar());
  const Tensor deviation = r.empty({x.elements() / x.sizes().back(0)}, Scalar::f32);
  if (!recorded(r, {&x, &weight})) return y;
  r.graph().record(y, {r.graph().edge(x), r.graph().edge(weight)},
                   [&r, input = input.saved(), deviation, weight = weight.saved()](const Tensors& g) -> Tensors {
                     r.tape().begin_op("rms_norm");
                     const Tensor gradient = r.contiguous(g[0]);
                     Tensor dx = r.empty(input.sizes(), input.scalar());
                     Tensor dw = r.empty(weight.sizes(), weight.scalar());
                     return {std::move(dx), std::move(dw)};
                   });
  return y;
}

Tensor cross_entropy(Runtime& r, const Tensor& scores, const Tensor& targets) {
  r.tape().begin_op("log_softmax");
  Tensor logs = r.empty(scores.sizes(), scores.scalar());
  r.graph().record(logs, {r.graph().edge(scores)},
                   [&r, logs = logs.saved(), from = scores.scalar()](const Tensors&) -> Tensors {
                     r.tape().begin_op("log_softmax");
                     return {r.empty(logs.sizes(), from)};
                   });
  r.tape().begin_op("nll_loss");
  Tensor loss = r.empty({}, logs.scalar());
  const Tensor weight = r.empty({}, logs.scalar());
  r.graph().record(loss, {r.graph().edge(logs)},
                   [&r, logs = logs.saved(), targets = targets.saved(), weight](const Tensors&) -> Tensors {
                     r.tape().begin_op("nll_loss");
                     return {r.empty(logs.sizes(), logs.scalar())};
                   });
  return loss;
}

namespace {

/// embedding_backward_feature_kernel up to here, a sort above.
constexpr std::int64_t kUnsorted = 3072;

/// embedding_backward_cuda_kernel: pytorch-memory.md, section 5.
Tensor sorted_rows(Runtime& r, std::int64_t n, const Dims& table, Scalar scalar) {
  const auto numbers = [&](std::int64_t count) { return r.empty({count}, Scalar::i64); };
  const Tensor sorted = numbers(n), original = numbers(n);
  { const Tensor range = numbers(n); }
  Tensor dw = r.empty(table, scalar);
  return dw;
}

}  // namespace

Tensor embedding(Runtime& r, const Tensor& weight, const Tensor& ids) {
  r.tape().begin_op("embedding");
  Dims sizes = ids.sizes();
  sizes.push(weight.sizes()[1]);
  Tensor y = r.empty(sizes, weight.scalar());
  if (!recorded(r, {&weight})) return y;
  r.graph().record(
      y, {r.graph().edge(weight)},
      [&r, ids = ids.saved(), table = weight.sizes(), scalar = weight.scalar()](const Tensors& g) -> Tensors {
        r.tape().begin_op("embedding");
        const Tensor gradient = r.contiguous(g[0]);
        if (const std::int64_t n = ids.elements(); n > kUnsorted) return {sorted_rows(r, n, table, scalar)};
        return {r.empty(table, scalar)};
      });
  return y;
}

namespace {

/// index_put_with_sort_kernel: the linear index by way of its remainder, then the sort's four.
void sort_indices(Runtime& r, const Dims& sizes) {
  const auto numbers = [&] { return r.empty(sizes, Scalar::i64); };
  Tensor remainder = numbers();
  const Tensor linear = numbers();
  remainder = {};
  const Tensor sorted = numbers(), original = numbers(), range = numbers();
  const Tensor scratch = r.empty({1}, Scalar::boolean);
}

}  // namespace

Tensor index_rows(Runtime& r, const Tensor& weight, const Tensor& ids) {
  r.tape().begin_op("index");
  Dims sizes = ids.sizes();
  sizes.push(weight.sizes()[1]);
  Tensor y = r.empty(sizes, weight.scalar());
  if (!recorded(r, {&weight})) return y;
  r.graph().record(
      y, {r.graph().edge(weight)},
      [&r, ids = ids.saved(), table = weight.sizes(), scalar = weight.scalar()](const Tensors&) -> Tensors {
        r.tape().begin_op("index_put");
        Tensor dw = r.empty(table, scalar);
        sort_indices(r, ids.sizes());
        return {std::move(dw)};
      });
  return y;
}

Tensor index_one(Runtime& r, const Tensor& x, std::size_t dimension) {
  r.tape().begin_op("index");
  const Tensor index = r.empty({1}, Scalar::i64);
  Dims sizes = x.sizes();
  sizes[dimension] = 1;
  Tensor y = r.empty(sizes, x.scalar());
  if (!recorded(r, {&x})) return y;
  r.graph().record(y, {r.graph().edge(x)}, [&r, index = index.saved(), from = x.sizes()](const Tensors& g) -> Tensors {
    r.tape().begin_op("index_put");
    Tensor dx = r.empty(from, g[0].scalar());
    sort_indices(r, {1});
    return {std::move(dx)};
  });
  return y;
}

}  // namespace shard::like::eager
