// What a framework's code of a class does that the table of its family does not say.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/like/eager/activations.h"
#include "sim/like/eager/versions.h"
#include "sim/model/graph.h"

namespace shard::like::eager {

/// How queries, keys and values come out of their product.
enum class Projections : std::uint8_t {
  apart,             ///< a product each
  apart_by_turns,    ///< the same, each seen as heads, and normed, before the next one is made
  apart_then_norms,  ///< the same, norms of heads behind all
  all_first,         ///< torchtitan: all products, then seen as heads, then normed, and not transposed
  packed,            ///< behind one another, sliced apart
  split,             ///< behind one another, split()
  chunked_by_head,   ///< each head's three together, chunk()
  indexed_by_head,   ///< the same, each taken by its index
  falcon,            ///< one head of keys and values, each key head's group together, or each head's three
  in_four,           ///< codegen: four groups of heads, each with queries, values, keys
  multi_query,       ///< gpt_bigcode: split(), one head of keys and values; or each head's three together
};

/// How rotary positions are applied.
enum class Rotation : std::uint8_t {
  none,
  whole,               ///< apply_rotary_pos_emb of whole heads
  part_by_names,       ///< parts that turn and that do not have names until attention returns
  part_within,         ///< apply_rotary_pos_emb cuts heads, and joins both of them behind both
  part_at_once,        ///< the same, one behind the other
  pairs_by_gather,     ///< gptj: of neighbours, by a table of the module's, in the keys' type
  pairs_by_index,      ///< codegen: the same in fp32
  pairs_as_complex,    ///< torchtitan's llama3: before heads are transposed, by the model's buffer
  pairs_taken_apart,   ///< the course's: of neighbours, by the model's buffer, the two parts by themselves
  whole_by_new_table,  ///< torchtitan's qwen3: before heads are transposed, by a table that each call casts
};

/// What norms are where the table has rms_norm.
enum class Norm : std::uint8_t {
  by_weight,
  by_one_more,         ///< 1 + weight, in fp32 throughout
  layer_without_bias,  ///< mpt
  fused,               ///< in one kernel
  weight_in_fp32,      ///< the course's: in fp32 throughout
  by_product,          ///< by_weight, but the square is a product, and the weight comes last
};

/// What happens between queries, keys and values, and attention's result.
enum class Scores : std::uint8_t {
  masked,          ///< falcon: scaled_dot_product_attention with a mask
  interface,       ///< sdpa_attention_forward, or eager_attention_forward
  by_einsum,       ///< the course's: einsum, a mask of each call's, softmax written out
  sdpa,            ///< scaled_dot_product_attention alone
  divided_masked,  ///< gptj: in fp32, written out
  masked_divided,  ///< codegen
  masked_twice,    ///< gpt_neo: by a buffer of the module's, too
  alibi_first,     ///< bloom: baddbmm onto positions
  alibi_added,     ///< mpt
};

/// In which order a block that runs attention and mlp side by side sums them up with its input x.
enum class Sum : std::uint8_t {
  attention_mlp_x,
  mlp_attention_x,
  x_attention_mlp,
  attention_into_mlp,  ///< falcon: mlp += attention, then x + mlp
};

/// How long names of a block's forward() hold values: those of norms, and of attention's result.
enum class Names : std::uint8_t {
  rebound,          ///< a norm's until the module that it is for returns
  until_product,    ///< a norm's until the first product with it
  passed,           ///< as rebound; attention's until the block returns
  until_sum,        ///< a norm's until the next sum; attention's until the block returns
  first_until_end,  ///< the first norm's and attention's until the block returns, else as rebound
  until_end,        ///< both until the block returns
};

/// Of the table's operators: what a framework has in one function, where transformers' modules call one another.
struct Together {
  bool embeddings = false;  ///< tokens' and positions'
  bool norms = false;       ///< each norm with the products that it is for
  bool sums = false;        ///< each sum with the dropout of what is added
};

/// Positions and the mask.
enum class Inputs : std::uint8_t {
  none,         ///< blocks are called with x alone
  ids,          ///< positions, then the mask
  ids_masked,   ///< falcon: the same, a mask of booleans for sdpa, too
  mask_last,    ///< the same, the mask behind the embedding of positions
  ones,         ///< opt: positions are counted from a mask of ones
  bloom_alibi,  ///< no positions; biases of each head
  mpt_alibi,    ///< the same, and a mask of booleans
};

/// Of modules, where a framework has others than the family's table.
struct ModuleNames {
  std::string_view embedding{}, blocks{}, last_norm{}, head = "lm_head";
};

struct ClassRow {
  std::string_view class_name;
  Projections projections = Projections::apart;
  Rotation rotation = Rotation::none;
  Norm norm = Norm::by_weight;
  Scores scores = Scores::interface;
  Sum sum = Sum::attention_mlp_x;
  Names names = Names::rebound;
  Inputs inputs = Inputs::ids;
  Together together{};
  ModuleNames modules{};
  Activation function = nullptr;         ///< whatever the configuration says; null: the configuration's word
  std::string_view activation = "silu";  ///< where the configuration's word is not known
  Version oldest = 505;                  ///< transformers that dry runs of the class were equal with
  Version newest = 524;                  ///< and the newest
  std::string_view rotary_before{};      ///< the module that is registered behind rotary_emb; empty: the head
  bool has_sdpa = true;                  ///< else attention is written out, whatever is asked for
  bool softmax_in_fp32 = true;           ///< of attention written out
  bool caches = true;                    ///< use_cache is on where a configuration says nothing
  bool sums_within = false;              ///< attention adds its input, too: names of its forward() live until then
  bool scaled_embedding = false;         ///< a buffer of one number behind the embedding's table
  bool products_by_einsum = false;       ///< the course's, in place of linear()
  bool embedding_by_index = false;       ///< weight[ids]
  bool down_before_up = false;           ///< of a gated module's parameters, as the optimizer has them
  bool bias_apart = false;               ///< falcon: biases are added behind products
  bool scaled_queries = false;           ///< before they are seen as heads
  bool mask_buffer = false;              ///< a mask of all positions behind the parameters of the model's own part
  bool kinds_of_layers = false;          ///< gemma: layers with a window and without have masks of their own
  bool rotary_of_kinds = false;          ///< and rotary positions of their own
  bool mask_of_attention = false;        ///< gpt2, before transformers 5.5: each has one of all positions
  bool returns_weights = false;          ///< blocks return attention's shares, which live until the next one returns
};

/// None where transformers' code of the class is not known.
[[nodiscard]] const ClassRow* class_row(std::string_view class_name);
/// The configuration's, else the class's own.
[[nodiscard]] std::string_view word_of_activation(const model::Model& model, const ClassRow& row);
/// What the family's table has under this name; `otherwise` where it has nothing.
[[nodiscard]] std::int64_t described_value(const model::Model& model, std::string_view name, std::int64_t otherwise);

}  // namespace shard::like::eager
