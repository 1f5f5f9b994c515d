// Pre-norm transformer with learned positions, packed qkv and Conv1D weights ([in, out]).
#include "sim/model/gpt2.h"

#include <cmath>
#include <utility>

#include "sim/model/graph_builder.h"
#include "sim/model/model_limits.h"
#include "sim/model/parameter_builder.h"

namespace shard::model {
namespace {

std::string gpt2_block(std::int64_t block) {
  return "transformer.h." + std::to_string(block) + ".";
}

/// Options of GPT2Config that change the operators; only their defaults are built here.
void refuse_other_attention(ConfigFields& fields) {
  if (!fields.boolean({"scale_attn_weights"}, true)) {
    fields.contradiction("scale_attn_weights", "is false; only scaled attention is supported", "remove it");
  }
  if (fields.boolean({"scale_attn_by_inverse_layer_idx"}, false)) {
    fields.contradiction("scale_attn_by_inverse_layer_idx", "is true; only plain scaled attention is supported",
                         "set it to false");
  }
  if (fields.boolean({"add_cross_attention"}, false)) {
    fields.contradiction("add_cross_attention", "is true; only decoders without an encoder are supported",
                         "set it to false");
  }
  const std::string activation = fields.text({"activation_function"}, "gelu_new");
  if (activation != "gelu_new" && activation != "gelu_pytorch_tanh") {
    fields.contradiction("activation_function", "is \"" + activation + "\", which is not supported for gpt2",
                         "use \"gelu_new\" or \"gelu_pytorch_tanh\" (the tanh approximation)");
  }
}

void add_gpt2_parameters(const ConfigFields& fields, Model& model, ParameterBuilder& add, float range) {
  using Kind = Initialization::Kind;
  const std::int64_t c = model.hidden;
  const Initialization normal{Kind::normal, range};
  const Initialization residual{Kind::normal, range / std::sqrt(2.0F * static_cast<float>(model.layers))};
  const Initialization zeros{Kind::zeros, 0};
  const Initialization ones{Kind::ones, 0};
  if (fields.error()) return;
  add.add("transformer.wte.weight", {model.vocabulary, c}, normal);
  add.add("transformer.wpe.weight", {model.max_sequence, c}, normal);
  for (std::int64_t i = 0; i < model.layers && !add.too_large(); ++i) {
    const std::string block = gpt2_block(i);
    add.set_block(static_cast<std::int32_t>(i));
    add.add(block + "ln_1.weight", {c}, ones);
    add.add(block + "ln_1.bias", {c}, zeros);
    add.add(block + "attn.c_attn.weight", {c, 3 * c}, normal);
    add.add(block + "attn.c_attn.bias", {3 * c}, zeros);
    add.add(block + "attn.c_proj.weight", {c, c}, residual);
    add.add(block + "attn.c_proj.bias", {c}, zeros);
    add.add(block + "ln_2.weight", {c}, ones);
    add.add(block + "ln_2.bias", {c}, zeros);
    add.add(block + "mlp.c_fc.weight", {c, model.intermediate}, normal);
    add.add(block + "mlp.c_fc.bias", {model.intermediate}, zeros);
    add.add(block + "mlp.c_proj.weight", {model.intermediate, c}, residual);
    add.add(block + "mlp.c_proj.bias", {c}, zeros);
  }
  add.set_block(-1);
  add.add("transformer.ln_f.weight", {c}, ones);
  add.add("transformer.ln_f.bias", {c}, zeros);
  if (!model.tied_embeddings) add.add("lm_head.weight", {model.vocabulary, c}, normal);
}

}  // namespace

void describe_gpt2(ConfigFields& fields, Model& model) {
  model.family = Family::gpt2;
  model.vocabulary = fields.positive({"vocab_size"}, 50257);
  model.max_sequence = fields.positive({"n_positions", "max_position_embeddings"}, 1024);
  model.hidden = fields.positive({"n_embd", "hidden_size"}, 768);
  model.layers = fields.positive({"n_layer", "num_hidden_layers"}, 12);
  model.heads = fields.positive({"n_head", "num_attention_heads"}, 12);
  model.kv_heads = model.heads;
  model.intermediate = fields.positive_or_derived({"n_inner"}, 4 * model.hidden);
  model.epsilon = static_cast<float>(fields.positive_number({"layer_norm_epsilon"}, 1e-5));
  model.tied_embeddings = fields.boolean({"tie_word_embeddings"}, true);
  const auto range = static_cast<float>(fields.non_negative_number({"initializer_range"}, 0.02));
  for (const char* key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) fields.dropout(key, 0.1);
  refuse_other_attention(fields);
  fields.ignore({"n_ctx", "use_cache", "reorder_and_upcast_attn", "bos_token_id", "eos_token_id", "pad_token_id"});
  check_layers(fields, "n_layer", model.layers);
  check_heads_divide_hidden(fields, {"n_head", model.heads}, {"n_embd", model.hidden});
  model.head_dim = model.hidden / model.heads;

  ParameterBuilder add(model);
  add_gpt2_parameters(fields, model, add, range);
  check_total(fields, add);
}

Graph gpt2_graph(const Model& model, std::int64_t batch, std::int64_t sequence) {
  GraphBuilder g(model, batch, sequence);
  const ValueId tokens = g.input({batch, sequence}, Dtype::i32);
  const ValueId targets = g.target({batch, sequence}, Dtype::i32);
  ValueId x = g.embedding("transformer.wte", tokens);
  x = g.add_position("transformer.wpe", x);
  x = g.dropout("transformer.drop", x);
  for (std::int64_t i = 0; i < model.layers; ++i) {
    const std::string block = gpt2_block(i);
    g.set_block(static_cast<std::int32_t>(i));
    ValueId h = g.layer_norm(block + "ln_1", x);
    h = g.linear(block + "attn.c_attn", h, true);
    h = g.attention(block + "attn", {h});
    h = g.linear(block + "attn.c_proj", h, true);
    h = g.dropout(block + "attn.resid_dropout", h);
    x = g.add(block + "attn.residual", x, h);
    h = g.layer_norm(block + "ln_2", x);
    h = g.linear(block + "mlp.c_fc", h, true);
    h = g.gelu(block + "mlp.act", h);
    h = g.linear(block + "mlp.c_proj", h, true);
    h = g.dropout(block + "mlp.dropout", h);
    x = g.add(block + "mlp.residual", x, h);
  }
  g.set_block(-1);
  x = g.layer_norm("transformer.ln_f", x);
  const ValueId logits =
      g.linear_with("lm_head", model.tied_embeddings ? "transformer.wte.weight" : "lm_head.weight", x);
  g.cross_entropy("loss", logits, targets);
  return std::move(g).finish();
}

}  // namespace shard::model
