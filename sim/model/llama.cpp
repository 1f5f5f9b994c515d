// Pre-norm transformer with RMSNorm, rotary positions, grouped-query attention and SwiGLU; weights are [out, in].
#include "sim/model/llama.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "sim/model/graph_builder.h"
#include "sim/model/model_limits.h"
#include "sim/model/parameter_builder.h"

namespace shard::model {
namespace {

constexpr double kDefaultTheta = 10000.0;

std::string llama_block(std::int64_t block) {
  return "model.layers." + std::to_string(block) + ".";
}

/// A rope_scaling or rope_parameters object may only say what plain rotary positions do anyway.
void refuse_scaled_positions(ConfigFields& fields, std::string_view key) {
  const nlohmann::json* scaling = fields.find({key});
  if (scaling == nullptr) return;
  if (!scaling->is_object()) {
    fields.malformed(key, "is " + scaling->dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) +
                              ", neither an object nor null");
    return;
  }
  for (const char* type_key : {"rope_type", "type"}) {
    const auto type = scaling->find(type_key);
    if (type == scaling->end() || type->is_null()) continue;
    const std::string pointer = std::string(key) + "/" + type_key;
    if (!type->is_string()) {
      fields.malformed(pointer, "is not a string");
    } else if (type->get<std::string>() != "default") {
      fields.contradiction(pointer,
                           "is \"" + type->get<std::string>() +
                               "\"; only unscaled rotary positions are supported, and scaling changes the loss",
                           "set \"" + std::string(key) + "\" to null: memory, communication and time stay the same");
    }
    return;
  }
}

/// rope_theta stands at the top, or in transformers 5 inside rope_parameters.
double read_theta(ConfigFields& fields) {
  const nlohmann::json* nested = fields.find({"rope_parameters"});
  if (nested != nullptr && nested->is_object() && nested->contains("rope_theta")) {
    ConfigFields inside = fields.nested("rope_parameters", *nested);
    const double theta = inside.positive_number({"rope_theta"}, kDefaultTheta);
    fields.absorb(std::move(inside));
    return theta;
  }
  return fields.positive_number({"rope_theta"}, kDefaultTheta);
}

void refuse_other_operators(ConfigFields& fields) {
  refuse_scaled_positions(fields, "rope_scaling");
  refuse_scaled_positions(fields, "rope_parameters");
  const std::string activation = fields.text({"hidden_act"}, "silu");
  if (activation != "silu" && activation != "swish") {
    fields.contradiction("hidden_act", "is \"" + activation + "\", which is not supported for llama",
                         "use \"silu\" (SwiGLU)");
  }
  if (fields.positive_number({"partial_rotary_factor"}, 1.0) != 1.0) {
    fields.contradiction("partial_rotary_factor", "is not 1; only full rotary positions are supported", "remove it");
  }
}

void add_llama_parameters(const ConfigFields& fields, Model& model, ParameterBuilder& add, float range) {
  using Kind = Initialization::Kind;
  const Initialization normal{Kind::normal, range};
  const Initialization zeros{Kind::zeros, 0};
  const Initialization ones{Kind::ones, 0};
  const auto linear = [&](const std::string& name, std::int64_t out, std::int64_t in, bool bias) {
    add.add(name + ".weight", {out, in}, normal);
    if (bias) add.add(name + ".bias", {out}, zeros);
  };
  if (fields.error()) return;
  const std::int64_t c = model.hidden;
  const std::int64_t q = model.heads * model.head_dim;
  const std::int64_t kv = model.kv_heads * model.head_dim;
  add.add("model.embed_tokens.weight", {model.vocabulary, c}, normal);
  for (std::int64_t i = 0; i < model.layers && !add.too_large(); ++i) {
    const std::string block = llama_block(i);
    add.set_block(static_cast<std::int32_t>(i));
    linear(block + "self_attn.q_proj", q, c, model.attention_bias);
    linear(block + "self_attn.k_proj", kv, c, model.attention_bias);
    linear(block + "self_attn.v_proj", kv, c, model.attention_bias);
    linear(block + "self_attn.o_proj", c, q, model.attention_bias);
    linear(block + "mlp.gate_proj", model.intermediate, c, model.mlp_bias);
    linear(block + "mlp.up_proj", model.intermediate, c, model.mlp_bias);
    linear(block + "mlp.down_proj", c, model.intermediate, model.mlp_bias);
    add.add(block + "input_layernorm.weight", {c}, ones);
    add.add(block + "post_attention_layernorm.weight", {c}, ones);
  }
  add.set_block(-1);
  add.add("model.norm.weight", {c}, ones);
  if (!model.tied_embeddings) linear("lm_head", model.vocabulary, c, false);
}

}  // namespace

