// Which kernels the blocks of somebody's code run where the arithmetic leaves a choice: a row for each code.
#pragma once

#include "sim/step/training_step.h"

namespace shard::step {

enum class Norm : std::uint8_t {
  one_kernel,
  layer_norm,   ///< PyTorch's, whose backward has two kernels
  rms_norm,     ///< the same of PyTorch's kernel for nn.RMSNorm
  in_fp32,      ///< of a copy in fp32
  written_out,  ///< square, mean, add, rsqrt, two products and two casts
};

struct CodeStyle {
  Norm norm = Norm::written_out;
  bool one_product_for_qkv = false;  ///< whose gradients are put together in backward
  bool one_product_for_gates = false;
  bool rotary_in_one_kernel = false;
  bool activation_in_one_kernel = false;
  bool repeats_keys = false;        ///< writes keys and values out for each head that shares them
  bool takes_padding_out = false;   ///< gathers the rows of q, k, v before attention, scatters its result
  bool residuals_in_norms = false;  ///< compiled: added where they are read
  /// Passes over a block's input that add the gradients of several uses up.
  double gradient_sums = 1;
  bool accumulates_in_products = false;  ///< weight gradients in fp32, by the product
  bool metrics = false;                  ///< computed from the scores in every step
};

[[nodiscard]] CodeStyle style_of(const TrainingStep& step);

}  // namespace shard::step
