// The table of all operators, of whatever compiled this.
#include "executor/cuda/kernels/kernels.h"

namespace shard::cuda {

const Kernels& kernels() {
  static constexpr Kernels kTable{
      .add = &add,
      .add_into = &add_into,
      .convert_copy = &convert_copy,
      .gelu_forward = &gelu_forward,
      .gelu_backward = &gelu_backward,
      .swiglu_forward = &swiglu_forward,
      .swiglu_backward = &swiglu_backward,
      .scale = &scale,
      .relu_forward = &relu_forward,
      .relu_backward = &relu_backward,
      .gelu_erf_forward = &gelu_erf_forward,
      .gelu_erf_backward = &gelu_erf_backward,
      .geglu_forward = &geglu_forward,
      .geglu_backward = &geglu_backward,
      .swiglu_packed_forward = &swiglu_packed_forward,
      .swiglu_packed_backward = &swiglu_packed_backward,
      .layer_norm_forward = &layer_norm_forward,
      .layer_norm_backward = &layer_norm_backward,
      .rms_norm_forward = &rms_norm_forward,
      .rms_norm_backward = &rms_norm_backward,
      .add_layer_norm_forward = &add_layer_norm_forward,
      .add_rms_norm_forward = &add_rms_norm_forward,
      .embedding_forward = &embedding_forward,
      .embedding_backward = &embedding_backward,
      .add_position_forward = &add_position_forward,
      .add_position_backward = &add_position_backward,
      .rotary_forward = &rotary_forward,
      .rotary_backward = &rotary_backward,
      .split_groups = &split_groups,
      .join_groups = &join_groups,
      .join_columns = &join_columns,
      .take_columns = &take_columns,
      .add_bias = &add_bias,
      .bias_gradient = &bias_gradient,
      .cross_entropy_forward = &cross_entropy_forward,
      .cross_entropy_backward = &cross_entropy_backward,
      .mse_forward = &mse_forward,
      .mse_backward = &mse_backward,
      .vocabulary_statistics = &vocabulary_statistics,
      .cross_entropy_from_statistics = &cross_entropy_from_statistics,
      .cross_entropy_part_backward = &cross_entropy_part_backward,
      .dropout = &dropout,
      .attention_forward = &attention_forward,
      .attention_backward = &attention_backward,
      .adam = &adam,
      .adamw = &adamw,
      .sgd = &sgd,
      .square_sum_add = &square_sum_add,
      .nonfinite_add = &nonfinite_add,
      .tree_sum = &tree_sum,
      .mark = &mark,
  };
  return kTable;
}

}  // namespace shard::cuda
