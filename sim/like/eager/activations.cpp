// Functions that are one kernel, and those that are written out.
#include "sim/like/eager/activations.h"

#include <algorithm>
#include <array>

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

struct ActivationRow {
  std::string_view word;
  Activation function;
};

constexpr std::array kActivations{
    ActivationRow{"gelu", gelu_kernel},       ActivationRow{"gelu_new", new_gelu},
    ActivationRow{"gelu_fast", fast_gelu},    ActivationRow{"gelu_pytorch_tanh", gelu_kernel},
    ActivationRow{"silu", silu_kernel},       ActivationRow{"swish", silu_kernel},
    ActivationRow{"relu", relu_kernel},       ActivationRow{"tanh", tanh_kernel},
    ActivationRow{"sigmoid", sigmoid_kernel},
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
