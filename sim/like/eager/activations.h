// Activation functions of transformers by the word that a config.json has for them (activations.py, ACT2FN).
#pragma once

#include <string_view>

#include "sim/like/eager/operators.h"

namespace shard::like::eager {

/// What its forward() allocates, keeps and makes in backward; none where it is not known.
using Activation = Tensor (*)(Runtime&, const Tensor&);
[[nodiscard]] Activation activation_function(std::string_view word);

/// 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * pow(x, 3)))), as NewGELUActivation writes it.
[[nodiscard]] Tensor new_gelu(Runtime& r, const Tensor& x);

}  // namespace shard::like::eager
