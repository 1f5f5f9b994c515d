// The device's operators: what each launches on a stream. One source, compiled by nvcc and for the emulated device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "executor/cuda/api/api.h"
#include "executor/kernels/elements.h"
#include "executor/kernels/gradient_facts.h"
#include "executor/kernels/optimizer_math.h"
#include "executor/kernels/random_key.h"
#include "executor/kernels/shapes.h"
#include "executor/kernels/store.h"
#include "sim/ir/control_block.h"

namespace shard::cuda {

// Pointers are of the device. Every function enqueues on `stream` and returns; a launch that fails is told by
// Api::end_op. Formulas, layouts, what may be null and what may overlap are those of the function of the same name in
// executor/cpu/kernels, rounded once per stored element; sums go by fixed trees that only the shape decides, so the
// bits depend on nothing else.

// --- elementwise.cu
void add(Stream stream, std::int64_t n, ConstElements a, ConstElements b, Elements y);
void add_into(Stream stream, std::int64_t n, ConstElements src, Elements dst);
void convert_copy(Stream stream, std::int64_t n, ConstElements src, Elements dst);
void scale(Stream stream, std::int64_t n, float factor, ConstElements x, Elements y);

// --- activation.cu
void gelu_forward(Stream stream, std::int64_t n, ConstElements x, Elements y);
void gelu_backward(Stream stream, std::int64_t n, ConstElements x, ConstElements dy, Elements dx);
void swiglu_forward(Stream stream, std::int64_t n, ConstElements gate, ConstElements up, Elements y);
void swiglu_backward(Stream stream, std::int64_t n, ConstElements gate, ConstElements up, ConstElements dy,
                     Elements dgate, Elements dup);
void relu_forward(Stream stream, std::int64_t n, ConstElements x, Elements y);
void relu_backward(Stream stream, std::int64_t n, ConstElements x, ConstElements dy, Elements dx);
void gelu_erf_forward(Stream stream, std::int64_t n, ConstElements x, Elements y);
void gelu_erf_backward(Stream stream, std::int64_t n, ConstElements x, ConstElements dy, Elements dx);
void geglu_forward(Stream stream, std::int64_t n, ConstElements gate, ConstElements up, Elements y);
void geglu_backward(Stream stream, std::int64_t n, ConstElements gate, ConstElements up, ConstElements dy,
                    Elements dgate, Elements dup);
void swiglu_packed_forward(Stream stream, std::int64_t rows, std::int64_t columns, ConstElements x, Elements y);
void swiglu_packed_backward(Stream stream, std::int64_t rows, std::int64_t columns, ConstElements x, ConstElements dy,
                            Elements dx);

// --- norm.cu
void layer_norm_forward(Stream stream, const NormShape& shape, float epsilon, ConstElements x, ConstElements weight,
                        ConstElements bias, Elements y, float* mean, float* rstd);
void layer_norm_backward(Stream stream, const NormShape& shape, ConstElements x, ConstElements weight,
                         const float* mean, const float* rstd, ConstElements dy, Elements dx, Store dx_store,
                         Elements dweight, Elements dbias, Store parameter_store);
void rms_norm_forward(Stream stream, const NormShape& shape, float epsilon, ConstElements x, ConstElements weight,
                      Elements y, float* rstd);
void rms_norm_backward(Stream stream, const NormShape& shape, ConstElements x, ConstElements weight, const float* rstd,
                       ConstElements dy, Elements dx, Store dx_store, Elements dweight, Store parameter_store);
/// sum = a + b, rounded as it is stored, and the norm of that: the bits of add() and of the norm behind it. a and b are
/// read once.
void add_layer_norm_forward(Stream stream, const NormShape& shape, float epsilon, ConstElements a, ConstElements b,
                            ConstElements weight, ConstElements bias, Elements sum, Elements y, float* mean,
                            float* rstd);
void add_rms_norm_forward(Stream stream, const NormShape& shape, float epsilon, ConstElements a, ConstElements b,
                          ConstElements weight, Elements sum, Elements y, float* rstd);

// --- embedding.cu
void embedding_forward(Stream stream, const EmbeddingShape& shape, const std::int32_t* tokens, ConstElements table,
                       Elements y);
/// Rows that no token names are zeroed with Store::write.
void embedding_backward(Stream stream, const EmbeddingShape& shape, ConstElements dy, const std::int32_t* tokens,
                        Elements dtable, Store store);
void add_position_forward(Stream stream, const PositionShape& shape, ConstElements x, ConstElements table, Elements y);
void add_position_backward(Stream stream, const PositionShape& shape, ConstElements dy, Elements dtable, Store store);

// --- rotary.cu
void rotary_forward(Stream stream, const RotaryShape& shape, ConstElements x, Elements y);
void rotary_backward(Stream stream, const RotaryShape& shape, ConstElements dy, Elements dx);

void split_groups(Stream stream, const GroupShape& shape, ConstElements x, Elements y);
void join_groups(Stream stream, const GroupShape& shape, ConstElements x, Elements y);

// --- columns.cu
void join_columns(Stream stream, const ColumnParts& shape, ConstElements x, Elements y);
void take_columns(Stream stream, const ColumnParts& shape, std::int64_t part, ConstElements x, Elements y);
void add_bias(Stream stream, std::int64_t rows, std::int64_t columns, ConstElements bias, Elements y);
void bias_gradient(Stream stream, std::int64_t rows, std::int64_t columns, ConstElements dy, Elements dbias,
                   Store store);

// --- loss.cu. `loss_scale`: one fp32 value of the device that multiplies `scale`, or null.
void cross_entropy_forward(Stream stream, const CrossEntropyShape& shape, ConstElements logits,
                           const std::int32_t* targets, float* loss, float* lse);
void cross_entropy_backward(Stream stream, const CrossEntropyShape& shape, ConstElements logits,
                            const std::int32_t* targets, const float* lse, float scale, const float* loss_scale,
                            Elements dlogits);
void mse_forward(Stream stream, std::int64_t n, ConstElements prediction, ConstElements target, float* loss);
void mse_backward(Stream stream, std::int64_t n, ConstElements prediction, ConstElements target, float scale,
                  const float* loss_scale, Elements dprediction);
void vocabulary_statistics(Stream stream, const VocabularyPart& part, ConstElements logits, const std::int32_t* targets,
                           float* statistics);
void cross_entropy_from_statistics(Stream stream, std::int64_t ranks, std::int64_t rows, const float* statistics,
                                   float* loss, float* lse);
void cross_entropy_part_backward(Stream stream, const VocabularyPart& part, ConstElements logits,
                                 const std::int32_t* targets, const float* lse, float scale, const float* loss_scale,
                                 Elements dlogits);

/// What a mask is drawn from. The number of the micro-batch in the run is *step * micro_batches + micro_batch, with
/// *step read on the device: it is all of an op that changes from one step to the next.
struct MaskSource {
  std::uint64_t seed = 0;
  std::int32_t mask = 0;           ///< the operator's, Attributes::mask
  std::int64_t micro_batches = 1;  ///< M
  std::int64_t micro_batch = 0;    ///< of this op, in the step
};

// --- dropout.cu. y may be x.
void dropout(Stream stream, const MaskSource& source, const std::int64_t* step, float probability, std::int64_t n,
             ConstElements x, Elements y);

// --- attention.cu. Of `drop`, key is not read: `source` and `step` make it.
void attention_forward(Stream stream, const AttentionShape& shape, HeadsView q, HeadsView k, HeadsView v, HeadsOut y,
                       float* lse, const AttentionDropout& drop, const MaskSource& source, const std::int64_t* step);
/// `workspace`: attention_backward_workspace(shape) bytes.
void attention_backward(Stream stream, const AttentionShape& shape, HeadsView q, HeadsView k, HeadsView v,
                        const float* lse, HeadsView dy, HeadsOut dq, HeadsOut dk, HeadsOut dv, std::byte* workspace,
                        const AttentionDropout& drop, const MaskSource& source, const std::int64_t* step);

/// Where a step op finds what it goes by. All on the device.
struct StepState {
  const OptimizerScalars* scalars = nullptr;
  std::int32_t* count = nullptr;                ///< of the parameter: steps taken so far; goes up by one
  const plan::ControlBlock* control = nullptr;  ///< null: the step is not controlled
  float factor = 1.0F;                          ///< of the gradient
  bool decays = true;                           ///< false: weight decay is 0 for this parameter
};

// --- optimizer.cu. One parameter's elements [0, n). Moments and parameter are fp32. With a control that says skip,
// nothing changes, the count neither. Bits are those of executor/cpu/kernels/optimizer.h.
void adam(Stream stream, const StepState& state, std::int64_t n, ConstElements gradient, float* parameter,
          float* first_moment, float* second_moment);
void adamw(Stream stream, const StepState& state, std::int64_t n, ConstElements gradient, float* parameter,
           float* first_moment, float* second_moment);
void sgd(Stream stream, const StepState& state, std::int64_t n, ConstElements gradient, float* parameter);

// --- gradient_facts.cu. `facts` of the device is added to; integers only, so no order matters.
/// Squares of finite elements and what is not finite; element i has the key first_key + i.
void square_sum_add(Stream stream, std::int64_t n, ConstElements x, std::int64_t first_key, GradientFacts* facts);
/// What is not finite alone.
void nonfinite_add(Stream stream, std::int64_t n, ConstElements x, std::int64_t first_key, GradientFacts* facts);

// --- reduce.cu
/// Members of a group whose ranks share a device.
inline constexpr std::int32_t kMostMembers = 64;
/// The same elements of every member, by member.
struct MemberPointers {
  std::array<const std::byte*, kMostMembers> member{};
};
/// out [n] = sum over members of their n elements along the tree of executor/comm/communicator.h, every node rounded
/// to `dtype` (f32, f16, bf16, or i64 exactly). `out` may be one of the members'.
void tree_sum(Stream stream, std::int32_t members, const MemberPointers& in, std::int64_t n, Dtype dtype,
              std::byte* out);

/// *word = value, when the stream comes to it: how far a stream has got, in pinned memory.
void mark(Stream stream, std::int32_t* word, std::int32_t value);

/// All of the above. The program has the emulated device's; a module that nvcc compiled brings those of the GPU.
struct Kernels {
#define SHARD_KERNEL_ENTRY(name) decltype(&cuda::name) name
  SHARD_KERNEL_ENTRY(add);
  SHARD_KERNEL_ENTRY(add_into);
  SHARD_KERNEL_ENTRY(convert_copy);
  SHARD_KERNEL_ENTRY(gelu_forward);
  SHARD_KERNEL_ENTRY(gelu_backward);
  SHARD_KERNEL_ENTRY(swiglu_forward);
  SHARD_KERNEL_ENTRY(swiglu_backward);
  SHARD_KERNEL_ENTRY(scale);
  SHARD_KERNEL_ENTRY(relu_forward);
  SHARD_KERNEL_ENTRY(relu_backward);
  SHARD_KERNEL_ENTRY(gelu_erf_forward);
  SHARD_KERNEL_ENTRY(gelu_erf_backward);
  SHARD_KERNEL_ENTRY(geglu_forward);
  SHARD_KERNEL_ENTRY(geglu_backward);
  SHARD_KERNEL_ENTRY(swiglu_packed_forward);
  SHARD_KERNEL_ENTRY(swiglu_packed_backward);
  SHARD_KERNEL_ENTRY(layer_norm_forward);
  SHARD_KERNEL_ENTRY(layer_norm_backward);
  SHARD_KERNEL_ENTRY(rms_norm_forward);
  SHARD_KERNEL_ENTRY(rms_norm_backward);
  SHARD_KERNEL_ENTRY(add_layer_norm_forward);
  SHARD_KERNEL_ENTRY(add_rms_norm_forward);
  SHARD_KERNEL_ENTRY(embedding_forward);
  SHARD_KERNEL_ENTRY(embedding_backward);
  SHARD_KERNEL_ENTRY(add_position_forward);
  SHARD_KERNEL_ENTRY(add_position_backward);
  SHARD_KERNEL_ENTRY(rotary_forward);
  SHARD_KERNEL_ENTRY(rotary_backward);
  SHARD_KERNEL_ENTRY(split_groups);
  SHARD_KERNEL_ENTRY(join_groups);
  SHARD_KERNEL_ENTRY(join_columns);
  SHARD_KERNEL_ENTRY(take_columns);
  SHARD_KERNEL_ENTRY(add_bias);
  SHARD_KERNEL_ENTRY(bias_gradient);
  SHARD_KERNEL_ENTRY(cross_entropy_forward);
  SHARD_KERNEL_ENTRY(cross_entropy_backward);
  SHARD_KERNEL_ENTRY(mse_forward);
  SHARD_KERNEL_ENTRY(mse_backward);
  SHARD_KERNEL_ENTRY(vocabulary_statistics);
  SHARD_KERNEL_ENTRY(cross_entropy_from_statistics);
  SHARD_KERNEL_ENTRY(cross_entropy_part_backward);
  SHARD_KERNEL_ENTRY(dropout);
  SHARD_KERNEL_ENTRY(attention_forward);
  SHARD_KERNEL_ENTRY(attention_backward);
  SHARD_KERNEL_ENTRY(adam);
  SHARD_KERNEL_ENTRY(adamw);
  SHARD_KERNEL_ENTRY(sgd);
  SHARD_KERNEL_ENTRY(square_sum_add);
  SHARD_KERNEL_ENTRY(nonfinite_add);
  SHARD_KERNEL_ENTRY(tree_sum);
  SHARD_KERNEL_ENTRY(mark);
#undef SHARD_KERNEL_ENTRY
};

/// Of whatever compiled this: the emulated device's, or the GPU's.
[[nodiscard]] const Kernels& kernels();

}  // namespace shard::cuda
