// What a run is, in the terms that a prediction needs: model, framework, precision, batch, machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/cluster/cluster.h"
#include "sim/validate/published_run.h"
#include "traces/base/result.h"
#include "traces/base/units.h"

namespace shard::validate {

/// Whose rules of memory a run follows.
enum class Framework : std::uint8_t {
  fsdp2,       ///< PyTorch's fully_shard (torchtitan), eager or with compiled blocks
  graph_fsdp,  ///< torchtitan's whole-graph compilers (SimpleFSDP)
  fsdp1,       ///< FullyShardedDataParallel (Composer, Accelerate, Lightning, llama-recipes)
  deepspeed,   ///< ZeRO stages 1 to 3
  megatron,    ///< Megatron-LM and Megatron Core: tensor and sequence parallelism, distributed optimizer
  colossal,    ///< Colossal-AI's LowLevelZero
  gemini,      ///< Colossal-AI's Gemini and PatrickStar: chunks
  single,      ///< one rank, or plain data parallelism of PyTorch
};
[[nodiscard]] const char* to_string(Framework framework);

enum class Recompute : std::uint8_t {
  none,
  block,                ///< all of a block from its input
  every_other_block,    ///< one block of two
  every_other_product,  ///< torchtitan's policy: results of every second product and of attention are kept
  attention,            ///< Korthikanti et al.: scores, softmax and dropout of attention are made again
};

enum class Loss : std::uint8_t {
  eager,     ///< logits cast to fp32, log-softmax, its gradient: 12 bytes a logit at once
  one_pass,  ///< one kernel over 16-bit logits, their gradient beside them: compiled, or flash-attention's
  chunked,   ///< by pieces of the tokens
  fused,     ///< Megatron's vocabulary-parallel kernel: fp32 probabilities in place
};

/// What weights, gradients and optimizer states take, and what is summed.
enum class Precision : std::uint8_t {
  fp32,
  master_shards,   ///< fp32 shards, 16-bit copies where they are used (FSDP's mixed precision)
  beside_masters,  ///< 16-bit weights and gradients, fp32 masters and moments (DeepSpeed, Apex)
  fp32_gradients,  ///< 16-bit weights, fp32 gradients, masters and moments (Megatron)
  all_16_bit,      ///< no masters: weights, gradients and moments in 16 bits
};

enum class Float8 : std::uint8_t { none, inputs_kept, gathered };

struct Architecture {
  std::string name;
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, ffn = 0, vocab = 0, sequence = 0;
  bool gated = false;  ///< SwiGLU: three products in the feed-forward part
  bool biases = false;
  bool tied = false;        ///< the embedding's weights are the head's
  bool positions = false;   ///< learned positions
  bool layer_norm = false;  ///< otherwise RMS norm
  bool head_norms = false;  ///< queries and keys are normalised (Qwen3)
  [[nodiscard]] std::int64_t head_size() const { return heads > 0 ? hidden / heads : 0; }
  std::int64_t head_dim = 0;  ///< 0: hidden / heads
  [[nodiscard]] std::int64_t query_width() const { return head_dim > 0 ? head_dim * heads : hidden; }
  [[nodiscard]] std::int64_t kv_width() const { return (head_dim > 0 ? head_dim : head_size()) * kv_heads; }
  [[nodiscard]] std::int64_t block_parameters() const;
  [[nodiscard]] std::int64_t embedding_parameters() const { return vocab * hidden; }
  [[nodiscard]] std::int64_t parameters() const;
};

struct RunDescription {
  Architecture model;
  Framework framework = Framework::single;
  std::int32_t year = 0, month = 0;  ///< of the run, as far as it is known: which rules of a framework held
  std::int64_t ranks = 1, shard_degree = 1, tensor = 1, pipeline = 1, context = 1;
  std::int32_t stage = 0;
  bool reshard_after_forward = true;
  bool sequence_parallel = false;
  std::int64_t micro_batch = 1, accumulation = 1;
  Precision precision = Precision::fp32;
  bool fp16 = false;
  bool autocast = false;  ///< casts are autocast's, per operator
  Float8 float8 = Float8::none;
  Recompute recompute = Recompute::none;
  bool compiled = false;  ///< blocks are compiled
  bool flash = true;
  Loss loss = Loss::eager;
  bool foreach_optimizer = false;  ///< one set of temporaries in the step
  bool eight_bit_optimizer = false;
  bool step_in_backward = false;  ///< no gradients are kept
  bool offload_parameters = false, offload_optimizer = false, offload_activations = false;
  bool trains_all = true;       ///< false: adapters of low rank alone
  bool adapters_apart = false;  ///< adapters are units of their own; otherwise they share flat parameters
  bool quantised = false;       ///< frozen weights in 4 bits
  bool expandable_segments = false;
  std::optional<Bytes> device_memory;
  std::optional<cluster::Card> card;
  std::string machine;        ///< an example cluster's name; empty: none is alike
  bool extrapolated = false;  ///< something that matters had to be assumed: `assumed`
  std::string assumed;
};

/// From the words of a row's columns; never from who published it or what the row is called. Errors: contradiction
/// with the reason why there is no model for such a run.
[[nodiscard]] Result<RunDescription> describe(const PublishedRun& run);

}  // namespace shard::validate
