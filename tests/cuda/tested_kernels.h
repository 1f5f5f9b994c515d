// The device's operators under their own names, as tests call them: those of the device that is tested.
#pragma once

#include "tests/cuda/tested_device.h"

namespace shard::cuda::test {

/// A member of the table as a function of its own, with the parameters that it has.
template <auto Entry, class F>
struct Tested;
template <auto Entry, class... P>
struct Tested<Entry, void (*)(P...)> {
  void operator()(P... arguments) const { (tested_kernels().*Entry)(arguments...); }
};

#define SHARD_TESTED(name) \
  inline constexpr Tested<&Kernels::name, decltype(Kernels::name)> name {}
SHARD_TESTED(add);
SHARD_TESTED(add_into);
SHARD_TESTED(convert_copy);
SHARD_TESTED(gelu_forward);
SHARD_TESTED(gelu_backward);
SHARD_TESTED(swiglu_forward);
SHARD_TESTED(swiglu_backward);
SHARD_TESTED(scale);
SHARD_TESTED(relu_forward);
SHARD_TESTED(relu_backward);
SHARD_TESTED(gelu_erf_forward);
SHARD_TESTED(gelu_erf_backward);
SHARD_TESTED(geglu_forward);
SHARD_TESTED(geglu_backward);
SHARD_TESTED(swiglu_packed_forward);
SHARD_TESTED(swiglu_packed_backward);
SHARD_TESTED(layer_norm_forward);
SHARD_TESTED(layer_norm_backward);
SHARD_TESTED(rms_norm_forward);
SHARD_TESTED(rms_norm_backward);
SHARD_TESTED(add_layer_norm_forward);
SHARD_TESTED(add_rms_norm_forward);
SHARD_TESTED(embedding_forward);
SHARD_TESTED(embedding_backward);
SHARD_TESTED(add_position_forward);
SHARD_TESTED(add_position_backward);
SHARD_TESTED(rotary_forward);
SHARD_TESTED(rotary_backward);
SHARD_TESTED(split_groups);
SHARD_TESTED(join_groups);
SHARD_TESTED(join_columns);
SHARD_TESTED(take_columns);
SHARD_TESTED(add_bias);
SHARD_TESTED(bias_gradient);
SHARD_TESTED(cross_entropy_forward);
SHARD_TESTED(cross_entropy_backward);
SHARD_TESTED(mse_forward);
SHARD_TESTED(mse_backward);
SHARD_TESTED(vocabulary_statistics);
SHARD_TESTED(cross_entropy_from_statistics);
SHARD_TESTED(cross_entropy_part_backward);
SHARD_TESTED(dropout);
SHARD_TESTED(attention_forward);
SHARD_TESTED(attention_backward);
SHARD_TESTED(adam);
SHARD_TESTED(adamw);
SHARD_TESTED(sgd);
SHARD_TESTED(square_sum_add);
SHARD_TESTED(nonfinite_add);
SHARD_TESTED(tree_sum);
SHARD_TESTED(mark);
#undef SHARD_TESTED
static_assert(sizeof(Kernels) == 51 * sizeof(void (*)()), "a kernel is called by its name here too");

}  // namespace shard::cuda::test
