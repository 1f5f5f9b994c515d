// Functions that are one kernel, and those that are written out.
#include "sim/like/eager/activations.h"

#include <algorithm>
#include <array>
#include <utility>

namespace shard::like::eager {
namespace {

constexpr char kGelu[] = "gelu", kSilu[] = "silu", kRelu[] = "relu", kRelu6[] = "relu6", kLeakyRelu[] = "leaky_relu",
               kHardswish[] = "hardswish", kMish[] = "mish", kTanh[] = "tanh", kSigmoid[] = "sigmoid";

/// One kernel, whose backward reads what it read.
template <const char* kName>
Tensor of_input(Runtime& r, const Tensor& x) {
  return activation(r, x, kName, Kept::input);
}

/// One kernel, whose backward reads what it made.
template <const char* kName>
Tensor of_result(Runtime& r, const Tensor& x) {
  return activation(r, x, kName, Kept::result);
}

Tensor itself(Runtime&, const Tensor& x) {
  return x;
}

/// x * sigmoid(1.702 * x).
Tensor quick_gelu(Runtime& r, const Tensor& x) {
  const Tensor share = activation(r, mul_number(r, x), "sigmoid", Kept::result);
  return mul(r, x, share);
}

Tensor squared_relu(Runtime& r, const Tensor& x) {
  const Tensor positive = activation(r, x, "relu", Kept::result);
  return pow_number(r, positive);
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
    ActivationRow{"gelu", of_input<kGelu>},
    ActivationRow{"gelu_pytorch_tanh", of_input<kGelu>},
    ActivationRow{"gelu_new", new_gelu},
    ActivationRow{"gelu_accurate", new_gelu},
    ActivationRow{"gelu_fast", fast_gelu},
    ActivationRow{"quick_gelu", quick_gelu},
    ActivationRow{"bloom_gelu", bloom_gelu},
    ActivationRow{"silu", of_input<kSilu>},
    ActivationRow{"swish", of_input<kSilu>},
    ActivationRow{"relu", of_result<kRelu>},
    ActivationRow{"relu2", squared_relu},
    ActivationRow{"relu6", of_input<kRelu6>},
    ActivationRow{"leaky_relu", of_input<kLeakyRelu>},
    ActivationRow{"hardswish", of_input<kHardswish>},
    ActivationRow{"mish", of_input<kMish>},
    ActivationRow{"tanh", of_result<kTanh>},
    ActivationRow{"sigmoid", of_result<kSigmoid>},
    ActivationRow{"linear", itself},
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