void describe_llama(ConfigFields& fields, Model& model) {
  model.family = Family::llama;
  model.vocabulary = fields.positive({"vocab_size"}, 32000);
  model.hidden = fields.positive({"hidden_size"}, 4096);
  model.intermediate = fields.positive({"intermediate_size"}, 11008);
  model.layers = fields.positive({"num_hidden_layers"}, 32);
  model.heads = fields.positive({"num_attention_heads"}, 32);
  model.kv_heads = fields.positive_or_derived({"num_key_value_heads"}, model.heads);
  if (fields.find({"head_dim"}) == nullptr) {
    check_heads_divide_hidden(fields, {"num_attention_heads", model.heads}, {"hidden_size", model.hidden});
  }
  model.head_dim = fields.positive_or_derived({"head_dim"}, model.hidden / model.heads);
  model.max_sequence = fields.positive({"max_position_embeddings"}, 2048);
  model.epsilon = static_cast<float>(fields.positive_number({"rms_norm_eps"}, 1e-6));
  model.rotary_base = static_cast<float>(read_theta(fields));
  model.tied_embeddings = fields.boolean({"tie_word_embeddings"}, false);
  model.attention_bias = fields.boolean({"attention_bias"}, false);
  model.mlp_bias = fields.boolean({"mlp_bias"}, false);
  const auto range = static_cast<float>(fields.non_negative_number({"initializer_range"}, 0.02));
  fields.dropout("attention_dropout", 0.0);
  refuse_other_operators(fields);
  fields.ignore({"pretraining_tp", "use_cache", "bos_token_id", "eos_token_id", "pad_token_id"});
  check_layers(fields, "num_hidden_layers", model.layers);
  check_kv_heads(fields, model);
  if (model.head_dim % 2 != 0) {
    fields.contradiction("head_dim",
                         "is " + std::to_string(model.head_dim) + "; rotary positions need an even head dimension");
  }

  ParameterBuilder add(model);
  add_llama_parameters(fields, model, add, range);
  check_total(fields, add);
}

Graph llama_graph(const Model& model, std::int64_t batch, std::int64_t sequence) {
  GraphBuilder g(model, batch, sequence);
  const ValueId tokens = g.input({batch, sequence}, Dtype::i32);
  const ValueId targets = g.target({batch, sequence}, Dtype::i32);
  ValueId x = g.embedding("model.embed_tokens", tokens);
  x = g.dropout("model.dropout", x);
  for (std::int64_t i = 0; i < model.layers; ++i) {
    const std::string block = llama_block(i);
    g.set_block(static_cast<std::int32_t>(i));
    ValueId h = g.rms_norm(block + "input_layernorm", x);
    ValueId q = g.linear(block + "self_attn.q_proj", h, false);
    ValueId k = g.linear(block + "self_attn.k_proj", h, false);
    const ValueId v = g.linear(block + "self_attn.v_proj", h, false);
    q = g.rotary(block + "self_attn.rotary_q", q, model.heads);
    k = g.rotary(block + "self_attn.rotary_k", k, model.kv_heads);
    h = g.attention(block + "self_attn", {q, k, v});
    h = g.linear(block + "self_attn.o_proj", h, false);
    h = g.dropout(block + "self_attn.dropout", h);
    x = g.add(block + "self_attn.residual", x, h);
    h = g.rms_norm(block + "post_attention_layernorm", x);
    const ValueId gate = g.linear(block + "mlp.gate_proj", h, false);
    const ValueId up = g.linear(block + "mlp.up_proj", h, false);
    h = g.swiglu(block + "mlp.act", gate, up);
    h = g.linear(block + "mlp.down_proj", h, false);
    h = g.dropout(block + "mlp.dropout", h);
    x = g.add(block + "mlp.residual", x, h);
  }
  g.set_block(-1);
  x = g.rms_norm("model.norm", x);
  const ValueId logits =
      g.linear_with("lm_head", model.tied_embeddings ? "model.embed_tokens.weight" : "lm_head.weight", x);
  g.cross_entropy("loss", logits, targets);
  return std::move(g).finish();
}

}  // namespace shard::model
