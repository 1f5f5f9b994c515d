// The classes of transformers whose code is known (modeling_llama.py and its relatives), a row each.
#include <algorithm>
#include <array>

#include "sim/like/eager/lowering_table.h"
#include "sim/model/family.h"

namespace shard::like::eager {
namespace {

/// The oldest transformers with which programs of these classes were compared; of the others dry runs of it differ.
constexpr Version kBefore5 = 457;
/// Of these, programs under 5.5 and 5.14 differ from the tables, or did not run.
constexpr Version kLate = 523;
/// Of these, the positions of 5.24 are another module's.
constexpr Version kBeforeOneModule = 523;

constexpr std::array kClassRows{
    ClassRow{.class_name = "GPT2LMHeadModel",
             .projections = Projections::split,
             .names = Names::until_sum,
             .inputs = Inputs::mask_last,
             .activation = "gelu_new",
             .oldest = kBefore5,
             .softmax_in_fp32 = false,
             .mask_of_attention = true},
    ClassRow{.class_name = "GPTBigCodeForCausalLM",
             .projections = Projections::multi_query,
             .names = Names::until_sum,
             .activation = "gelu_pytorch_tanh",
             .oldest = kBefore5,
             .mask_buffer = true},
    ClassRow{.class_name = "LlamaForCausalLM",
             .projections = Projections::apart_by_turns,
             .rotation = Rotation::whole,
             .oldest = kBefore5},
    ClassRow{.class_name = "MistralForCausalLM",
             .projections = Projections::apart_by_turns,
             .rotation = Rotation::whole,
             .oldest = kBefore5},
    ClassRow{.class_name = "Qwen2ForCausalLM",
             .projections = Projections::apart_by_turns,
             .rotation = Rotation::whole,
             .oldest = kBefore5},
    ClassRow{.class_name = "Qwen3ForCausalLM",
             .projections = Projections::apart_by_turns,
             .rotation = Rotation::whole,
             .oldest = kBefore5},
    ClassRow{.class_name = "GemmaForCausalLM",
             .projections = Projections::apart_by_turns,
             .rotation = Rotation::whole,
             .norm = Norm::by_one_more,
             .activation = "gelu_pytorch_tanh",
             .scaled_embedding = true},
    ClassRow{.class_name = "PhiForCausalLM",
             .projections = Projections::apart_by_turns,
             .rotation = Rotation::part_by_names,
             .names = Names::first_until_end,
             .activation = "gelu_new",
             .oldest = kBefore5,
             .rotary_before = "model.final_layernorm.weight"},
    ClassRow{.class_name = "Phi3ForCausalLM",
             .projections = Projections::packed,
             .rotation = Rotation::part_at_once,
             .oldest = kBefore5},
    ClassRow{.class_name = "StableLmForCausalLM",
             .projections = Projections::apart,
             .rotation = Rotation::part_by_names,
             .sum = Sum::x_attention_mlp,
             .names = Names::first_until_end},
    ClassRow{.class_name = "GPTNeoXForCausalLM",
             .projections = Projections::chunked_by_head,
             .rotation = Rotation::part_within,
             .sum = Sum::mlp_attention_x,
             .names = Names::passed,
             .activation = "gelu",
             .oldest = kBefore5},
    ClassRow{.class_name = "Gemma2ForCausalLM",
             .projections = Projections::apart_by_turns,
             .rotation = Rotation::whole,
             .norm = Norm::by_one_more,
             .activation = "gelu_pytorch_tanh",
             .has_sdpa = false,
             .scaled_embedding = true,
             .kinds_of_layers = true},
    ClassRow{.class_name = "Gemma3ForCausalLM",
             .projections = Projections::apart_then_norms,
             .rotation = Rotation::whole,
             .norm = Norm::by_one_more,
             .activation = "gelu_pytorch_tanh",
             .scaled_embedding = true,
             .kinds_of_layers = true,
             .rotary_of_kinds = true},
    ClassRow{.class_name = "OPTForCausalLM",
             .names = Names::until_product,
             .inputs = Inputs::ones,
             .activation = "relu",
             .oldest = kBefore5,
             .scaled_queries = true},
    ClassRow{.class_name = "GPTJForCausalLM",
             .rotation = Rotation::pairs_by_gather,
             .scores = Scores::divided_masked,
             .names = Names::until_end,
             .activation = "gelu_new",
             .newest = kBeforeOneModule,
             .has_sdpa = false,
             .returns_weights = true},
    ClassRow{.class_name = "CodeGenForCausalLM",
             .projections = Projections::in_four,
             .rotation = Rotation::pairs_by_index,
             .scores = Scores::masked_divided,
             .names = Names::until_end,
             .activation = "gelu_new",
             .newest = kBeforeOneModule,
             .has_sdpa = false,
             .returns_weights = true},
    ClassRow{.class_name = "GPTNeoForCausalLM",
             .scores = Scores::masked_twice,
             .names = Names::until_sum,
             .activation = "gelu_new",
             .has_sdpa = false,
             .returns_weights = true},
    ClassRow{.class_name = "BloomForCausalLM",
             .projections = Projections::indexed_by_head,
             .scores = Scores::alibi_first,
             .inputs = Inputs::bloom_alibi,
             .activation = "bloom_gelu",
             .oldest = kLate,
             .has_sdpa = false,
             .sums_within = true,
             .returns_weights = true},
    ClassRow{.class_name = "MptForCausalLM",
             .projections = Projections::split,
             .norm = Norm::layer_without_bias,
             .scores = Scores::alibi_added,
             .names = Names::passed,
             .inputs = Inputs::mpt_alibi,
             .activation = "gelu",
             .has_sdpa = false,
             .caches = false,
             .returns_weights = true},
    ClassRow{.class_name = "FalconForCausalLM",
             .projections = Projections::falcon,
             .rotation = Rotation::whole,
             .scores = Scores::masked,
             .sum = Sum::attention_into_mlp,
             .names = Names::until_end,
             .inputs = Inputs::ids_masked,
             .activation = "gelu",
             .oldest = kLate,
             .bias_apart = true},
};

}  // namespace

const ClassRow* class_row(std::string_view class_name) {
  const auto* found = std::find_if(kClassRows.begin(), kClassRows.end(),
                                   [&](const ClassRow& row) { return row.class_name == class_name; });
  return found == kClassRows.end() ? nullptr : found;
}

std::string_view word_of_activation(const model::Model& model, const ClassRow& row) {
  return model.described->activation.empty() ? row.activation : model.described->activation;
}

std::int64_t described_value(const model::Model& model, std::string_view name, std::int64_t otherwise) {
  const std::int64_t* value = model.described->values.find(name);
  return value == nullptr ? otherwise : *value;
}

}  // namespace shard::like::eager
