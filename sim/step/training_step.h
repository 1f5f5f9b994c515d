// A training step of somebody's framework, told by what decides its time: the model, how it is spread, whose code.
#pragma once

#include <cstdint>

#include "sim/cluster/kernel_laws.h"

namespace shard::step {

/// Whose code the blocks are: it decides which kernels run (code_style.h).
enum class Code : std::uint8_t {
  written_out,  ///< torchtitan's, transformers', torchtune's: an operator of PyTorch each
  llm_foundry,  ///< MPT of llm-foundry: one product for q, k, v; padding taken out around attention
  internevo,    ///< flash-attention's layers, norms in fp32
  nanotron,     ///< flash-attention's layers, norms written out
  megatron,     ///< Megatron-LM's, Transformer Engine's
};

/// How products compute where it is not in 16 bits.
enum class Float8 : std::uint8_t { none, per_tensor, per_row, per_block, four_bits };

/// What products multiply and what lies between them.
enum class Values : std::uint8_t {
  bits_16,
  fp32,
  tf32,  ///< fp32, multiplied by tensor cores where the card's have TF32
};

enum class Recompute : std::uint8_t { none, selective, every_other_block, block };

enum class Loss : std::uint8_t {
  eager,     ///< log-softmax in fp32, written out
  one_pass,  ///< flash-attention's, with llm-foundry's metrics beside it
  fused,     ///< compiled, chunked, or one kernel of Megatron
};

struct ModelSizes {
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_size = 0, ffn = 0, vocabulary = 0;
  bool tied = false;
  bool gated = true;             ///< three products in the feed-forward and rotary positions; GPT has two and none
  bool query_key_norms = false;  ///< as Qwen3

  /// Of its products: norms and biases left out.
  [[nodiscard]] double block_parameters() const {
    const auto h = static_cast<double>(hidden);
    return 2 * h * static_cast<double>((heads + kv_heads) * head_size) + (gated ? 3 : 2) * h * static_cast<double>(ffn);
  }
  [[nodiscard]] double embedding_parameters() const {
    return static_cast<double>(vocabulary) * static_cast<double>(hidden);
  }
  [[nodiscard]] double parameters() const {
    return block_parameters() * static_cast<double>(layers) + embedding_parameters() * (tied ? 1 : 2);
  }
};

struct Spread {
  std::int64_t ranks = 1, tensor = 1;
  std::int64_t pipeline = 1;     ///< stages; as many micro-steps in flight as 1F1B has
  std::int64_t chunks = 1;       ///< of a stage that interleaves: each stage has so many runs of layers
  std::int32_t stage = 0;        ///< of ZeRO: 3 gathers parameters
  std::int64_t shard_ranks = 1;  ///< of stage 3: over how many parameters lie; the rest are replicas
  bool sequence_parallel = false;
  bool gathers_again = true;         ///< in backward, of stage 3
  bool asynchronous_tensor = false;  ///< its exchanges run beside products, in pieces
  bool no_exchange = false;          ///< a run in which nothing is exchanged
};

struct TrainingStep {
  ModelSizes model{};
  Spread spread{};
  Code code = Code::written_out;
  bool compiled = false;
  bool fused_norms = true;
  bool flash = true;  ///< false: attention by products and a softmax that memory holds
  cluster::AttentionKernel attention = cluster::AttentionKernel::flash_2;
  Values values = Values::bits_16;
  Float8 float8 = Float8::none;
  bool gathers_8_bits = false;
  Recompute recompute = Recompute::none;
  Loss loss = Loss::eager;
  std::int64_t micro_batch = 1, sequence = 0, accumulation = 1;
  double gathered_bytes = 2;  ///< of a parameter, as it is exchanged
  double reduced_bytes = 2;   ///< of a gradient, as it is exchanged
  /// Bytes that the optimizer moves for a parameter that a rank owns.
  double optimizer_bytes = 28;
  bool copies_around_gathers = false;  ///< fully_shard's, into and out of the buffer that is exchanged

  [[nodiscard]] std::int64_t data_ranks() const { return spread.ranks / (spread.tensor * spread.pipeline); }
  [[nodiscard]] double value_bytes() const { return values == Values::bits_16 ? 2 : 4; }
  [[nodiscard]] std::int64_t tokens() const { return micro_batch * sequence; }
};

}  // namespace shard::step
