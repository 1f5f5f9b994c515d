// Functions that are one kernel, and those that are written out.
#include "sim/like/eager/activations.h"

#include <algorithm>
#include <array>
#include <utility>

namespace shard::like::eager {
namespace {

Tensor gelu_kernel(Runtime& r, const Tensor& x) {
  return activation(r, x, "gelu", Kept::input);
}

Tensor silu_kernel(Runtime& r, const Tensor& x) {
  return activation(r, x, "silu", Kept::input);
}

Tensor relu_kernel(Runtime& r, const Tensor& x) {
  return activation(r, x, "relu", Kept::result);
}

Tensor tanh_kernel(Runtime& r, const Tensor& x) {
  return activation(r, x, "tanh", Kept::result);
}

Tensor sigmoid_kernel(Runtime& r, const Tensor& x) {
  return activation(r, x, "sigmoid", Kept::result);
}

/// 0.5 * x * (1 + tanh(x * 0.79788 * (1 + 0.044715 * x * x))).
Tensor fast_gelu(Runtime& r, const Tensor& x) {
  const Tensor half = mul_number(r, x);
  const Tensor scaled = mul_number(r, x);
  Tensor inner = mul_number(r, x);
  inner = mul(r, inner, x);
  inner = add_number(r, inner);
  inner = mul(r, scaled, inner);
  inner = activation(r, inner, "tanh", Kept::result);
  inner = add_number(r, inner);
  return mul(r, half, inner);
}

/// bloom_gelu_forward and bloom_gelu_back: a function of their own, which keeps its input alone.
Tensor bloom_gelu(Runtime& r, const Tensor& x) {
  const auto made = [&r](const Tensor& t) { return r.elementwise({t}, t.scalar()); };
  // tanh(0.79788456 * x * (1 + 0.044715 * x * x)).
  const auto tanh_of = [made](const Tensor& t) {
    Tensor scaled = made(t), inner = made(t);
    inner = made(inner);
    inner = made(inner);
    inner = made(inner);
    scaled = {};
    return made(inner);
  };
  r.tape().begin_op("gelu");
  Tensor y;
  {
    const Tensor half = made(x);
    Tensor inner = tanh_of(x);
    inner = made(inner);
    y = made(inner);
  }
  if (!recorded(r, {&x})) return y;
  r.graph().record(y, {r.graph().edge(x)}, [&r, made, tanh_of, x = x.saved()](const Tensors&) -> Tensors {
    r.tape().begin_op("gelu");
    const Tensor tanh = tanh_of(x);
    Tensor slope;
    {
      const Tensor half = made(x);
      Tensor first = made(tanh);
      first = made(first);
      Tensor second = made(x);
      second = made(second);
      second = made(second);
      first = made(std::exchange(first, {}));
      second = {};
      slope = made(first);
    }
    {
      Tensor last = made(tanh);
      last = made(last);
      slope = made(slope);
    }
    return {made(slope)};
  });
  return y;
}

struct ActivationRow {
  std::string_view word;
  Activation function;
};

constexpr std::array kActivations{
    ActivationRow{"gelu", gelu_kernel},       ActivationRow{"gelu_new", new_gelu},
    ActivationRow{"gelu_fast", fast_gelu},    ActivationRow{"gelu_pytorch_tanh", gelu_kernel},
    ActivationRow{"silu", silu_kernel},       ActivationRow{"swish", silu_kernel},
    ActivationRow{"relu", relu_kernel},       ActivationRow{"tanh", tanh_kernel},
    ActivationRow{"sigmoid", sigmoid_kernel}, ActivationRow{"bloom_gelu", bloom_gelu},
};

}  // namespace

Activation activation_function(std::string_view word) {
  const auto* found = std::find_if(kActivations.begin(), kActivations.end(),
                                   [&](const ActivationRow& row) { return row.word == word; });
  return found == kActivations.end() ? nullptr : found->function;
}

Tensor new_gelu(Runtime& r, const Tensor& x) {
  const Tensor half = mul_number(r, x);
  Tensor inner = pow_number(r, x);
  inner = mul_number(r, inner);
  inner = add(r, x, inner);
  inner = mul_number(r, inner);
  inner = activation(r, inner, "tanh", Kept::result);
  inner = add_number(r, inner);
  return mul(r, half, inner);
}

}  // namespace shard::like::eager
