// The classes of transformers whose code is known (modeling_llama.py and its relatives), a row each.
#include <algorithm>
#include <array>

#include "sim/like/eager/lowering.h"
#include "sim/model/family.h"

namespace shard::like::eager {
namespace {

constexpr std::array kClassRows{
    ClassRow{.class_name = "GPT2LMHeadModel",
             .projections = Projections::split,
             .names = Names::until_sum,
             .mask = MaskAt::behind_position_embeddings,
             .activation = "gelu_new",
             .softmax_in_fp32 = false},
    ClassRow{.class_name = "GPTBigCodeForCausalLM",
             .projections = Projections::multi_query,
             .names = Names::until_sum,
             .activation = "gelu_pytorch_tanh",
             .mask_buffer = true},
    ClassRow{.class_name = "LlamaForCausalLM", .projections = Projections::apart_by_turns, .rotation = Rotation::whole},
    ClassRow{
        .class_name = "MistralForCausalLM", .projections = Projections::apart_by_turns, .rotation = Rotation::whole},
    ClassRow{.class_name = "Qwen2ForCausalLM", .projections = Projections::apart_by_turns, .rotation = Rotation::whole},
    ClassRow{.class_name = "Qwen3ForCausalLM", .projections = Projections::apart_by_turns, .rotation = Rotation::whole},
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
             .rotary_before = "model.final_layernorm.weight"},
    ClassRow{.class_name = "Phi3ForCausalLM", .projections = Projections::packed, .rotation = Rotation::part_at_once},
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
             .activation = "gelu"},
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

}  // namespace shard::like::eager
