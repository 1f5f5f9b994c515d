// A shape by the keys of its family's config.json.
#include "sim/validate/model_of.h"

#include <string>
#include <string_view>

#include "sim/model/config.h"

namespace shard::validate {
namespace {

class Config {
 public:
  explicit Config(const PublishedRun& run) : text_(R"({"model_type":")" + std::string(word(run.family).text) + '"') {}
  Config& number(std::string_view key, std::int64_t value) { return raw(key, std::to_string(value)); }
  Config& flag(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
  Config& raw(std::string_view key, const std::string& value) {
    text_ += ",\"" + std::string(key) + "\":" + value;
    return *this;
  }
  [[nodiscard]] std::string take() const { return text_ + "}"; }

 private:
  std::string text_;
};

std::string config_of(const PublishedRun& r) {
  Config c(r);
  if (r.family == Family::gpt2)
    return c.number("n_layer", r.layers)
        .number("n_embd", r.hidden)
        .number("n_head", r.heads)
        .number("n_inner", r.ffn)
        .number("vocab_size", r.vocab)
        .number("n_positions", r.sequence)
        .flag("tie_word_embeddings", r.tied)
        .take();
  if (r.family == Family::mpt)
    return c.number("n_layers", r.layers)
        .number("d_model", r.hidden)
        .number("n_heads", r.heads)
        .number("vocab_size", r.vocab)
        .number("max_seq_len", r.sequence)
        .flag("tie_word_embeddings", r.tied)
        .take();
  c.number("num_hidden_layers", r.layers)
      .number("hidden_size", r.hidden)
      .number("num_attention_heads", r.heads)
      .number("intermediate_size", r.ffn)
      .number("vocab_size", r.vocab)
      .number("max_position_embeddings", r.sequence)
      .flag("tie_word_embeddings", r.tied);
  if (r.family != Family::gpt_neox) c.number("num_key_value_heads", r.kv_heads);
  if (r.family == Family::mistral) c.raw("sliding_window", "null");
  if (r.family == Family::llama || r.family == Family::mistral || r.family == Family::qwen3)
    c.number("head_dim", r.head_dim);
  return c.take();
}

}  // namespace

Result<std::shared_ptr<const model::Model>> model_of(const PublishedRun& run) {
  auto parsed = model::parse_config(config_of(run), run.model, "row");
  if (!parsed) return parsed.error();
  return std::make_shared<const model::Model>(std::move(parsed->model));
}

}  // namespace shard::validate
